// Talks to a running server through a released AG-UI client, as an application would, and prints one JSON
// document: what happened in every turn and what was wrong with it.
//
//   node drive.mjs '{"client": package, "base": url, "agent": name, "thread": id, "turns": [{"say": text,
//                    "stop": true to ask for a stop at the first text, "tools": those of the client,
//                    "answer": content for its open calls, "resume": payload for all open questions}]}'
// PACKAGES is the folder whose node_modules holds the clients.
import { createRequire } from "node:module";
import { isDeepStrictEqual } from "node:util";

import { differences, merged, plain } from "./lists.mjs";
import * as wire from "./wire.mjs";

const task = JSON.parse(process.argv[2]);
const load = createRequire(`${process.env.PACKAGES}/package.json`);
const client = load(task.client);
const { EventSchema } = load("@ag-ui/core/schemas");
const { from } = load("rxjs");

const said = [];
console.warn = (...words) => said.push(words.map(String).join(" "));
console.error = () => {};
console.debug = () => {};

const capture = { status: 0, contentType: "", text: "", sent: null };

async function recording(url, request) {
  capture.sent = JSON.parse(request.body);
  const response = await fetch(url, request);
  Object.assign(capture, { status: response.status, contentType: response.headers.get("content-type") ?? "", text: "" });
  if (!response.ok) return response;
  const decoder = new TextDecoder();
  const passing = new TransformStream({
    transform(piece, onwards) {
      capture.text += decoder.decode(piece, { stream: true });
      onwards.enqueue(piece);
    },
  });
  return new Response(response.body.pipeThrough(passing), { status: response.status, headers: response.headers });
}

const url = `${task.base}/agents/${task.agent}/run`;
const agent = new client.HttpAgent({ url, threadId: task.thread, fetch: recording });

async function stop(run) {
  const response = await fetch(`${task.base}/threads/${task.thread}/runs/${run}/stop`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: "{}",
  });
  if (!response.ok) said.push(`the stop was answered with ${response.status}`);
}

function answer(content) {
  const answered = new Set(agent.messages.map(({ toolCallId }) => toolCallId));
  const calls = agent.messages.flatMap(({ toolCalls }) => toolCalls ?? []).filter(({ id }) => !answered.has(id));
  for (const { id } of calls) agent.addMessage({ id: `${id}:tool`, role: "tool", toolCallId: id, content });
}

function replies(payload) {
  return agent.pendingInterrupts.map(({ id }) => ({ interruptId: id, status: "resolved", payload }));
}

async function talk({ say, keep, stop: stopping, tools, answer: content, resume }) {
  said.length = 0;
  const outcome = {};
  let asked;
  if (keep !== undefined) agent.setMessages(agent.messages.slice(0, keep));
  if (content !== undefined) answer(content);
  if (say !== undefined) agent.addMessage({ id: crypto.randomUUID(), role: "user", content: say });
  const options = { tools: tools ?? [], ...(resume === undefined ? {} : { resume: replies(resume) }) };
  const watching = {
    onTextMessageContentEvent: () => {
      if (stopping) asked ??= stop(capture.sent.runId);
    },
    onRunFinishedEvent: (told) => Object.assign(outcome, { finished: told.outcome ?? "success" }),
    onRunErrorEvent: ({ event }) => Object.assign(outcome, { error: plain(event) }),
    onRunFailed: ({ error }) => Object.assign(outcome, { rejected: String(error.message) }),
  };
  await agent.runAgent(options, watching).catch((error) => Object.assign(outcome, { rejected: String(error.message) }));
  await asked;
  return outcome;
}

async function sharedState() {
  const response = await fetch(`${task.base}/threads/${task.thread}/state`);
  const { state } = await response.json();
  const same = isDeepStrictEqual(plain(agent.state), state ?? {});
  return same ? [] : [`the client has ${JSON.stringify(agent.state)}, stored is ${JSON.stringify(state)}`];
}

async function stored() {
  const response = await fetch(`${task.base}/threads/${task.thread}/messages`);
  return response.ok ? (await response.json()).messages : [];
}

function lists(messages) {
  const wrong = [];
  const ids = messages.map(({ id }) => id);
  if (new Set(ids).size !== ids.length) wrong.push(`a message id occurs twice: ${ids}`);
  messages.forEach((message, place) => {
    if (message.role !== "tool") return;
    const before = messages.slice(0, place).findLast(({ role }) => role !== "tool");
    if (!before?.toolCalls?.some(({ id }) => id === message.toolCallId)) wrong.push(`${message.id} answers no call before it`);
  });
  return wrong;
}

const turns = [];
for (const turn of task.turns) {
  const outcome = await talk(turn);
  const found = capture.status === 200 ? wire.events(capture.text) : [];
  const live = plain(agent.messages);
  const kept = await stored();
  turns.push({
    outcome,
    types: found.map(({ type }) => type),
    found,
    interrupts: plain(agent.pendingInterrupts ?? []),
    sent: capture.sent,
    live,
    problems: {
      framing: wire.framing(capture.status, capture.contentType, capture.text, { gaps: capture.sent.protocolVersion === undefined }),
      shapes: wire.shapes(found, EventSchema),
      order: await wire.order(found, client, from),
      identity: wire.identity(found, capture.sent),
      messages: lists(live),
      history: differences(live, plain(kept)),
      snapshot: differences(live, await merged(client, from, live, kept)),
      state: await sharedState(),
      said: said.map((words) => words.split("\n")[0]),
    },
  });
}
process.stdout.write(JSON.stringify({ turns }));
