import * as api from "./api.js";
import { Problem } from "./api.js";
import { Conversation } from "./conversation.js";
import { follow, isWhole, wait } from "./follower.js";
import { newId } from "./ids.js";
import { readEvents } from "./stream.js";
import { loadTurns } from "./turns.js";

const RELOADS = 5;
const RELOAD_PAUSE = 100;

/**
 * The thread that the page shows: its messages, and the run that is live on it.
 *
 * `listener` hears `changed(message)`, `reset()`, `running(runId|null)`, `connection(state, retry)`,
 * `ended(event)`, `lost()` when words of the run that ended were shown but not stored and are gone now,
 * `broke(problem)` when following is refused for good, and `news()` when a list of threads would show something
 * else now.
 */
export class OpenThread {
  constructor(threadId, listener) {
    this.id = threadId;
    this.listener = listener;
    this.conversation = new Conversation((message) => this.#tell("changed", message));
    this.record = null;
    this.runId = null;
    this.older = null;
    this.leaving = new AbortController();
  }

  get signal() {
    return this.leaving.signal;
  }

  /** Once the thread was left nobody hears of it. */
  #tell(what, ...words) {
    if (!this.signal.aborted) this.listener[what](...words);
  }

  /** Lets go of the thread. Its run goes on; it is the server's. */
  leave() {
    this.leaving.abort();
  }

  /**
   * Loads the newest messages and joins the run that is live, if any. Tries until the server can be reached.
   *
   * @throws {Problem} when there is no such thread
   */
  async load() {
    await this.#reach(() => this.#load());
  }

  /** What `action` gives, tried until the server can be reached; undefined where the thread is left before. */
  async #reach(action) {
    let pause = 400;
    while (!this.signal.aborted) {
      try {
        return await action();
      } catch (error) {
        if (this.signal.aborted) break;
        if (error instanceof Problem && !error.passes) throw error;
        await wait(pause, this.signal, (retry) => this.#tell("connection", "lost", retry));
        pause = Math.min(pause * 2, 10_000);
      }
    }
    return undefined;
  }

  /**
   * First whether something runs, then the messages: a run that starts in between shows in the thread's status
   * afterwards, and then it is asked once more.
   */
  async #load() {
    for (let reload = 0; reload < RELOADS; reload += 1) {
      const live = await api.followThread(this.id, this.signal);
      if (live !== null) {
        await this.#join(live);
        return;
      }
      const page = await this.#page({});
      this.record = await api.readThread(this.id, this.signal);
      if (this.record.lastRunStatus !== "running" || reload === RELOADS - 1) {
        this.#show(page);
        return;
      }
      await wait(RELOAD_PAUSE, this.signal);
    }
  }

  /**
   * A live run is told from its first event, what is stored of it already included. So only the messages
   * before it are loaded, which no later event changes, and the run's own come from its stream.
   */
  async #join(live) {
    const events = readEvents(live);
    try {
      const first = await events.next();
      if (first.done) throw new TypeError("the stream ended before it began");
      const { runId } = first.value.event;
      await this.#showBefore(runId);
      this.#followOn(runId, chain(first.value, events));
    } catch (error) {
      void events.return();
      throw error;
    }
  }

  async #showBefore(runId) {
    this.record = await api.readThread(this.id, this.signal);
    const { previousRunId } = await api.readRun(this.id, runId, this.signal);
    const empty = { messages: [], before: null };
    this.#show(previousRunId === null ? empty : await this.#page({ runId: previousRunId }));
  }

  #followOn(runId, events) {
    let opened = events;
    const connect = async (position) => {
      const once = opened;
      opened = null;
      return once ?? readEvents(await api.followRun(this.id, runId, position, this.signal));
    };
    this.#follow(runId, connect).catch((error) => this.#tell("broke", error));
  }

  #page(where) {
    return loadTurns(this.id, where, this.signal);
  }

  #show(page) {
    this.conversation.reset(page.messages);
    this.older = page.before;
    this.#tell("connection", "open", () => {});
    this.#tell("reset");
  }

  /** Loads the page before the oldest turn held; does nothing at the start of history. */
  async loadOlder() {
    if (this.older === null || this.loadingOlder) return;
    this.loadingOlder = true;
    try {
      const page = await this.#page({ before: this.older });
      this.conversation.prepend(page.messages);
      this.older = page.before;
    } finally {
      this.loadingOlder = false;
    }
  }

  /**
   * Says `text` to the agent and follows the answer to its end.
   *
   * The ids are made here and kept for every attempt, so that a turn which was accepted although its answer
   * got lost is found again and not said twice.
   *
   * @throws {Problem} when the turn is refused; nothing of it is shown any more then. What is refused later,
   * once the turn was accepted, is told by `broke`.
   */
  async send(text, agent) {
    const runId = newId("run");
    const message = { id: newId("msg"), role: "user", content: text };
    const input = {
      threadId: this.id,
      runId,
      protocolVersion: "1.0",
      state: {},
      messages: [message],
      tools: [],
      context: [],
      forwardedProps: {},
    };
    const turn = { accepted: false };
    this.conversation.put({ ...message, runId, sending: true });
    try {
      await this.#follow(runId, (position) => this.#connect(turn, agent, input, position));
    } catch (error) {
      if (turn.accepted) {
        this.#tell("broke", error);
        return;
      }
      this.conversation.remove(message.id);
      throw error;
    }
  }

  async #connect(turn, agent, input, position) {
    if (turn.accepted || turn.tried) {
      try {
        const events = readEvents(await api.followRun(this.id, input.runId, position, this.signal));
        turn.accepted = true;
        return events;
      } catch (error) {
        // The first attempt never arrived.
        if (turn.accepted || !(error instanceof Problem) || error.status !== 404) throw error;
      }
    }
    turn.tried = true;
    const events = readEvents(await api.startRun(agent, input, this.signal));
    turn.accepted = true;
    return events;
  }

  async #follow(runId, connect) {
    let last = null;
    let wasLost = false;
    this.#setRun(runId);
    try {
      last = await follow({
        connect,
        onEvent: (event) => {
          this.conversation.apply(event);
          if (event.type === "RUN_STARTED") this.#tell("news");
        },
        onConnection: (state, retry) => {
          wasLost ||= state === "lost";
          this.#tell("connection", state, retry);
        },
        signal: this.signal,
      });
      if (last !== null) this.#tell("ended", last);
    } finally {
      if (!this.signal.aborted) {
        this.conversation.close();
        this.#tell("connection", "open", () => {});
        this.#setRun(null);
        this.#tell("news");
      }
    }
    if (last !== null && (wasLost || !isWhole(last))) await this.#settle(runId);
  }

  /** What was streamed may not be what is stored, if the run broke off or a part of its stream was missed. */
  async #settle(runId) {
    const page = await this.#reach(() => this.#page({ runId, limit: 1 }));
    if (page === undefined) return;
    this.#tell("connection", "open", () => {});
    if (this.conversation.settle(runId, page.messages)) this.#tell("lost");
  }

  #setRun(runId) {
    this.runId = runId;
    this.#tell("running", runId);
  }

  /** Asks the live run to end; its last event follows by the stream. */
  async stop() {
    if (this.runId !== null) await api.stopRun(this.id, this.runId);
  }
}

async function* chain(first, rest) {
  yield first;
  yield* rest;
}
