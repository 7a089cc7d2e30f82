import { textOf } from "./content.js";
import { byId, element } from "./element.js";
import { MessageView } from "./message-view.js";
import { TurnEnd, wordsOfEnd } from "./turn-end.js";

const SHOWN = new Set(["user", "assistant", "reasoning", "tool", "end"]);
const NEAR = 80;
const LONGEST_ANNOUNCEMENT = 600;

/** The list of messages: draws what changed once a frame, and keeps the reader's place. */
export class Transcript {
  constructor(onOlder) {
    this.scroll = byId("scroll");
    this.list = byId("transcript");
    this.older = byId("older");
    this.jump = byId("jump");
    this.waiting = byId("waiting");
    this.announcer = byId("announcer");
    this.views = new Map();
    this.dirty = new Set();
    this.announced = new Set();
    this.thread = null;
    this.frame = null;
    this.sticky = true;
    byId("load-older").addEventListener("click", onOlder);
    this.jump.addEventListener("click", () => this.#toBottom());
    this.scroll.addEventListener("scroll", () => this.#scrolled(), { passive: true });
    new ResizeObserver(() => this.#keepPlace()).observe(this.scroll);
    new IntersectionObserver((seen) => seen.some((entry) => entry.isIntersecting) && onOlder(), {
      root: this.scroll,
      rootMargin: "300px 0px 0px 0px",
    }).observe(this.older);
  }

  /** Shows a thread from its end. */
  show(thread) {
    this.thread = thread;
    this.views.clear();
    this.dirty.clear();
    this.announced.clear();
    this.list.replaceChildren();
    for (const message of thread.conversation.messages) {
      this.dirty.add(message);
      this.announced.add(message.id);
    }
    this.#draw();
    this.#toBottom();
  }

  /** Draws this message with the next frame. */
  changed(message) {
    this.dirty.add(message);
    this.frame ??= requestAnimationFrame(() => this.#draw());
  }

  /** Draws everything again, as when a run begins or ends. */
  refresh() {
    for (const message of this.thread.conversation.messages) this.dirty.add(message);
    this.frame ??= requestAnimationFrame(() => this.#draw());
  }

  /** Goes to the end, and stays there while more arrives. */
  stick() {
    this.#toBottom();
  }

  /** Runs `change`, which adds older messages, without moving what is in view. */
  async keepingView(change) {
    await change();
    const anchor = this.list.firstElementChild;
    const before = anchor?.getBoundingClientRect().top;
    this.#draw();
    if (anchor?.isConnected) this.scroll.scrollTop += anchor.getBoundingClientRect().top - before;
  }

  #draw() {
    if (this.frame !== null) cancelAnimationFrame(this.frame);
    this.frame = null;
    if (this.thread === null) return;
    const held = this.thread.conversation;
    const several = sendersOf(held.messages);
    if (several.key !== this.shownSenders) {
      this.shownSenders = several.key;
      for (const message of held.messages) this.dirty.add(message);
    }
    this.#place(held);
    for (const message of this.dirty) {
      const view = this.views.get(message.id);
      view?.update(message, held, {
        running: this.thread.runId !== null,
        showSender: several.has(message.role),
      });
      this.#announce(message);
    }
    this.dirty.clear();
    this.waiting.hidden = this.thread.runId === null || held.messages.some((message) => message.writing);
    this.older.hidden = this.thread.older === null;
    this.#keepPlace();
  }

  /** Brings the items into the order of the messages, touching only those that are not there yet. */
  #place(held) {
    let next = this.list.firstElementChild;
    const wanted = new Set();
    for (const message of held.messages) {
      if (!isShown(message, held)) continue;
      wanted.add(message.id);
      let view = this.views.get(message.id);
      if (view === undefined) {
        view = message.role === "end" ? new TurnEnd(message) : new MessageView(message);
        this.views.set(message.id, view);
        this.dirty.add(message);
      }
      if (view.root === next) next = next.nextElementSibling;
      else this.list.insertBefore(view.root, next);
    }
    if (wanted.size === this.views.size) return;
    for (const [id, view] of this.views) {
      if (wanted.has(id)) continue;
      view.root.remove();
      this.views.delete(id);
    }
  }

  /** Tells a screen reader of an answer once it is finished or failed, and never of its pieces. */
  #announce(message) {
    const ends = message.role === "end";
    const finished =
      message.role === "assistant" && !message.writing && "createdAt" in (message.metadata ?? {});
    if (!(ends || finished) || this.announced.has(message.id)) return;
    this.announced.add(message.id);
    const text = ends ? wordsOfEnd(message) : textOf(message.content).trim();
    if (text !== "") this.announcer.replaceChildren(element("span", {}, text.slice(0, LONGEST_ANNOUNCEMENT)));
  }

  #scrolled() {
    const { scrollHeight, scrollTop, clientHeight } = this.scroll;
    this.sticky = scrollHeight - scrollTop - clientHeight < NEAR;
    this.jump.hidden = this.sticky;
  }

  #keepPlace() {
    if (this.sticky) this.scroll.scrollTop = this.scroll.scrollHeight;
    else this.#scrolled();
  }

  #toBottom() {
    this.sticky = true;
    this.jump.hidden = true;
    this.scroll.scrollTop = this.scroll.scrollHeight;
  }
}

/** A result belongs into its call's card; it stands alone only while the call's page is not loaded. */
function isShown(message, held) {
  if (message.role === "tool") return !held.calls.has(message.toolCallId);
  return SHOWN.has(message.role);
}

/** The roles in which several different senders have written. */
function sendersOf(messages) {
  const byRole = new Map();
  for (const { role, metadata, name } of messages) {
    const sender = metadata?.senderId ?? name;
    if ((role !== "user" && role !== "assistant") || sender === undefined) continue;
    if (!byRole.has(role)) byRole.set(role, new Set());
    byRole.get(role).add(sender);
  }
  const several = [...byRole].filter(([, senders]) => senders.size > 1).map(([role]) => role);
  return { key: several.join(), has: (role) => several.includes(role) };
}
