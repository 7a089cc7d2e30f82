// What the bytes of one event stream must be like, whoever reads them. Every function returns a list of
// sentences about what is wrong; an empty list means: nothing.

// Members that may hold anything, null included.
const FREE = new Set(["snapshot", "value", "event", "rawEvent", "delta", "patch", "content", "result", "responseSchema"]);

// A position that is left out belongs to a frame for clients of the other generation; 1.0 clients get them all.
export function framing(status, contentType, text, { gaps = false } = {}) {
  const wrong = [];
  if (status !== 200) return [`status ${status}`];
  if (!contentType.startsWith("text/event-stream")) wrong.push(`content type ${contentType}`);
  if (text.includes("\r")) wrong.push("a carriage return in the stream");
  if (!text.endsWith("\n\n")) wrong.push("the last frame is not ended by an empty line");
  let expected = 1;
  for (const block of text.split("\n\n").slice(0, -1)) {
    const lines = block.split("\n");
    if (lines.every((line) => line.startsWith(":"))) continue;
    const names = lines.map((line) => line.split(":", 1)[0]).sort().join();
    if (names !== "data,id") wrong.push(`a frame with the lines ${names}`);
    const id = /^id: (\d+\.\d+)\.(\d+)$/m.exec(block);
    if (!id) wrong.push(`no position in ${block.slice(0, 60)}`);
    else if (gaps ? Number(id[2]) < expected : Number(id[2]) !== expected)
      wrong.push(`position ${id[2]} where ${expected} was due`);
    expected = (id ? Number(id[2]) : expected) + 1;
  }
  return wrong;
}

export function events(text) {
  const data = text.split("\n\n").flatMap((block) => block.split("\n").filter((line) => line.startsWith("data:")));
  return data.map((line) => JSON.parse(line.slice("data:".length)));
}

export function shapes(found, schema) {
  const wrong = [];
  found.forEach((event, place) => {
    const read = schema.safeParse(event);
    const where = `${place} ${event.type}`;
    if (!read.success) wrong.push(`${where}: ${read.error.issues.map((issue) => `${issue.path.join("/")} ${issue.message}`)}`);
    if (!Number.isSafeInteger(event.timestamp)) wrong.push(`${where}: timestamp ${event.timestamp}`);
    else if (event.timestamp < 1e12) wrong.push(`${where}: timestamp ${event.timestamp} is not in milliseconds`);
    wrong.push(...nulls(event, where));
  });
  return wrong;
}

// In `metadata` the members may be null, the object itself may not.
function nulls(value, where) {
  const wrong = [];
  for (const [name, member] of Object.entries(value)) {
    if (FREE.has(name)) continue;
    if (member === null) wrong.push(`${where}/${name} is null`);
    else if (typeof member === "object" && name !== "metadata") wrong.push(...nulls(member, `${where}/${name}`));
  }
  return wrong;
}

export function order(found, client, from) {
  return new Promise((resolve) => {
    from(found).pipe(client.transformChunks(false), client.verifyEvents(false)).subscribe({
      error: (error) => resolve([`out of order: ${error.message}`]),
      complete: () => resolve([]),
    });
  });
}

export function identity(found, sent) {
  const wrong = [];
  const first = found[0];
  const last = found.at(-1);
  if (first?.type !== "RUN_STARTED") wrong.push(`the first event is ${first?.type}`);
  if (!["RUN_FINISHED", "RUN_ERROR"].includes(last?.type)) wrong.push(`the last event is ${last?.type}`);
  for (const event of found.filter(({ type }) => type === "RUN_STARTED" || type === "RUN_FINISHED"))
    for (const name of ["threadId", "runId"])
      if (event[name] !== sent[name]) wrong.push(`${event.type} has ${name} ${event[name]}, asked was ${sent[name]}`);
  if (first?.protocolVersion !== "1.0") wrong.push(`protocolVersion ${first?.protocolVersion}`);
  wrong.push(...unclosed(found));
  return wrong;
}

// A failed run closes what it opened too, although clients do not ask for it.
function unclosed(found) {
  const open = new Map();
  for (const event of found) {
    const [, span, edge] = /^(\w+)_(START|STARTED|END|FINISHED|ERROR)$/.exec(event.type) ?? [];
    if (!span || span === "RUN") continue;
    const key = `${span} ${event.toolCallId ?? event.messageId ?? event.stepName ?? event.subagentRunId}`;
    if (edge.startsWith("START")) open.set(key, true);
    else open.delete(key);
  }
  return [...open.keys()].map((key) => `${key} was never closed`);
}
