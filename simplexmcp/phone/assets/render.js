// Objects of the server → elements. Nothing here knows what is shown where, or asks the server.

import { aside, button, copy, el, face, foreign, isPicture, named, shownSize, tags } from "./dom.js";

const TIME = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const DAY = new Intl.DateTimeFormat(undefined, { weekday: "long", day: "numeric", month: "long" });
const MARKS = { sending: "…", sent: "✓", received: "✓✓", failed: "!" };
const STATES = {
  connecting: "connecting…",
  prepared: "not joined",
  deleted: "deleted",
  left: "you left",
  removed: "you were removed",
};
const FILE_STATES = {
  uploading: "uploading",
  sent: "sent",
  offered: "not downloaded",
  receiving: "downloading",
  received: "downloaded",
  failed: "failed",
  cancelled: "cancelled",
};
const ELEMENTS = { bold: "b", italic: "i", strike: "s", snippet: "code", small: "small" };

/** Whether a chat has many people: its mark is a square. */
export const isGroup = (chat) => chat.kind !== "contact" && chat.kind !== "bot";

/** The mark of a chat. */
export const chatFace = (chat) => face(chat.name, { square: isGroup(chat), image: chat.image });

/** A chat as a row of the list. */
export function chatRow(chat, open, onOpen) {
  const last = el("span", { class: "last soft small" }, ...lastLine(chat));
  const time = el("time", { class: "soft small", datetime: chat.at, text: shownTime(chat.at) });
  const unread = chat.unread > 0 && el("span", { class: "count" }, String(chat.unread), aside(" unread"));
  const props = { type: "button", class: "row plain", onclick: onOpen, tabindex: open ? "0" : "-1" };
  if (open) props["aria-current"] = "true";
  return el(
    "li",
    { data: { chat: chat.chat } },
    el(
      "button",
      props,
      chatFace(chat),
      el("span", { class: "lines" }, named(chat.name, chat.kind !== "contact" && chat.kind), last),
      el("span", { class: "ends" }, time, unread),
    ),
  );
}

function lastLine(chat) {
  if (STATES[chat.state]) return [STATES[chat.state]];
  if (!chat.last) return [];
  return [chat.last.name && foreign(`${chat.last.name}: `), foreign(chat.last.text)].filter(Boolean);
}

/** What stands under a chat's name. */
export function chatAbout(chat) {
  const words = [chat.kind];
  if (chat.members) words.push(chat.members === 1 ? "1 member" : `${chat.members} members`);
  if (chat.role) words.push(`you are ${chat.role}`);
  if (STATES[chat.state]) words.push(STATES[chat.state]);
  return words.join(" · ");
}

/** Today a time, else a day. */
function shownTime(at) {
  const when = new Date(at);
  if (when.toDateString() === new Date().toDateString()) return TIME.format(when);
  return when.toLocaleDateString(undefined, { day: "numeric", month: "short" });
}

/** The day of an item, for the line between two days. */
export const dayOf = (item) => DAY.format(new Date(item.at));

/**
 * An item of a chat. `act` does what its buttons say: `tap(text)`, `menu(button)`, `jump(item)`, `receive()`,
 * `cancel()`. `group`: whether names are shown.
 */
export function itemNode(item, { group, act }) {
  if (item.kind === "event") return eventNode(item);
  const card = !item.mine && item.parts.some((part) => part.kind === "command");
  const classes = ["item", item.mine && "mine", card && "card", item.deleted && "deleted", item.live && "live"];
  const bubble = el(
    "div",
    { class: "bubble" },
    group && senderLine(item),
    item.forwarded && el("p", { class: "soft small", text: "forwarded" }),
    item.quote && quoteNode(item.quote, act),
    item.image && isPicture(item.image) && imageNode(item),
    item.file && fileNode(item.file, act),
    bodyNode(item, act),
    footNode(item),
  );
  const more = button("⋯", (event) => act.menu(event.currentTarget), {
    class: "icon plain more",
    "aria-label": `Actions for the message of ${sender(item)}`,
    "aria-haspopup": "menu",
  });
  const mark = group && !item.mine && face(sender(item), { little: true });
  const props = { class: classes.filter(Boolean).join(" "), tabindex: "-1", data: dataOf(item) };
  if (item.mentionsMe) props.class += " me";
  return el("li", props, mark, bubble, more);
}

const dataOf = (item) => ({ item: item.id, order: item.order, who: sender(item) });

function eventNode(item) {
  const text = item.parts.map((part) => part.text).join("");
  const props = { class: "item event", tabindex: "-1", title: TIME.format(new Date(item.at)), data: dataOf(item) };
  return el("li", props, foreign(text, "p", { class: "small" }));
}

/** Who wrote an item. */
export const sender = (item) => (item.mine ? "you" : (item.sender?.name ?? ""));

function senderLine(item) {
  const from = item.sender;
  if (!from || item.mine) return null;
  const role = from.role !== "member" && from.role;
  return el("p", { class: "sender" }, foreign(from.name, "b"), tags(role, from.bot && "bot"));
}

function quoteNode(quote, act) {
  const lines = [foreign(quote.name, "b"), foreign(quote.text)];
  if (quote.item == null) return el("blockquote", { class: "quote small" }, lines);
  const props = { class: "quote small plain", "aria-label": `Show the quoted message of ${quote.name}: ${quote.text}` };
  return el("button", { type: "button", ...props, onclick: () => act.jump(quote.item) }, lines);
}

function imageNode(item) {
  return el("img", { class: "picture", src: item.image, alt: `Picture ${item.file?.name ?? ""}`.trim() });
}

function bodyNode(item, act) {
  if (item.deleted) return foreign(item.deleted, "p", { class: "soft gone" });
  if (!item.parts.length && !item.live) return null;
  const typing = item.live && el("span", { class: "typing" }, aside("is still being written"));
  return el("p", { class: "text", dir: "auto" }, item.parts.map((part) => partNode(part, act)), typing);
}

/** The text of an item as the SimpleX apps show it. Only `command` does something beyond this page. */
function partNode(part, act) {
  switch (part.kind) {
    case "command":
      return button(part.text, () => act.tap(part.send), { class: "tap code" });
    case "mention":
      return foreign(part.text, "span", { class: part.me ? "mention me" : "mention" });
    case "link":
      return linkNode(part);
    case "secret":
      return secretNode(part);
    case "colored":
      return el("span", { class: `colored ${part.color}`, text: part.text });
    default:
      return el(ELEMENTS[part.kind] ?? "span", { text: part.text });
  }
}

function linkNode(part) {
  const props = { class: "copy", "aria-label": `Copy the link ${part.uri}`, title: part.uri };
  const take = button("Copy", (event) => copy(part.uri, event.currentTarget), props);
  return el("span", { class: "link" }, foreign(part.text), take);
}

function secretNode(part) {
  const toggle = (event) => {
    const shown = event.currentTarget.getAttribute("aria-pressed") !== "true";
    event.currentTarget.setAttribute("aria-pressed", String(shown));
    event.currentTarget.replaceChildren(shown ? part.text : "hidden text");
  };
  const props = { class: "secret foreign", "aria-pressed": "false", title: "Show or hide this text" };
  return button("hidden text", toggle, props);
}

function footNode(item) {
  const edited = item.edited && !item.deleted && el("span", { class: "edited", text: "edited" });
  const time = el("time", { datetime: item.at, text: TIME.format(new Date(item.at)) });
  return el("p", { class: "foot soft" }, edited, time, item.status && statusNode(item.status));
}

function statusNode(status) {
  const mark = el("span", { "aria-hidden": "true", text: MARKS[status.mark] });
  return el("span", { class: `mark ${status.mark}`, title: status.text }, mark, aside(status.text));
}

function fileNode(file, act) {
  const state = file.state === "failed" && file.error ? file.error : FILE_STATES[file.state];
  const moving = file.state === "uploading" || file.state === "receiving";
  return el(
    "div",
    { class: "file" },
    el("p", {}, foreign(file.name, "b")),
    el("p", { class: "soft small" }, `${shownSize(file.size)} · `, el("span", { class: "state", text: state })),
    moving && el("progress", { max: "1", value: String(file.progress ?? 0), "aria-label": `${state} ${file.name}` }),
    el("p", { class: "file-buttons" }, fileButtons(file, act)),
  );
}

function fileButtons(file, act) {
  const label = { "aria-label": `Save ${file.name}` };
  const own = file.url?.startsWith("/") && !file.url.startsWith("//");
  return [
    file.can === "receive" && button("Download", act.receive, { "aria-label": `Download ${file.name}` }),
    file.can === "cancel" && button("Cancel", act.cancel, { "aria-label": `Cancel ${file.name}` }),
    own && el("a", { class: "button", href: file.url, download: file.name, ...label, text: "Save" }),
  ];
}

/** A member as a row of the panel; `act`: `role(role)`, `remove()`. */
export function memberRow(member, act) {
  const state = member.state !== "connected" && member.state;
  const name = named(member.name, member.me && "you", member.bot && "bot", state);
  const props = { class: "risky", "aria-label": `Remove ${member.name}` };
  const remove = member.removable && button("Remove", act.remove, props);
  return el(
    "li",
    { class: "row member", data: { member: member.member } },
    face(member.name),
    el("span", { class: "lines" }, name),
    el("span", { class: "member-ends" }, roleNode(member, act), remove),
  );
}

function roleNode(member, act) {
  if (!member.roles.length) return el("span", { class: "soft", text: member.role });
  const roles = member.roles.includes(member.role) ? member.roles : [member.role, ...member.roles];
  const options = roles.map((role) => el("option", { value: role, text: role, selected: role === member.role }));
  const props = { "aria-label": `Role of ${member.name}`, onchange: (event) => act.role(event.currentTarget.value) };
  return el("select", props, options);
}
