import { textOf } from "./content.js";
import { endOf } from "./turn-end.js";

/**
 * The messages of one thread as this page holds them, brought up to date by AG-UI events.
 *
 * A message is the AG-UI message itself: `id`, `role`, `content`, `toolCalls`, `toolCallId`, `metadata`. Beside
 * that the page marks it: `runId` of its turn, `writing` while more of it arrives, `sending` until the server
 * has accepted it. Between the messages stands how a turn ended, where it did not end well (see turn-end.js).
 *
 * The same run may be told again from its first event (after a lost connection), to a page that holds some of
 * it. So ids decide: the first piece of a text in one telling replaces what is held, later pieces are added,
 * and a bracket without pieces leaves the text alone.
 */
export class Conversation {
  /** @param {(message: object) => void} onChange  called with each message that is new or changed */
  constructor(onChange) {
    this.messages = [];
    this.onChange = onChange;
    this.byId = new Map();
    this.runId = undefined;
    this.calls = new Map();
    this.results = new Map();
    this.told = new Set();
    this.writingCalls = new Set();
  }

  /** Holds exactly these messages. */
  reset(messages) {
    this.told.clear();
    this.writingCalls.clear();
    this.#hold(messages);
  }

  #hold(messages) {
    this.messages = [];
    for (const index of [this.byId, this.calls, this.results]) index.clear();
    for (const message of messages) this.put(message);
  }

  /**
   * Holds of a run that ended exactly what is stored of it; what is held of others stays, also of one that is
   * live by now. Says whether words went away by that.
   */
  settle(runId, stored) {
    const own = this.messages.filter((message) => message.runId === runId);
    if (own.length === 0) return false;
    const at = this.messages.indexOf(own[0]);
    const later = this.messages.slice(at).filter((message) => message.runId !== runId);
    this.#hold([...this.messages.slice(0, at), ...stored, ...later]);
    return own.some((message) => !this.byId.has(message.id) && hasWords(message));
  }

  /** Puts an older page before all that is held. */
  prepend(messages) {
    const held = this.messages;
    this.messages = [];
    for (const message of messages) if (!this.byId.has(message.id)) this.put(message);
    this.messages.push(...held);
  }

  /** Adds a message at the end, or replaces the one with its id where it stands. */
  put(message) {
    const held = this.byId.get(message.id);
    if (held === undefined) {
      message.runId ??= this.runId;
      this.messages.push(message);
      this.byId.set(message.id, message);
    } else {
      delete held.sending;
      Object.assign(held, message);
    }
    const kept = held ?? message;
    for (const call of kept.toolCalls ?? []) this.calls.set(call.id, { call, owner: kept });
    if (kept.role === "tool") this.results.set(kept.toolCallId, kept);
    this.changed(kept);
  }

  /** Takes a message away that the server did not accept. */
  remove(messageId) {
    const held = this.byId.get(messageId);
    if (held === undefined) return;
    this.byId.delete(messageId);
    this.messages.splice(this.messages.indexOf(held), 1);
    this.onChange(held);
  }

  /** Brings the messages up to one event. Events that change no message are let through. */
  apply(event) {
    HANDLERS[event.type]?.(this, event);
  }

  /** Nothing is being written any more. */
  close() {
    this.writingCalls.clear();
    for (const message of this.messages) {
      if (message.writing) this.write(message, false);
      else if (message.toolCalls?.some((call) => !this.results.has(call.id))) this.onChange(message);
    }
  }

  /** The run that is being told is over. */
  end(status, reason) {
    this.close();
    const end = endOf(
      this.runId,
      status,
      reason,
      this.messages.filter((message) => message.runId === this.runId),
    );
    if (end !== null) this.put(end);
  }

  changed(message) {
    this.onChange(message);
    if (message.role === "tool") {
      const owner = this.calls.get(message.toolCallId)?.owner;
      if (owner !== undefined) this.onChange(owner);
    }
  }

  /** The message with this id, made where it is not held. */
  at(id, role) {
    if (!this.byId.has(id)) this.put({ id, role, content: "" });
    return this.byId.get(id);
  }

  write(message, writing) {
    message.writing = writing;
    this.changed(message);
  }

  /** Whether this is the first piece of it in this telling. */
  isFirst(id) {
    if (this.told.has(id)) return false;
    this.told.add(id);
    return true;
  }

  addText(id, delta) {
    const message = this.byId.get(id);
    if (message === undefined) return;
    const first = this.isFirst(`text ${id}`);
    message.content = first || typeof message.content !== "string" ? delta : message.content + delta;
    this.changed(message);
  }

  describe(message, metadata) {
    if (metadata !== undefined) message.metadata = { ...message.metadata, ...metadata };
  }
}

function startText(held, event, role) {
  const message = held.at(event.messageId, role);
  held.describe(message, event.metadata);
  delete message.sending;
  held.write(message, true);
}

function endText(held, event) {
  const message = held.byId.get(event.messageId);
  if (message === undefined) return;
  held.describe(message, event.metadata);
  held.write(message, false);
}

function startCall(held, event) {
  const owner =
    held.calls.get(event.toolCallId)?.owner ??
    held.at(event.parentMessageId ?? event.toolCallId, "assistant");
  if (!held.calls.has(event.toolCallId)) {
    const call = {
      id: event.toolCallId,
      type: "function",
      function: { name: event.toolCallName, arguments: "" },
    };
    owner.toolCalls = [...(owner.toolCalls ?? []), call];
    held.calls.set(call.id, { call, owner });
  }
  held.writingCalls.add(event.toolCallId);
  held.changed(owner);
}

function addArguments(held, event) {
  const known = held.calls.get(event.toolCallId);
  if (known === undefined) return;
  const told = known.call.function;
  told.arguments = held.isFirst(`call ${event.toolCallId}`) ? event.delta : told.arguments + event.delta;
  held.changed(known.owner);
}

function endCall(held, event) {
  held.writingCalls.delete(event.toolCallId);
  const known = held.calls.get(event.toolCallId);
  if (known !== undefined) held.changed(known.owner);
}

function addResult(held, event) {
  const { messageId: id, toolCallId, content, metadata } = event;
  held.put({ id, role: "tool", toolCallId, content, ...(metadata !== undefined && { metadata }) });
}

/** A run begins, or is told again. What it was given is said here; known messages only learn what is new. */
function startRun(held, event) {
  held.told.clear();
  held.runId = event.runId;
  for (const message of event.input?.messages ?? []) held.put(message);
}

function hasWords(message) {
  return message.role !== "end" && (textOf(message.content) !== "" || message.toolCalls?.length > 0);
}

function putAll(held, event) {
  for (const message of event.messages) held.put(message);
}

const HANDLERS = {
  RUN_STARTED: startRun,
  RUN_FINISHED: (held, event) => held.end(event.outcome?.type === "cancelled" ? "stopped" : "completed"),
  RUN_ERROR: (held, event) => held.end("failed", event.message),
  MESSAGES_SNAPSHOT: putAll,
  TEXT_MESSAGE_START: (held, event) => startText(held, event, event.role ?? "assistant"),
  TEXT_MESSAGE_CONTENT: (held, event) => held.addText(event.messageId, event.delta),
  TEXT_MESSAGE_END: endText,
  REASONING_MESSAGE_START: (held, event) => startText(held, event, "reasoning"),
  REASONING_MESSAGE_CONTENT: (held, event) => held.addText(event.messageId, event.delta),
  REASONING_MESSAGE_END: endText,
  TOOL_CALL_START: startCall,
  TOOL_CALL_ARGS: addArguments,
  TOOL_CALL_END: endCall,
  TOOL_CALL_RESULT: addResult,
};
