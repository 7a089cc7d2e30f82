// Judges one captured stream as drive.mjs does, and prints what is wrong with it as a JSON list.
//   node judge.mjs '{"text": the bytes as text, "sent": {"threadId": …, "runId": …}, "client": package}'
import { createRequire } from "node:module";

import * as wire from "./wire.mjs";

const { text, sent, client } = JSON.parse(process.argv[2]);
const load = createRequire(`${process.env.PACKAGES}/package.json`);
const { from } = load("rxjs");
const found = wire.events(text);
const wrong = [
  ...wire.framing(200, "text/event-stream; charset=utf-8", text),
  ...wire.shapes(found, load("@ag-ui/core/schemas").EventSchema),
  ...(await wire.order(found, load(client), from)),
  ...wire.identity(found, sent),
];
process.stdout.write(JSON.stringify(wrong));
