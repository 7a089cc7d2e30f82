import { mediaOf, textOf } from "./content.js";
import { element, setText } from "./element.js";
import { timeOf } from "./times.js";
import { ToolCard } from "./tool-card.js";

const SPEAKERS = { user: "You said", assistant: "The assistant said" };
const CUT = {
  length: "Cut off: the answer reached its greatest length.",
  error: "Incomplete: the answer broke off here.",
  aborted: "Incomplete: this was stopped.",
};

/**
 * One message in the transcript, kept up to date in place. Its text comes from text alone; tool calls, their
 * results and reasoning are folded cards beside it.
 */
export class MessageView {
  constructor(message) {
    this.text = document.createTextNode("");
    this.words = element("div", { class: "words" }, this.text);
    this.media = element("div", { class: "media" });
    this.cards = element("div", { class: "cards" });
    this.cut = element("p", { class: "cut", hidden: true });
    this.foot = element("span", { class: "foot" });
    this.sender = element("span", { class: "sender", hidden: true });
    this.byCall = new Map();
    const speaker = SPEAKERS[message.role];
    this.root = element("li", { class: `message ${message.role}`, "data-id": message.id });
    if (speaker !== undefined) this.root.append(element("span", { class: "unseen" }, `${speaker}: `));
    this.root.append(this.sender, ...this.#body(message.role));
    this.shownFoot = null;
    this.shownMedia = null;
  }

  #body(role) {
    if (role !== "reasoning") return [this.words, this.media, this.cards, this.cut, this.foot];
    const dot = element("span", { class: "dot", "aria-hidden": "true" });
    this.foot.className = "card-time";
    const summary = element(
      "summary",
      {},
      dot,
      element("span", { class: "card-name" }, "Reasoning"),
      this.foot,
    );
    return [element("details", { class: "card reasoning" }, summary, this.words)];
  }

  /**
   * @param {object} message
   * @param {import("./conversation.js").Conversation} held
   * @param {{running: boolean, showSender: boolean}} around
   */
  update(message, held, around) {
    this.root.classList.toggle("writing", message.writing === true);
    this.root.setAttribute("aria-busy", String(message.writing === true));
    if (message.role === "tool") {
      this.#card(message.toolCallId).update(null, message, "over");
      return;
    }
    const text = textOf(message.content);
    setText(this.text, text);
    const writesCalls = message.toolCalls?.length > 0;
    this.words.hidden = text === "" && message.role !== "reasoning" && !(message.writing && !writesCalls);
    this.#showMedia(message);
    this.#showCut(message);
    this.#showSender(message, around.showSender);
    this.#showCalls(message, held, around.running);
    this.#showFoot(message, around.running);
  }

  /** Beside calls alone there is one time: the card has that of the call until it has that of the result. */
  #showCalls(message, held, running) {
    const calls = message.toolCalls ?? [];
    const alone = calls.length > 0 && this.words.hidden && this.cut.hidden && !this.media.hasChildNodes();
    this.foot.hidden = alone;
    const calledAt = alone ? message.metadata?.createdAt : undefined;
    for (const call of calls) {
      this.#card(call.id).update(call, held.results.get(call.id), phaseOf(call, held, running), calledAt);
    }
    for (const [id, card] of this.byCall) {
      if (calls.some((call) => call.id === id)) continue;
      card.root.remove();
      this.byCall.delete(id);
    }
  }

  #card(callId) {
    if (!this.byCall.has(callId)) {
      const card = new ToolCard();
      this.byCall.set(callId, card);
      this.cards.append(card.root);
    }
    return this.byCall.get(callId);
  }

  #showMedia(message) {
    if (this.shownMedia === message.content || !Array.isArray(message.content)) return;
    this.shownMedia = message.content;
    this.media.replaceChildren(...mediaOf(message.content));
  }

  #showCut(message) {
    const words = CUT[message.metadata?.stopReason];
    this.cut.hidden = words === undefined;
    this.cut.textContent = words ?? "";
  }

  #showSender(message, shown) {
    const sender = message.metadata?.senderId ?? message.name;
    this.sender.hidden = !shown;
    this.sender.textContent = shown ? (typeof sender === "string" ? sender : "sender unknown") : "";
  }

  /** The time, once it is known: a message gets it when it is finished, which is when it is stored. */
  #showFoot(message, running) {
    const words = footOf(message, running);
    const foot = words ?? message.metadata?.createdAt ?? null;
    if (foot === this.shownFoot && this.foot.hasChildNodes()) return;
    this.shownFoot = foot;
    this.foot.replaceChildren(words === null ? timeOf(foot) : element("span", { class: "time" }, words));
  }
}

/** What stands in the place of the time; null where the time belongs there. */
function footOf(message, running) {
  if (message.sending) return "sending…";
  if (message.role === "user" || "createdAt" in (message.metadata ?? {})) return null;
  return message.writing || running ? "writing…" : "not saved";
}

function phaseOf(call, held, running) {
  if (held.writingCalls.has(call.id)) return "writing";
  return running ? "running" : "over";
}
