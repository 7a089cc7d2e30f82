/** What the server refuses: its public words, a code for us, and whatever else the problem document holds. */
export class Problem extends Error {
  constructor(status, document) {
    super(typeof document.detail === "string" ? document.detail : `The server answered ${status}.`);
    this.status = status;
    this.code = typeof document.code === "string" ? document.code : "error";
    this.field = document.field;
    this.document = document;
  }

  /** Whether the same request may succeed in a moment. */
  get passes() {
    return [502, 503, 504].includes(this.status);
  }
}

async function request(path, options = {}) {
  const response = await fetch(path, { cache: "no-store", ...options });
  if (response.ok) return response;
  const document = await response.json().catch(() => ({}));
  throw new Problem(response.status, document !== null && typeof document === "object" ? document : {});
}

async function json(path, options) {
  return (await request(path, options)).json();
}

function body(method, value, options = {}) {
  const headers = { "Content-Type": "application/json", ...options.headers };
  return { ...options, method, headers, body: JSON.stringify(value) };
}

function query(members) {
  const given = Object.entries(members).filter(([, value]) => value != null);
  return given.length === 0 ? "" : `?${new URLSearchParams(given)}`;
}

const thread = (threadId) => `threads/${encodeURIComponent(threadId)}`;
const run = (threadId, runId) => `${thread(threadId)}/runs/${encodeURIComponent(runId)}`;

export const listAgents = async () => (await json("agents")).agents;

export const listThreads = ({ cursor, hidden }) =>
  json(`threads${query({ limit: 50, cursor, include_hidden: hidden ? "true" : null })}`);

export const readThread = (threadId, signal) => json(thread(threadId), { signal });

export const renameThread = (threadId, title) => json(thread(threadId), body("PATCH", { title }));

export const deleteThread = (threadId) => request(thread(threadId), { method: "DELETE" });

/** A page of turns, oldest first: those before the run `before`, or of the branch that ends at `runId`. */
export const readTurns = (threadId, { before, runId, limit = 25 }, signal) =>
  json(`${thread(threadId)}/transcript${query({ limit, before_run_id: before, run_id: runId })}`, { signal });

export const readRun = (threadId, runId, signal) => json(run(threadId, runId), { signal });

/** Starts a run and gives the response that streams it. */
export const startRun = (agent, input, signal) =>
  request(
    `agents/${encodeURIComponent(agent)}/run`,
    body("POST", input, { signal, headers: { Accept: "text/event-stream" } }),
  );

/** The stream of what runs on the thread from its first event; null when nothing runs. */
export async function followThread(threadId, signal) {
  const response = await request(`${thread(threadId)}/stream`, { signal });
  return response.status === 204 ? null : response;
}

/** The stream of a run behind `position`, or from its first event where that is null. */
export const followRun = (threadId, runId, position, signal) =>
  request(`${run(threadId, runId)}/events`, {
    signal,
    headers: position === null ? {} : { "Last-Event-ID": position },
  });

export const stopRun = (threadId, runId) => request(`${run(threadId, runId)}/stop`, { method: "POST" });
