import { element } from "./element.js";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

const exact = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "long" });
const clock = new Intl.DateTimeFormat(undefined, { hour: "numeric", minute: "2-digit" });
const dayMonth = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" });
const dayMonthYear = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", year: "numeric" });

/**
 * Reads an RFC 3339 time; null for anything else. Fractions are cut to milliseconds, since not every browser
 * takes the nine digits that the server may send.
 */
export function parseTime(text) {
  if (typeof text !== "string") return null;
  const read = new Date(text.replace(/(\.\d{3})\d+/, "$1"));
  return Number.isNaN(read.getTime()) ? null : read;
}

/** `<time>` with the hour, and the day where it is not today; exact on hover. An unknown time says so. */
export function timeOf(createdAt) {
  const when = parseTime(createdAt);
  if (when === null) return element("span", { class: "time unknown" }, "time unknown");
  return element("time", { class: "time", datetime: createdAt, title: exact.format(when) }, moment(when));
}

/** `<time>` that says how long ago, and goes on saying so. */
export function timeSince(instant) {
  const when = parseTime(instant);
  if (when === null) return element("span", { class: "time unknown" }, "time unknown");
  const attributes = { class: "time", datetime: instant, title: exact.format(when), "data-since": true };
  return element("time", attributes, since(when, new Date()));
}

/** Brings every relative time on the page up to date, now and then. */
export function keepTime() {
  setInterval(() => {
    const now = new Date();
    for (const shown of document.querySelectorAll("time[data-since]")) {
      const when = parseTime(shown.getAttribute("datetime"));
      if (when !== null) shown.textContent = since(when, now);
    }
  }, MINUTE / 2);
}

function moment(when) {
  const now = new Date();
  if (when.toDateString() === now.toDateString()) return clock.format(when);
  return `${day(when, now)}, ${clock.format(when)}`;
}

function day(when, now) {
  return (when.getFullYear() === now.getFullYear() ? dayMonth : dayMonthYear).format(when);
}

function since(when, now) {
  const past = now.getTime() - when.getTime();
  if (past < MINUTE) return "just now";
  if (past < HOUR) return `${Math.floor(past / MINUTE)} min ago`;
  if (past < DAY) return `${Math.floor(past / HOUR)} h ago`;
  if (past < 7 * DAY) return `${Math.floor(past / DAY)} d ago`;
  return day(when, now);
}
