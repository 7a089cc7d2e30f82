import { byId, element } from "./element.js";

const TALLEST = 220;

/** The message field with its agent picker and the buttons to send and to stop. */
export class Composer {
  /** @param {{onSend: (text: string) => void, onStop: () => void}} listener */
  constructor({ onSend, onStop }) {
    this.form = byId("composer");
    this.field = byId("message");
    this.sendButton = byId("send");
    this.stopButton = byId("stop");
    this.picker = byId("agent-picker");
    this.select = byId("agent");
    this.hint = byId("hint");
    this.drafts = new Map();
    this.running = false;
    this.onSend = onSend;
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#send();
    });
    this.field.addEventListener("keydown", (event) => {
      // Enter that ends the choice of a character in an input method is not meant for us.
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      this.#send();
    });
    this.field.addEventListener("input", () => this.#fit());
    this.stopButton.addEventListener("click", () => {
      this.stopButton.disabled = true;
      this.stopButton.textContent = "Stopping…";
      onStop();
    });
    this.setRunning(false);
  }

  /** The agents to choose from; the picker shows where there are several. */
  setAgents(agents) {
    this.select.replaceChildren(
      ...agents.map((agent) =>
        element("option", { value: agent.name, title: agent.description }, agent.name),
      ),
    );
    this.picker.hidden = agents.length < 2;
  }

  /** The agent that is chosen. */
  get agent() {
    return this.select.value;
  }

  /** Chooses an agent, if it is one of those there are. */
  choose(agent) {
    if ([...this.select.options].some((option) => option.value === agent)) this.select.value = agent;
  }

  setRunning(running) {
    this.running = running;
    this.sendButton.hidden = running;
    this.stopButton.hidden = !running;
    this.stopButton.disabled = false;
    this.stopButton.textContent = "Stop";
    this.hint.textContent = running
      ? "Answering. Write on; you can send when it is done"
      : "Enter sends, Shift + Enter starts a new line";
    this.#fit();
  }

  /** Gives back what could not be sent, before what has been written since. */
  giveBack(text) {
    this.field.value = this.field.value === "" ? text : `${text}\n\n${this.field.value}`;
    this.#fit();
  }

  /** Puts what was written for one thread aside and brings back what was written for another. */
  switchDraft(from, to) {
    if (from !== null) this.drafts.set(from, this.field.value);
    this.field.value = this.drafts.get(to) ?? "";
    this.#fit();
  }

  focus() {
    this.field.focus();
  }

  #send() {
    const text = this.field.value;
    if (this.running || text.trim() === "") return;
    this.field.value = "";
    this.#fit();
    this.onSend(text);
  }

  #fit() {
    this.sendButton.disabled = this.field.value.trim() === "";
    this.field.style.height = "auto";
    this.field.style.height = `${Math.min(this.field.scrollHeight, TALLEST)}px`;
  }
}
