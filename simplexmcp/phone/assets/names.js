// Mentions: who can be mentioned in a text, and the list that completes a name after @.

import { byId, el, foreign } from "./dom.js";

const MOST = 8;
const OPEN = /(^|\s)@'?([^\s@']*)$/u; // an @ before the caret, and the name so far

/** The mentions in a text, {name: memberId}, for the members of a group. */
export function mentionsIn(text, members) {
  const found = {};
  for (const { name, mention, memberId } of members) if (mention && hasWord(text, mention)) found[name] ??= memberId;
  return found;
}

function hasWord(text, word) {
  for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + 1)) {
    const before = text[at - 1];
    const after = text.slice(at + word.length, at + word.length + 2);
    if ((before === undefined || /\s/.test(before)) && !/^[\p{L}\p{N}_]/u.test(after)) return true;
  }
  return false;
}

export class Names {
  #text;
  #ask;
  #onChosen;
  #chat = null;
  #stale = true;
  #loading = null;
  #chosen = 0;
  #list = byId("names");

  /** Completes names in `text`; `onChosen` is called after it changed the text. */
  constructor(text, ask, onChosen) {
    this.#text = text;
    this.#ask = ask;
    this.#onChosen = onChosen;
    this.members = [];
    text.addEventListener("blur", () => this.close());
  }

  /** The chat that is written to. */
  show(chat) {
    const same = chat?.chat === this.#chat?.chat;
    this.#chat = chat;
    if (same) return;
    this.members = [];
    this.#stale = true;
    this.close();
  }

  /** Who is in a group changed. */
  changed(ref) {
    if (this.#chat?.chat === ref) this.#stale = true;
  }

  /** The text changed. */
  async typed() {
    await this.ready(this.#text.value);
    const prefix = this.#prefix();
    if (prefix == null) return this.close();
    const wanted = prefix.toLowerCase();
    this.#fill(this.members.filter((one) => !one.me && one.mention && one.name.toLowerCase().startsWith(wanted)));
  }

  /** Whether a key was for the list. */
  key(event) {
    if (this.#list.hidden) return false;
    const rows = [...this.#list.children];
    const step = { ArrowDown: 1, ArrowUp: rows.length - 1 }[event.key];
    if (step) this.#choose((this.#chosen + step) % rows.length);
    else if (event.key === "Enter" || event.key === "Tab") rows[this.#chosen].click();
    else if (event.key === "Escape") this.close();
    else return false;
    event.preventDefault();
    event.stopPropagation();
    return true;
  }

  close() {
    this.#list.hidden = true;
    this.#text.removeAttribute("aria-activedescendant");
  }

  /** The members are known, when this text may mention one. */
  async ready(text) {
    if (!this.#chat?.members || !text.includes("@")) return;
    if (this.#stale) this.#loading = this.#load(this.#chat.chat);
    await this.#loading;
  }

  async #load(chat) {
    this.#stale = false;
    const { members } = await this.#ask("members", { chat }).catch(() => ({ members: [] }));
    if (this.#chat?.chat === chat) this.members = members;
  }

  #prefix() {
    return OPEN.exec(this.#text.value.slice(0, this.#text.selectionStart))?.[2];
  }

  #fill(members) {
    const rows = members.slice(0, MOST).map((member, at) => this.#row(member, at));
    this.#list.replaceChildren(...rows);
    this.#list.hidden = !rows.length;
    if (rows.length) this.#choose(0);
  }

  #row(member, at) {
    const role = el("span", { class: "tag", text: member.role });
    const row = el("li", { id: `name-${at}`, role: "option" }, foreign(member.name), role);
    row.addEventListener("mousedown", (event) => event.preventDefault()); // the text keeps the focus
    row.addEventListener("click", () => this.#take(member));
    return row;
  }

  #choose(at) {
    this.#chosen = at;
    for (const [number, row] of [...this.#list.children].entries()) row.setAttribute("aria-selected", number === at);
    this.#text.setAttribute("aria-activedescendant", `name-${at}`);
    this.#list.children[at].scrollIntoView({ block: "nearest" });
  }

  #take(member) {
    const caret = this.#text.selectionStart;
    const start = this.#text.value.slice(0, caret).lastIndexOf("@");
    this.#text.setRangeText(`${member.mention} `, start, caret, "end");
    this.close();
    this.#onChosen();
  }
}
