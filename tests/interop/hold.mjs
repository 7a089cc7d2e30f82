// Feeds captured streams to a released AG-UI client and prints, for each, what is wrong with what it then holds.
//
//   node hold.mjs '{"client": package, "file": path}'
// The file is a JSON list of {"text": the bytes as text, "sent": {"threadId": …, "runId": …}, "before": messages,
// "state": the state before, "stored": messages behind the run, "after": the state behind it}.
import { readFileSync } from "node:fs";
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
console.warn = (...words) => said.push(words.map(String).join(" ").split("\n")[0]);
console.error = () => {};

function serve(text) {
  return async () => new Response(text, { headers: { "content-type": "text/event-stream; charset=utf-8" } });
}

async function hold(one) {
  said.length = 0;
  const { threadId, runId } = one.sent;
  const agent = new client.HttpAgent({
    url: "http://localhost/",
    threadId,
    fetch: serve(one.text),
    initialMessages: one.before,
    initialState: one.state,
  });
  const outcome = {};
  await agent
    .runAgent({ runId }, {
      onRunFinishedEvent: (told) => Object.assign(outcome, { finished: told.outcome ?? "success", result: told.result }),
      onRunErrorEvent: ({ event }) => Object.assign(outcome, { error: event.code }),
    })
    .catch((error) => Object.assign(outcome, { rejected: String(error.message) }));
  const live = plain(agent.messages);
  const found = wire.events(one.text);
  const problems = {
    framing: wire.framing(200, "text/event-stream; charset=utf-8", one.text),
    shapes: wire.shapes(found, EventSchema),
    order: await wire.order(found, client, from),
    identity: wire.identity(found, one.sent),
    rejected: outcome.rejected ? [outcome.rejected] : [],
    history: differences(live, one.stored),
    snapshot: differences(live, await merged(client, from, live, one.stored)),
    state: isDeepStrictEqual(plain(agent.state), one.after) ? [] : [`the state is ${JSON.stringify(agent.state)}`],
    said: [...said],
  };
  const interrupts = plain(agent.pendingInterrupts ?? []);
  return { outcome: plain(outcome), live, interrupts, problems };
}

const told = [];
for (const one of JSON.parse(readFileSync(task.file, "utf8"))) told.push(await hold(one));
process.stdout.write(JSON.stringify(told));
