import { byId, element } from "./element.js";

/** Words above the message field: what went wrong, until it is dismissed, and a lost connection. */
export class Notices {
  constructor() {
    this.root = byId("notices");
    this.connection = element("div", { class: "notice lost", role: "status" });
    this.current = element("div", { class: "notice-place" });
    this.root.append(this.connection, this.current);
    this.connection.hidden = true;
  }

  /** Says what went wrong. Plain words only. */
  error(words) {
    const close = element("button", { class: "button quiet", type: "button" }, "Dismiss");
    close.addEventListener("click", () => this.clear());
    this.current.replaceChildren(
      element("div", { class: "notice error", role: "alert" }, element("span", {}, words), close),
    );
  }

  clear() {
    this.current.replaceChildren();
  }

  /** @param {"open"|"lost"} state */
  connected(state, retry) {
    this.connection.hidden = state === "open";
    if (state === "open") {
      this.connection.replaceChildren();
      return;
    }
    const again = element("button", { class: "button quiet", type: "button" }, "Try now");
    again.addEventListener("click", retry);
    this.connection.replaceChildren(element("span", {}, "The connection is lost. Trying again…"), again);
  }
}

/** What to say of something that was refused or failed: the server's public words, or the way on. */
export function wordsFor(error) {
  if (error?.code === "thread_busy") {
    return (
      "This conversation is still answering an earlier message, so yours was not sent. " +
      "Wait for the answer or stop it, and send again."
    );
  }
  if (error?.status !== undefined) return error.message;
  return "The server cannot be reached. Nothing is lost; try again in a moment.";
}
