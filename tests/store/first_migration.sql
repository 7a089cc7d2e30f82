INSERT INTO threads (namespace, id, agent, conversation_id, group_id, parent_thread_id, hidden, title, archived_at, head_run_id, run_count, message_count, created_at, updated_at)
VALUES ('default', 'old', 'assistant', 'conv_1', 'default', NULL, FALSE, 'Hello', NULL, 'old-2', 2, 3, '2023-11-14T22:13:20.000Z', '2023-11-14T22:14:20.000Z');
INSERT INTO runs (namespace, id, thread_id, agent, sender_id, previous_run_id, parent_run_id, status, end_reason, owner, epoch, state, meta, input, interrupts, usage, error, digest, created_at, ended_at)
VALUES ('default', 'old-1', 'old', 'assistant', 'user', NULL, NULL, 'completed', 'done', 'host', 1, '{"step":1}', NULL, '{"tools":[]}', '[]', '[{"model":"m","inputTokens":3}]', NULL, 'd1', '2023-11-14T22:13:20.000Z', '2023-11-14T22:13:30.000Z');
INSERT INTO runs (namespace, id, thread_id, agent, sender_id, previous_run_id, parent_run_id, status, end_reason, owner, epoch, state, meta, input, interrupts, usage, error, digest, created_at, ended_at)
VALUES ('default', 'old-2', 'old', 'assistant', 'user', 'old-1', NULL, 'running', NULL, 'host', 1, '{"step":2}', '{"k":null}', NULL, '[]', '[]', NULL, 'd2', '2023-11-14T22:14:20.000Z', NULL);
INSERT INTO entries (namespace, thread_id, run_id, entry_id, kind, role, injected, origin, sender_id, created_at, shown, body, wire, renderer)
VALUES ('default', 'old', 'old-1', 'e1', 'message', 'user', 'none', '', 'user', 1700000000123456789, TRUE, '{"id":"e1","role":"user","content":[{"type":"text","text":"Hello"}],"createdAt":"2023-11-14T22:13:20.123456789Z","senderId":"user"}', '[{"id":"e1"}]', 1);
INSERT INTO entries (namespace, thread_id, run_id, entry_id, kind, role, injected, origin, sender_id, created_at, shown, body, wire, renderer)
VALUES ('default', 'old', 'old-1', 'e2', 'message', 'assistant', 'none', '', NULL, NULL, TRUE, '{"id":"e2","role":"assistant","content":[{"type":"text","text":"Hi"}],"createdAt":"0001-01-01T00:00:00Z","stopReason":"stop"}', '[{"id":"e2"}]', 0);
INSERT INTO entries (namespace, thread_id, run_id, entry_id, kind, role, injected, origin, sender_id, created_at, shown, body, wire, renderer)
VALUES ('default', 'old', 'old-1', 'e3', 'custom', NULL, NULL, NULL, NULL, NULL, FALSE, '{"name":"chart","value":[1]}', NULL, NULL);
INSERT INTO entries (namespace, thread_id, run_id, entry_id, kind, role, injected, origin, sender_id, created_at, shown, body, wire, renderer)
VALUES ('default', 'old', 'old-2', 'e4', 'message', 'user', 'none', '', 'user', NULL, TRUE, '{"id":"e4","role":"user","content":[{"type":"text","text":"Still there?"}]}', NULL, NULL);
