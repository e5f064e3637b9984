// Messages as elements, and what is said about them: who, when, to whom, instead of what.

import { aside, button, el, face, foreign } from "./dom.js";
import { bodyNode } from "./text.js";

const TIME = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const DAY = new Intl.DateTimeFormat(undefined, { weekday: "long", day: "numeric", month: "long", year: "numeric" });
const GROUPED = 180_000; // milliseconds within which one author's messages share a heading
const PREVIEW = 140;
const MOST_NAMES = 8;

/** When a message was written; the database keeps UTC. */
export const when = (text) => new Date(`${text.replace(" ", "T")}Z`);

/** The day of a message, for the line between two days. */
export const dayOf = (message) => DAY.format(when(message.at));

/** Whether a message stands under the heading of the one before. */
export const follows = (message, before) =>
  before?.from === message.from && when(message.at) - when(before.at) < GROUPED && dayOf(before) === dayOf(message);

/** What an author is called: a person by name, an agent by its model. */
export const label = (message) => message.model ?? message.from;

/** Whether a message is meant for somebody. */
export const isFor = (message, name) =>
  name !== "" && message.from !== name && (message.reply_to_agent === name || (message.mentions ?? []).includes(name));

/** The mark of an author: round for a person, square for an agent. */
export function mark(author, little = false) {
  const id = author.from ?? author.id;
  // The letter is that of the label; two agents of one model differ in colour.
  return face(`${author.model ?? id} ${id}`, { square: author.model != null, little });
}

/** How long ago, in a word or two. */
export function age(text) {
  const seconds = Math.max(0, (Date.now() - when(text)) / 1000);
  return seconds < 60 ? "now" : span(seconds);
}

/** A duration in a word or two. */
export function span(seconds) {
  const steps = [[86_400, "d"], [3600, "h"], [60, "min"]];
  const [size, unit] = steps.find(([size]) => seconds >= size) ?? [1, "s"];
  return `${Math.floor(seconds / size)} ${unit}`;
}

/** The beginning of a text, on one line. */
export const beginning = (text) => {
  const line = text.slice(0, PREVIEW * 2).replace(/\s+/g, " ").trim();
  return line.length > PREVIEW ? `${line.slice(0, PREVIEW)}…` : line;
};

/**
 * A message of the stream. `me`: the person's name; `find(seq)`: another message, if it is loaded; `jump(seq)`;
 * `reply(message)`, or null when the person cannot write.
 */
export function messageNode(message, { me, find, jump, reply }) {
  const classes = ["message"];
  if (message.from === me) classes.push("mine");
  if (message.superseded_by) classes.push("superseded");
  if (message.priority) classes.push("priority");
  if (isFor(message, me)) classes.push("for-me");
  const props = { class: "plain small reply", "aria-label": `Reply to message ${message.seq}` };
  const answer = reply && button("Reply", () => reply(message), props);
  const said = [head(message, me), chips(message, { me, find, jump }), bodyNode(message, me), cutNote(message)];
  return el(
    "li",
    { class: classes.join(" "), id: `m${message.seq}`, tabindex: "-1", data: { seq: message.seq } },
    mark(message),
    el("div", { class: "body" }, said.flat()),
    el("div", { class: "side" }, answer, el("span", { class: "number soft", text: `#${message.seq}` })),
  );
}

function head(message, me) {
  const at = when(message.at);
  return el(
    "p",
    { class: "head" },
    foreign(label(message), "b", { class: "author" }),
    message.from === me && el("span", { class: "tag you", text: "you" }),
    el("time", { class: "soft", datetime: at.toISOString(), title: at.toLocaleString(), text: TIME.format(at) }),
    message.model != null && foreign(message.from, "span", { class: "id soft" }),
  );
}

function chips(message, { me, find, jump }) {
  const to = message.mentions ?? [];
  const nodes = [
    message.priority && el("span", { class: "tag urgent", text: "priority" }),
    to.length > 0 && addressees(to, me),
    message.supersedes_seq && jumper(`replaces #${message.supersedes_seq}`, message.supersedes_seq, jump),
    message.superseded_by && jumper(`replaced by #${message.superseded_by}`, message.superseded_by, jump),
  ].filter(Boolean);
  return [message.reply_to_seq && quote(message, find, jump), nodes.length > 0 && el("p", { class: "chips" }, nodes)];
}

function addressees(names, me) {
  const props = (name) => ({ class: name === me ? "mention me" : "mention" });
  const some = names.slice(0, MOST_NAMES).flatMap((name) => [foreign(`@${name}`, "span", props(name)), " "]);
  const more = names.length > MOST_NAMES && `and ${names.length - MOST_NAMES} more`;
  return el("span", { class: "to soft small" }, "to ", some, more);
}

const jumper = (text, seq, jump) => button(text, () => jump(seq), { class: "chip small" });

function quote(message, find, jump) {
  const parent = find(message.reply_to_seq);
  const author = parent ? label(parent) : (message.reply_to_agent ?? "");
  const title = `Show message ${message.reply_to_seq} of ${author}, which this answers`;
  const props = { class: "quote small plain", "aria-label": title };
  const text = parent && foreign(beginning(parent.body));
  const number = el("span", { class: "soft", text: `#${message.reply_to_seq}` });
  return button("", () => jump(message.reply_to_seq), props, ["↩ ", foreign(author, "b"), number, text || ""]);
}

function cutNote(message) {
  if (!message.body_truncated) return null;
  const all = message.body_length.toLocaleString();
  return el("p", { class: "soft small", text: `Cut here: the whole message has ${all} characters.` });
}

/** A found message. */
export function matchNode(message, open) {
  const at = el("time", { class: "soft small", text: `${dayOf(message)}, ${TIME.format(when(message.at))}` });
  const first = el("span", { class: "first" }, foreign(label(message), "b"), at);
  const lines = el("span", { class: "lines" }, first, foreign(beginning(message.body), "span", { class: "found" }));
  const number = el("span", { class: "soft small" }, aside("message "), `#${message.seq}`);
  const parts = [mark(message, true), lines, number];
  return el("li", {}, button("", () => open(message.seq), { class: "row plain" }, parts));
}
