import { mediaOf, textOf } from "./content.js";
import { element, setText } from "./element.js";
import { timeOf } from "./times.js";

/** A folded card for one tool call: its name and state, and inside its arguments and what came of it. */
export class ToolCard {
  constructor() {
    this.name = element("span", { class: "card-name" });
    this.state = element("span", { class: "card-state" });
    this.when = element("span", { class: "card-time" });
    this.arguments = document.createTextNode("");
    this.result = document.createTextNode("");
    this.media = element("div", { class: "media" });
    this.resultPart = element(
      "div",
      { class: "card-part" },
      element("h4", {}, "Result"),
      element("pre", { tabindex: "0" }, this.result),
      this.media,
    );
    this.root = element(
      "details",
      { class: "card tool" },
      element(
        "summary",
        {},
        element("span", { class: "dot", "aria-hidden": "true" }),
        this.name,
        this.state,
        this.when,
      ),
      element(
        "div",
        { class: "card-part" },
        element("h4", {}, "Arguments"),
        element("pre", { tabindex: "0" }, this.arguments),
      ),
      this.resultPart,
    );
    this.shownTime = undefined;
    this.shownMedia = undefined;
  }

  /**
   * @param {object|null} call  null where the call is on a page that is not loaded
   * @param {object|undefined} result  the tool message that answers it
   * @param {"writing"|"running"|"over"} phase  of the call while it has no result
   * @param {string|null|undefined} calledAt  the time to show while there is no result, if any
   */
  update(call, result, phase, calledAt) {
    this.name.textContent = call?.function.name ?? "Result of an earlier call";
    setText(this.arguments, pretty(call?.function.arguments ?? "", phase === "writing"));
    this.arguments.parentElement.parentElement.hidden = call === null;
    this.#state(result, phase);
    this.resultPart.hidden = result === undefined;
    if (result !== undefined) this.#result(result);
    this.#showTime(result === undefined ? calledAt : (result.metadata?.createdAt ?? null));
  }

  #state(result, phase) {
    const failed = result?.metadata?.isError === true || typeof result?.error === "string";
    const state = result === undefined ? phase : failed ? "failed" : "done";
    this.root.dataset.state = state;
    this.state.textContent = {
      writing: "preparing…",
      running: "running…",
      over: "no result",
      failed: "failed",
      done: "",
    }[state];
  }

  #result(result) {
    setText(this.result, pretty(textOf(result.content), false));
    if (result.content === this.shownMedia) return;
    this.shownMedia = result.content;
    this.media.replaceChildren(...mediaOf(result.content));
  }

  #showTime(createdAt) {
    if (createdAt === this.shownTime) return;
    this.shownTime = createdAt;
    this.when.replaceChildren(...(createdAt === undefined ? [] : [timeOf(createdAt)]));
  }
}

/** JSON laid out in lines; anything else, and what is still being written, as it is. */
function pretty(text, unfinished) {
  if (unfinished || !/^\s*[[{]/.test(text)) return text;
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
