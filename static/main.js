import * as api from "./api.js";
import { Composer } from "./composer.js";
import { askDelete, askTitle } from "./dialogs.js";
import { byId } from "./element.js";
import { wait } from "./follower.js";
import { newId } from "./ids.js";
import { Notices, wordsFor } from "./notices.js";
import { OpenThread } from "./open-thread.js";
import { Sidebar } from "./sidebar.js";
import { linkTo, ThreadList } from "./thread-list.js";
import { keepTime } from "./times.js";
import { Transcript } from "./transcript.js";

/** The page: one open thread, or a new one that nothing has been said on yet. */
class ChatPage {
  constructor() {
    this.thread = null;
    this.isNew = true;
    this.agents = [];
    this.started = null;
    this.loaded = null;
    this.notices = new Notices();
    this.sidebar = new Sidebar();
    this.transcript = new Transcript(() => this.#loadOlder());
    this.threads = new ThreadList((threads) => this.#listed(threads));
    this.composer = new Composer({ onSend: (text) => this.#send(text), onStop: () => this.#stop() });
    byId("rename").addEventListener("click", () => this.#rename());
    byId("delete").addEventListener("click", () => this.#delete());
    byId("new-chat").addEventListener("click", () => this.#newChat());
    addEventListener("hashchange", () => this.#route());
    keepTime();
  }

  async start() {
    this.#route();
    void this.threads.refresh();
    this.agents = await this.#listAgents();
    this.composer.setAgents(this.agents);
    this.composer.choose(this.thread.record?.agent);
    this.#welcome();
  }

  /** Nothing can be said before it is known to whom, so this is tried until the server answers. */
  async #listAgents() {
    const { signal } = new AbortController();
    for (let pause = 500; ; pause = Math.min(2 * pause, 10_000)) {
      try {
        return await api.listAgents();
      } catch (error) {
        this.notices.error(wordsFor(error));
        await wait(pause, signal);
        this.notices.clear();
      }
    }
  }

  /** Opens what the address names. */
  #route() {
    const threadId = threadOf(location.hash);
    if (this.thread !== null && threadId === (this.isNew ? null : this.thread.id)) return;
    const left = this.thread;
    left?.leave();
    this.isNew = threadId === null;
    this.thread = new OpenThread(threadId ?? newId("thread"), this.#listener());
    this.ownNews = false;
    if (left !== null) this.composer.switchDraft(left.id, this.thread.id);
    this.notices.clear();
    this.notices.connected("open");
    byId("loading").hidden = true;
    this.composer.setRunning(false);
    this.threads.select(threadId);
    this.sidebar.close();
    this.transcript.show(this.thread);
    this.#setTitle(
      threadId === null
        ? "New chat"
        : this.threads.threads.find((known) => known.threadId === threadId)?.title,
    );
    this.#welcome();
    this.loaded = threadId === null ? null : this.#load();
    this.composer.focus();
  }

  #newChat() {
    this.sidebar.close();
    this.composer.focus();
  }

  /** What the open thread tells. */
  #listener() {
    return {
      changed: (message) => this.transcript.changed(message),
      reset: () => this.transcript.show(this.thread),
      running: (runId) => {
        this.ownNews = true;
        this.composer.setRunning(runId !== null);
        this.transcript.refresh();
      },
      connection: (state, retry) => this.notices.connected(state, retry),
      ended: (event) => this.#ended(event),
      lost: () => this.notices.error("The answer broke off, and its unfinished words were lost."),
      broke: (problem) => this.notices.error(wordsFor(problem)),
      news: () => void this.threads.refresh(),
    };
  }

  async #load() {
    const { thread } = this;
    byId("loading").hidden = false;
    try {
      await thread.load();
    } catch (error) {
      if (thread !== this.thread) return;
      if (error.status === 404) this.#missing();
      else this.notices.error(wordsFor(error));
      return;
    } finally {
      if (thread === this.thread) byId("loading").hidden = true;
    }
    if (thread !== this.thread || thread.record === null) return;
    this.#setTitle(thread.record.title);
    this.composer.choose(thread.record.agent);
  }

  /** What is written below a link that leads nowhere starts a conversation of its own. */
  #missing() {
    history.replaceState(null, "", "#/");
    this.#route();
    this.notices.error(
      "There is no such conversation. It may have been deleted; what you write here starts a new one.",
    );
  }

  async #loadOlder() {
    const { thread } = this;
    if (thread === null || thread.older === null) return;
    try {
      await this.transcript.keepingView(() => thread.loadOlder());
    } catch (error) {
      if (thread === this.thread) this.notices.error(wordsFor(error));
    }
  }

  async #send(text) {
    const { thread } = this;
    // What is sent while the page is still loading waits, so that its place is behind what was said before.
    await Promise.all([this.started, this.loaded]);
    if (thread !== this.thread || thread.runId !== null) {
      this.composer.giveBack(text);
      return;
    }
    this.notices.clear();
    if (this.isNew) {
      this.isNew = false;
      history.pushState(null, "", linkTo(thread.id));
      this.threads.select(thread.id);
      this.#welcome();
    }
    this.transcript.stick();
    try {
      const answered = thread.send(text, this.composer.agent);
      this.transcript.stick();
      await answered;
    } catch (error) {
      if (thread !== this.thread) return;
      this.composer.giveBack(text);
      this.notices.error(wordsFor(error));
      if (error.code === "thread_busy") this.loaded = this.#load();
    }
  }

  async #stop() {
    try {
      await this.thread.stop();
    } catch (error) {
      this.composer.setRunning(this.thread.runId !== null);
      this.notices.error(wordsFor(error));
    }
  }

  /** The transcript says how it ended; who reads further up is told where they look. */
  #ended(event) {
    if (event.type === "RUN_ERROR" && !this.transcript.sticky) this.notices.error(event.message);
  }

  /** The list knows of what others did: a new title, or a run that was started elsewhere. */
  #listed(threads) {
    const listed = threads.find((thread) => thread.threadId === this.thread.id);
    if (listed === undefined || this.isNew) return;
    this.#setTitle(listed.title);
    if (this.thread.runId !== null) return;
    const known = this.thread.record;
    const isForeign = known !== null && known.runCount !== listed.runCount && !this.ownNews;
    // Who reads further up is not taken away from there; the next list tells of it again.
    if (isForeign && !this.transcript.sticky) return;
    this.ownNews = false;
    this.thread.record = listed;
    if (isForeign) this.loaded = this.#load();
  }

  async #rename() {
    const { thread } = this;
    const title = await askTitle(byId("title").textContent);
    if (title === null) return;
    try {
      const record = await api.renameThread(thread.id, title);
      if (thread === this.thread) this.#setTitle(record.title);
      await this.threads.refresh();
    } catch (error) {
      this.notices.error(wordsFor(error));
    }
  }

  async #delete() {
    const { thread } = this;
    if (!(await askDelete())) return;
    try {
      await api.deleteThread(thread.id);
      if (thread === this.thread) location.hash = "#/";
      await this.threads.refresh();
    } catch (error) {
      this.notices.error(wordsFor(error));
    }
  }

  #setTitle(title) {
    const shown = title ?? "Untitled";
    byId("title").textContent = shown;
    document.title = this.isNew ? "Verbatim" : `${shown} · Verbatim`;
    byId("thread-actions").hidden = this.isNew;
  }

  #welcome() {
    byId("welcome").hidden = !this.isNew;
    const [first] = this.agents;
    const said =
      first === undefined
        ? ""
        : first.description === ""
          ? first.name
          : `${first.name}: ${first.description}`;
    byId("welcome-agent").textContent =
      this.agents.length > 1 ? `${this.agents.length} agents are here; choose one below.` : said;
  }
}

/** The thread that an address within the page names; null for a new one. */
function threadOf(hash) {
  const found = /^#\/threads\/([^/]+)$/.exec(hash);
  if (found === null) return null;
  try {
    return decodeURIComponent(found[1]);
  } catch {
    return null;
  }
}

const page = new ChatPage();
page.started = page.start();
