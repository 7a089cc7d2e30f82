import { Problem } from "./api.js";

const FIRST_PAUSE = 400;
const LONGEST_PAUSE = 10_000;

/** Whether an event is the last of a run. */
export const isTerminal = (event) => event.type === "RUN_FINISHED" || event.type === "RUN_ERROR";

/** Whether a last event says that the run did all that it had begun. */
export const isWhole = (event) => event.type === "RUN_FINISHED" && event.outcome?.type !== "cancelled";

/**
 * Takes the events of one run until its last, over as many connections as that needs.
 *
 * `connect(position)` gives an async iterable of `{id, event}` behind the position, from the first event where
 * that is null. A connection that breaks, or ends without a last event, is made again after a pause that
 * grows; a position that the server no longer knows is dropped, and the run is told again from its start.
 *
 * @param {{
 *   connect: (position: string|null) => Promise<AsyncIterable<{id: string|null, event: object}>>,
 *   onEvent: (event: object) => void,
 *   onConnection: (state: "open"|"lost", retry: () => void) => void,
 *   signal: AbortSignal,
 * }} how
 * @returns {Promise<object|null>} the last event; null where the signal ended the following
 * @throws {Problem} what the server refuses for good
 */
export async function follow({ connect, onEvent, onConnection, signal }) {
  let position = null;
  let pause = FIRST_PAUSE;
  for (;;) {
    try {
      for await (const { id, event } of await connect(position)) {
        if (signal.aborted) return null;
        onConnection("open", () => {});
        pause = FIRST_PAUSE;
        position = id ?? position;
        attempt(onEvent, event);
        if (isTerminal(event)) return event;
      }
    } catch (error) {
      if (signal.aborted) return null;
      if (isStale(error) && position !== null) {
        position = null;
        continue;
      }
      if (error instanceof Problem && !error.passes) throw error;
    }
    if (signal.aborted) return null;
    await wait(pause, signal, (retry) => onConnection("lost", retry));
    pause = Math.min(pause * 2, LONGEST_PAUSE);
  }
}

/** A fault of the page's own is reported as one; it must not look like a lost connection. */
function attempt(onEvent, event) {
  try {
    onEvent(event);
  } catch (fault) {
    reportError(fault);
  }
}

const isStale = (error) =>
  error instanceof Problem && error.status === 422 && error.field === "Last-Event-ID";

/** Waits, until the time is over, the browser is online again, `retry` is called or the signal is given. */
export function wait(milliseconds, signal, onWaiting = () => {}) {
  return new Promise((resolve) => {
    const over = () => {
      clearTimeout(timer);
      removeEventListener("online", over);
      signal.removeEventListener("abort", over);
      resolve();
    };
    const timer = setTimeout(over, milliseconds * (0.8 + 0.4 * Math.random()));
    addEventListener("online", over);
    signal.addEventListener("abort", over);
    onWaiting(over);
  });
}
