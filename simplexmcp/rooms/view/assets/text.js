// The text of a message as elements. Nothing in it is active: links are text to copy, code is shown as code.

import { button, copy, el } from "./dom.js";

const TOKENS = /```[^\n`]*\n([\s\S]*?)```|`([^`\n]+)`|(https?:\/\/[^\s<>"'`]+)|@([A-Za-z0-9_][A-Za-z0-9_.-]*)/g;
const MOST_TOKENS = 400; // of one text; what follows is plain
const LONG = 1600; // characters, and
const MANY_LINES = 22; // lines, above which a text is cut at first
const LONG_JSON = 600;
const INDENT = 2;

/** A text; `mentions` are the names that count as such, `me` is the person's own. */
export function textNode(text, { mentions = [], me = "" } = {}) {
  const nodes = [];
  let at = 0;
  let count = 0;
  for (const match of text.matchAll(TOKENS)) {
    if (++count > MOST_TOKENS) break;
    const node = tokenNode(match, mentions, me);
    if (!node) continue;
    nodes.push(text.slice(at, match.index), node);
    at = match.index + match[0].length - (node.left ?? 0);
  }
  return el("div", { class: "text", dir: "auto" }, [...nodes, text.slice(at)].filter((node) => node !== ""));
}

function tokenNode([, block, code, link, name], mentions, me) {
  if (block !== undefined) return el("pre", { dir: "auto" }, el("code", { text: block.replace(/\n$/, "") }));
  if (code !== undefined) return el("code", { dir: "auto", text: code });
  if (link !== undefined) return linkNode(link);
  const id = name.replace(/[.-]+$/, "");
  if (!mentions.includes(id)) return null;
  const node = el("span", { class: id === me ? "mention me" : "mention", text: `@${id}` });
  node.left = name.length - id.length;
  return node;
}

function linkNode(text) {
  const uri = text.replace(/[.,;:!?)\]}]+$/, "");
  const props = { class: "copy", "aria-label": `Copy the link ${uri}`, title: "Copy the link" };
  const take = button("Copy", (event) => copy(uri, event.currentTarget), props);
  const node = el("span", { class: "link" }, el("span", { class: "foreign", dir: "auto", text: uri }), take);
  node.left = text.length - uri.length;
  return node;
}

/** The body of a message: a text, cut at first when it is long; JSON set out, folded when it is long. */
export function bodyNode(message, me) {
  if (message.format === "json") return jsonNode(message.body);
  const node = textNode(message.body, { mentions: message.mentions ?? [], me });
  const lines = message.body.split("\n", MANY_LINES + 1).length;
  return message.body.length > LONG || lines > MANY_LINES ? clamped(node) : node;
}

function jsonNode(body) {
  let text = body;
  try {
    text = JSON.stringify(JSON.parse(body), null, INDENT);
  } catch {
    // Cut, or no JSON at all: shown as it is.
  }
  const block = el("pre", { class: "json", dir: "auto" }, el("code", { text }));
  if (text.length <= LONG_JSON) return block;
  const summary = el("summary", { text: `JSON, ${text.length.toLocaleString()} characters` });
  return el("details", { class: "fold" }, summary, block);
}

function clamped(node) {
  const box = el("div", { class: "clamp" }, node);
  const more = button("Show all", () => {
    const open = box.classList.toggle("all");
    more.textContent = open ? "Show less" : "Show all";
    more.setAttribute("aria-expanded", String(open));
    if (!open) box.closest("li")?.scrollIntoView({ block: "nearest" });
  });
  more.className = "small";
  more.setAttribute("aria-expanded", "false");
  return el("div", {}, box, more);
}
