// The messages of the open chat: in their order, with what changes in place.

import { announce, byId, notice } from "./dom.js";
import { dayOf, isGroup, itemNode, sender } from "./render.js";

const MOST = 600; // items on the page; older ones can be had again
const PAGE = 50;
const NEAR = 80; // pixels from the end that count as the end
const RUN = 300_000; // milliseconds between messages of one person that are shown as one run

export class Conversation {
  #ask;
  #acts;
  #items = new Map(); // number of an item → item
  #nodes = new Map(); // … → its element
  #newer = false; // there are newer items than those shown: they were looked up around an old one
  #atEnd = true;
  #settling = 0;
  #top = 0; // where it was scrolled to at the last look
  #list = byId("messages");
  #area = byId("scroll");

  /** `acts`: `tap(text)`, `menu(item, button)`. */
  constructor(ask, acts) {
    this.#ask = ask;
    this.#acts = acts;
    this.chat = null;
    this.#area.addEventListener("scroll", () => this.#scrolled());
    const resized = new ResizeObserver(() => this.#atEnd && this.toEnd());
    resized.observe(this.#area);
    resized.observe(this.#list);
    byId("older").addEventListener("click", () => this.#older());
    byId("newest").addEventListener("click", () => this.#toNewest());
    this.#list.addEventListener("keydown", (event) => this.#step(event));
  }

  /** Show the end of a chat; false when another was opened meanwhile. */
  async open(chat, options = {}) {
    const other = this.chat?.chat !== chat.chat;
    this.chat = chat;
    if (other) this.#clear();
    const opened = await this.#ask("open", { chat: chat.chat, count: PAGE, ...options });
    if (this.chat?.chat !== chat.chat) return false;
    this.chat = opened.chat;
    // What came while this was asked for.
    const later = [...this.#items.values()].filter((item) => isLater(item, opened.items.at(-1)));
    this.#clear();
    this.#newer = opened.newer;
    for (const item of opened.newer ? opened.items : [...opened.items, ...later]) this.#insert(item);
    byId("older").hidden = !opened.older;
    this.#tidy();
    this.toEnd();
    return true;
  }

  /** No chat is shown any more. */
  close() {
    this.chat = null;
    this.#clear();
  }

  /** A new or changed item of this chat. */
  put(item, isNew) {
    const before = this.#items.get(item.id);
    if (!before && this.#newer) {
      byId("newest").hidden = false;
      return;
    }
    this.#atEnd ||= isNew && item.mine;
    // What just came is the newest, though received messages have times of whole seconds only.
    this.#insert(item, isNew ? this.#list.lastElementChild?.dataset.order : "");
    if (before) this.#showChange(before, item);
    this.#tell(before, item, isNew);
    if (isNew && !this.#atEnd) byId("newest").hidden = false;
    this.#settle();
  }

  /** Once for all that comes now: each look at the sizes costs as much as the page is long. */
  #settle() {
    this.#settling ||= setTimeout(() => {
      this.#settling = 0;
      this.#trim();
      this.#tidy();
      if (this.#atEnd) this.toEnd();
    });
  }

  /** Items that were removed without a trace. */
  gone(numbers) {
    for (const number of numbers) this.#drop(number);
    this.#tidy();
  }

  /** The file of an item moved on. */
  progress(number, progress) {
    const item = this.#items.get(number);
    if (item?.file) item.file.progress = progress;
    const bar = this.#nodes.get(number)?.querySelector("progress");
    if (bar) bar.value = progress;
  }

  /** Scroll to the newest. */
  toEnd() {
    this.#atEnd = true;
    this.#area.scrollTop = this.#area.scrollHeight;
    byId("newest").hidden = !this.#newer;
  }

  #clear() {
    this.#items.clear();
    this.#nodes.clear();
    this.#list.replaceChildren();
    this.#newer = false;
    byId("older").hidden = true;
    byId("newest").hidden = true;
  }

  #insert(item, least = "") {
    const node = itemNode(item, { group: isGroup(this.chat), act: this.#actsOf(item) });
    const old = this.#nodes.get(item.id);
    this.#items.set(item.id, item);
    this.#nodes.set(item.id, node);
    if (old) {
      node.dataset.order = old.dataset.order;
      replace(old, node);
      return;
    }
    if (least > item.order) node.dataset.order = least;
    let after = this.#list.lastElementChild;
    while (after && after.dataset.order > node.dataset.order) after = after.previousElementSibling;
    if (after) after.after(node);
    else this.#list.prepend(node);
  }

  #actsOf(item) {
    const about = { chat: this.chat.chat, item: item.id };
    const ask = (what) => this.#ask(what, about).catch((error) => notice(error.message));
    return {
      tap: this.#acts.tap,
      menu: (from) => this.#acts.menu(this.#items.get(item.id), from),
      jump: (number) => this.#jump(number),
      receive: () => ask("receive"),
      cancel: () => ask("cancel"),
    };
  }

  #showChange(before, item) {
    if (item.live || before.live || !differs(before, item)) return;
    const node = this.#nodes.get(item.id);
    node.classList.add("changed");
    node.addEventListener("animationend", () => node.classList.remove("changed"), { once: true });
  }

  #tell(before, item, isNew) {
    if (item.mine || item.live) return;
    const said = item.deleted ?? (item.parts.map((part) => part.text).join("") || item.file?.name || "");
    const line = item.kind === "event" ? said : `${sender(item)}: ${said}`;
    if (isNew || before?.live) announce(line);
    else if (before && differs(before, item)) announce(`Changed: ${line}`);
  }

  #drop(number) {
    const node = this.#nodes.get(number);
    if (node?.contains(document.activeElement)) this.#area.focus();
    node?.remove();
    this.#items.delete(number);
    this.#nodes.delete(number);
  }

  #trim() {
    while (this.#atEnd && this.#list.childElementCount > MOST) {
      this.#drop(Number(this.#list.firstElementChild.dataset.item));
      byId("older").hidden = false;
    }
  }

  /** Where a day begins, and which messages go on with the one before. */
  #tidy() {
    let before = null;
    for (const node of this.#list.children) {
      const item = this.#items.get(Number(node.dataset.item));
      const newDay = !before || dayOf(before) !== dayOf(item);
      if (newDay) node.dataset.day = dayOf(item);
      else delete node.dataset.day;
      node.classList.toggle("follows", !newDay && goesOn(before, item));
      before = item;
    }
  }

  async #older() {
    const first = Number(this.#list.firstElementChild?.dataset.item);
    const { chat } = this.chat;
    try {
      const opened = await this.#ask("open", { chat, before: first, count: PAGE });
      if (this.chat?.chat !== chat) return;
      const height = this.#area.scrollHeight;
      for (const item of opened.items) this.#insert(item);
      this.#tidy();
      this.#area.scrollTop += this.#area.scrollHeight - height;
      byId("older").hidden = !opened.older;
      if (!opened.older) this.#list.firstElementChild?.focus();
    } catch (error) {
      notice(error.message);
    }
  }

  async #toNewest() {
    if (this.#newer) await this.#open();
    this.toEnd();
    this.#list.lastElementChild?.focus({ preventScroll: true });
  }

  #open(options) {
    return this.open(this.chat, options).catch((error) => notice(error.message));
  }

  async #jump(number) {
    if (!this.#nodes.has(number)) await this.#open({ around: number });
    const node = this.#nodes.get(number);
    if (!node) return;
    this.#atEnd = false;
    node.scrollIntoView({ block: "center" });
    node.focus({ preventScroll: true });
  }

  #scrolled() {
    const { scrollHeight, scrollTop, clientHeight } = this.#area;
    // What grows at the end moves the end away, which is no scrolling of the person's.
    if (scrollHeight - scrollTop - clientHeight < NEAR) this.#atEnd = true;
    else if (scrollTop < this.#top) this.#atEnd = false;
    this.#top = scrollTop;
    if (this.#atEnd && !this.#newer) byId("newest").hidden = true;
  }

  /** Arrows move from message to message. */
  #step(event) {
    const step = { ArrowUp: "previousElementSibling", ArrowDown: "nextElementSibling" }[event.key];
    const next = step && document.activeElement.closest(".item")?.[step];
    if (!next) return;
    event.preventDefault();
    next.focus();
  }
}

/** Whether a message is of the same person as the one before, and soon after it. */
const goesOn = (before, item) =>
  before.kind === "message" &&
  item.kind === "message" &&
  sender(before) === sender(item) &&
  before.sender?.member === item.sender?.member &&
  Date.parse(item.at) - Date.parse(before.at) < RUN;

const isLater = (item, than) => !than || item.order > than.order;

const differs = (one, other) =>
  JSON.stringify([one.parts, one.deleted ?? ""]) !== JSON.stringify([other.parts, other.deleted ?? ""]);

/** Put a new element in the place of another; the focus stays with the same control, or goes to the message. */
function replace(old, node) {
  const focused = old.contains(document.activeElement) ? document.activeElement : null;
  old.replaceWith(node);
  if (!focused) return;
  const same = [...node.querySelectorAll("button, a")].find((one) => one.textContent === focused.textContent);
  (same ?? node).focus({ preventScroll: true });
}
