import { element } from "./element.js";

/**
 * The item that stands behind a turn which failed or was stopped: `{id, role: "end", runId, status, reason}`.
 * Null for any other end, and where the turn's last words are marked as stopped themselves.
 */
export function endOf(runId, status, reason, said) {
  const tells = said.some(({ metadata }) => metadata?.stopReason === "aborted");
  if (status !== "failed" && (status !== "stopped" || tells)) return null;
  return { id: `end of ${runId}`, role: "end", runId, status, reason };
}

/** What a person is told of such an end. */
export function wordsOfEnd({ status, reason }) {
  if (status === "stopped") return "Stopped";
  return typeof reason === "string" ? `This answer failed: ${reason}` : "This answer failed.";
}

/** A quiet line in the transcript at the place where an answer failed or was stopped. */
export class TurnEnd {
  constructor(end) {
    this.root = element("li", { class: `turn-end ${end.status}` });
  }

  update(end) {
    this.root.textContent = wordsOfEnd(end);
  }
}
