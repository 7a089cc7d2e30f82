import * as api from "./api.js";
import { endOf } from "./turn-end.js";

/**
 * A page of stored turns as one list, oldest first: every message with the `runId` of its turn, and how a turn
 * ended where it did not end well. `before` leads to the page before; it is null at the start of history.
 */
export async function loadTurns(threadId, where, signal) {
  const page = await api.readTurns(threadId, where, signal);
  const turns = await Promise.all(page.rows.map((row) => itemsOf(threadId, row, signal)));
  return { messages: turns.flat(), before: page.nextBeforeRunId };
}

async function itemsOf(threadId, { runId, status, messages }, signal) {
  const said = messages.map((message) => ({ ...message, runId }));
  const reason =
    status === "failed" ? (await api.readRun(threadId, runId, signal)).error?.message : undefined;
  const end = endOf(runId, status, reason, said);
  return end === null ? said : [...said, end];
}
