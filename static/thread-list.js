import * as api from "./api.js";
import { byId, element } from "./element.js";
import { timeSince } from "./times.js";

const BUSY_EVERY = 3_000;
const IDLE_EVERY = 20_000;

/** The address of a thread within the page. */
export const linkTo = (threadId) => `#/threads/${encodeURIComponent(threadId)}`;

/** The list of conversations, newest activity first, refreshed while the page is in view. */
export class ThreadList {
  /** @param {(threads: object[]) => void} onLoaded  called with every fresh first page */
  constructor(onLoaded) {
    this.list = byId("threads");
    this.note = byId("threads-note");
    this.more = byId("more-threads");
    this.hidden = byId("show-hidden");
    this.onLoaded = onLoaded;
    this.threads = [];
    this.cursor = null;
    this.current = null;
    this.asked = 0;
    this.items = new Map();
    this.hidden.addEventListener("change", () => this.refresh());
    this.more.addEventListener("click", () => this.#loadMore());
    document.addEventListener("visibilitychange", () => document.hidden || this.refresh());
  }

  /** Marks the thread that is open; null for none. */
  select(threadId) {
    this.current = threadId;
    for (const [id, item] of this.items) mark(item, id === threadId);
  }

  /** Loads the list again. Answers that come out of order are dropped. */
  async refresh() {
    clearTimeout(this.timer);
    this.asked += 1;
    const asked = this.asked;
    const page = await api.listThreads({ hidden: this.hidden.checked }).catch(() => null);
    if (asked !== this.asked) return;
    if (page !== null) {
      this.#keepFrom(page);
      this.#draw();
      this.onLoaded(page.threads);
    } else if (this.threads.length === 0) {
      this.#say("The list could not be loaded. Trying again…");
    }
    this.#again();
  }

  /** Later pages that were loaded stay, behind the fresh first one. */
  #keepFrom(page) {
    const fresh = new Set(page.threads.map((thread) => thread.threadId));
    const paged = this.paged === true && this.shownHidden === this.hidden.checked && page.nextCursor !== null;
    const rest = paged
      ? this.threads.slice(page.threads.length).filter((thread) => !fresh.has(thread.threadId))
      : [];
    this.threads = [...page.threads, ...rest];
    if (!paged) this.cursor = page.nextCursor;
    this.paged = paged;
    this.shownHidden = this.hidden.checked;
  }

  async #loadMore() {
    if (this.cursor === null) return;
    this.more.disabled = true;
    const page = await api
      .listThreads({ hidden: this.hidden.checked, cursor: this.cursor })
      .catch(() => null);
    this.more.disabled = false;
    if (page === null) return;
    const held = new Set(this.threads.map((thread) => thread.threadId));
    this.threads.push(...page.threads.filter((thread) => !held.has(thread.threadId)));
    this.cursor = page.nextCursor;
    this.paged = true;
    this.#draw();
  }

  #again() {
    const busy =
      this.threads.length === 0 || this.threads.some((thread) => thread.lastRunStatus === "running");
    this.timer = setTimeout(() => document.hidden || this.refresh(), busy ? BUSY_EVERY : IDLE_EVERY);
  }

  /** Items are kept and only moved, so that the focus stays where it is. */
  #draw() {
    const items = new Map();
    for (const thread of this.threads) {
      const item = this.items.get(thread.threadId) ?? element("li", { class: "thread" }, element("a", {}));
      fill(item, thread);
      mark(item, thread.threadId === this.current);
      items.set(thread.threadId, item);
    }
    this.items = items;
    for (const item of [...this.list.children]) if (![...items.values()].includes(item)) item.remove();
    let next = this.list.firstElementChild;
    for (const item of items.values()) {
      if (item === next) next = next.nextElementSibling;
      else this.list.insertBefore(item, next);
    }
    this.more.hidden = this.cursor === null;
    this.#say(this.threads.length === 0 ? "No conversations yet." : "");
  }

  #say(words) {
    this.note.textContent = words;
    this.note.hidden = words === "";
  }
}

function mark(item, current) {
  const link = item.firstElementChild;
  if (current) link.setAttribute("aria-current", "page");
  else link.removeAttribute("aria-current");
}

function fill(item, thread) {
  const key = JSON.stringify(thread);
  if (item.dataset.key === key) return;
  item.dataset.key = key;
  item.dataset.id = thread.threadId;
  const link = item.firstElementChild;
  link.href = linkTo(thread.threadId);
  const marks = [];
  if (thread.lastRunStatus === "running") marks.push(element("span", { class: "mark running" }, "answering"));
  if (thread.lastRunStatus === "failed") marks.push(element("span", { class: "mark failed" }, "failed"));
  if (thread.hidden) marks.push(element("span", { class: "mark" }, "hidden"));
  if (thread.archivedAt !== null) marks.push(element("span", { class: "mark" }, "archived"));
  link.replaceChildren(
    element("span", { class: "thread-title" }, thread.title ?? "Untitled"),
    element("span", { class: "thread-line" }, timeSince(thread.updatedAt), ...marks),
  );
}
