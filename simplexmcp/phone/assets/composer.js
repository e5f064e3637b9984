// Where the person writes: text, replies, edits, live messages, files, mentions and the chat's commands.

import { byId, button, el, foreign, isPicture, notice, shownSize } from "./dom.js";
import { openMenu } from "./menu.js";
import { sender } from "./render.js";
import { mentionsIn, Names } from "./names.js";
import { upload } from "./upload.js";

const LIVE_PAUSE = 400; // milliseconds between two updates of a live message

export class Composer {
  #ask;
  #chat = null;
  #drafts = new Map(); // chat → text
  #quote = null;
  #editing = null;
  #file = null; // {name, size, stop, upload?, image?}
  #live = null; // {chat, item, sent, work}
  #limits = null;
  #names;
  #text = byId("text");

  constructor(ask) {
    this.#ask = ask;
    this.#names = new Names(this.#text, ask, () => this.#grow());
    byId("composer").addEventListener("submit", (event) => this.#submit(event));
    this.#text.addEventListener("input", () => this.#typed());
    this.#text.addEventListener("keydown", (event) => this.#key(event));
    byId("attach").addEventListener("click", () => byId("file").click());
    byId("file").addEventListener("change", () => this.#choose());
    byId("live").addEventListener("click", () => this.#toggleLive());
    byId("commands").addEventListener("click", (event) => this.#menu(event.currentTarget));
    byId("accept").addEventListener("click", () => this.#try(() => this.#ask("accept", { chat: this.#chat.chat })));
  }

  /** What the server takes. */
  limit(limits) {
    this.#limits = limits;
  }

  /** Write to this chat from now on; null: to none. */
  show(chat) {
    if (chat?.chat !== this.#chat?.chat) this.#leave();
    const other = chat?.chat !== this.#chat?.chat;
    this.#chat = chat;
    if (!chat) return;
    byId("write").hidden = Boolean(chat.cannot);
    byId("cannot").hidden = !chat.cannot;
    byId("why").textContent = chat.cannot ?? "";
    byId("accept").hidden = !chat.join;
    byId("commands").hidden = !chat.menu.length;
    if (other) this.#put(this.#drafts.get(chat.chat) ?? "");
    this.#names.show(chat);
  }

  /** A message that is being written for all to see is sent as it is. */
  async finish() {
    if (this.#live) await this.#try(() => this.#finishLive(this.#text.value));
  }

  /** Nobody is played any more, or somebody else: nothing is kept. */
  reset() {
    this.#live = null;
    this.show(null);
    this.#drafts.clear();
  }

  /** Who is in a group changed. */
  membersChanged(ref) {
    this.#names.changed(ref);
  }

  focus() {
    this.#text.focus();
  }

  /** Answer a message. */
  reply(item) {
    this.#stopEditing();
    this.#quote = item;
    this.#strip();
    this.focus();
  }

  /** Change an own message. */
  edit(item) {
    if (!this.#editing) this.#drafts.set(this.#chat.chat, this.#text.value);
    this.#editing = item;
    this.#quote = null;
    this.#put(item.text);
    this.#strip();
    this.focus();
  }

  /** Send a text as it is: a command. */
  async tap(text) {
    await this.#try(() => this.#ask("send", { chat: this.#chat.chat, text }));
  }

  #put(text) {
    this.#text.value = text;
    this.#grow();
  }

  #grow() {
    this.#text.style.height = "auto";
    this.#text.style.height = `${this.#text.scrollHeight + 2}px`;
  }

  #leave() {
    if (!this.#chat) return;
    this.#stopEditing();
    if (this.#live) void this.finish();
    else this.#drafts.set(this.#chat.chat, this.#text.value);
    this.#quote = null;
    this.#dropFile();
    this.#setLive(false);
    this.#put("");
    this.#strip();
  }

  #typed() {
    this.#grow();
    void this.#names.typed();
    if (this.#isLive() && !this.#editing && this.#text.value.trim()) this.#keepLive();
  }

  #key(event) {
    if (event.isComposing || this.#names.key(event)) return;
    if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      byId("composer").requestSubmit();
    } else if (event.key === "Escape" && (this.#quote || this.#editing)) {
      event.preventDefault();
      this.#cancel();
    }
  }

  #cancel() {
    this.#stopEditing();
    this.#quote = null;
    this.#strip();
    this.focus();
  }

  #stopEditing() {
    if (!this.#editing) return;
    this.#editing = null;
    this.#put(this.#drafts.get(this.#chat.chat) ?? "");
  }

  #strip() {
    const strip = byId("about-message");
    const item = this.#editing ?? this.#quote;
    strip.hidden = !item;
    if (!item) return;
    const words = this.#editing ? "Editing your message: " : `Replying to ${sender(item)}: `;
    const stop = button("✕", () => this.#cancel(), {
      class: "icon plain",
      "aria-label": this.#editing ? "Stop editing" : "Do not reply",
    });
    const what = item.text || item.file?.name || "a message";
    const line = el("p", { class: "line small" }, foreign(words), foreign(what, "span", { class: "soft" }));
    strip.replaceChildren(line, stop);
  }

  // Sending

  async #submit(event) {
    event.preventDefault();
    const text = this.#text.value;
    if (this.#file && !this.#file.upload) return notice("The file is still on its way to the server.");
    if (!text.trim() && !this.#file && !this.#live) return;
    this.#names.close();
    await this.#names.ready(text);
    await this.#try(() => this.#sendWhat(text));
  }

  async #sendWhat(text) {
    const chat = this.#chat;
    if (this.#editing) {
      const mentions = this.#mentions(text, this.#editing);
      await this.#ask("edit", { chat: chat.chat, item: this.#editing.id, text, ...mentions });
      this.#stopEditing();
    } else if (this.#live) {
      await this.#finishLive(text);
      this.#put("");
      this.#quote = null;
    } else {
      const fields = { chat: chat.chat, text, ...this.#mentions(text) };
      if (this.#quote) fields.quote = this.#quote.id;
      if (this.#file) fields.upload = this.#file.upload;
      this.#put("");
      await this.#ask("send", fields).catch((error) => this.#giveBack(chat, text, error));
      if (this.#chat !== chat) return;
      this.#quote = null;
      this.#showFile(null);
    }
    this.#strip();
  }

  /** What was not sent is there again, unless the person went on. */
  #giveBack(chat, text, error) {
    if (this.#chat?.chat === chat.chat && !this.#text.value) this.#put(text);
    else this.#drafts.set(chat.chat, text);
    throw error;
  }

  #mentions(text, item = null) {
    const mentions = { ...keptMentions(text, item), ...mentionsIn(text, this.#names.members) };
    return Object.keys(mentions).length ? { mentions } : {};
  }

  async #try(work) {
    try {
      await work();
    } catch (error) {
      notice(error.message);
    }
  }

  // Live messages

  #isLive = () => byId("live").getAttribute("aria-pressed") === "true";

  #setLive(on) {
    byId("live").setAttribute("aria-pressed", String(on));
  }

  #toggleLive() {
    const on = !this.#isLive();
    this.#setLive(on);
    if (on) this.#typed();
    else if (this.#live) byId("composer").requestSubmit();
    this.focus();
  }

  #keepLive() {
    this.#live ??= { chat: this.#chat.chat, item: null, sent: null, quote: this.#quote?.id, work: null };
    const live = this.#live;
    live.work ??= this.#try(() => this.#updateLive(live)).finally(() => (live.work = null));
  }

  async #updateLive(live) {
    while (this.#live === live && this.#text.value !== live.sent && this.#text.value.trim()) {
      live.sent = this.#text.value;
      await this.#sayLive(live, live.sent, { ...this.#mentions(live.sent), live: true });
      await new Promise((done) => setTimeout(done, LIVE_PAUSE));
    }
  }

  async #sayLive(live, text, more) {
    const fields = { chat: live.chat, text, ...more };
    if (live.item != null) await this.#ask("edit", { item: live.item, ...fields });
    else live.item = (await this.#ask("send", live.quote ? { quote: live.quote, ...fields } : fields)).item;
  }

  async #finishLive(text) {
    const live = this.#live;
    const last = text.trim() ? text : live.sent;
    const mentions = this.#mentions(last ?? "");
    this.#live = null;
    await live.work;
    if (live.item != null || text.trim()) await this.#sayLive(live, last, mentions);
  }

  // Files

  #choose() {
    const [file] = byId("file").files;
    byId("file").value = "";
    if (!file) return;
    if (this.#limits && file.size > this.#limits.file) {
      notice(`This file is larger than ${shownSize(this.#limits.file)}: the most that can be sent here.`);
      return;
    }
    this.#dropFile();
    const mine = { name: file.name, size: file.size, stop: null };
    const sending = upload(file, (part) => this.#fileProgress(mine, part));
    mine.stop = sending.stop;
    this.#showFile(mine);
    sending.done.then(
      (done) => this.#file === mine && this.#showFile(Object.assign(mine, done)),
      (error) => {
        if (this.#file !== mine) return;
        this.#showFile(null);
        notice(error.message);
      },
    );
  }

  #fileProgress(file, part) {
    const bar = this.#file === file && byId("attachment").querySelector("progress");
    if (bar) bar.value = part;
  }

  #dropFile() {
    this.#file?.stop();
    this.#showFile(null);
  }

  #showFile(file) {
    this.#file = file;
    const strip = byId("attachment");
    strip.hidden = !file;
    if (!file) return strip.replaceChildren();
    const picture = file.image && isPicture(file.image) && el("img", { class: "thumb", src: file.image, alt: "" });
    const bar = !file.upload && el("progress", { max: "1", value: "0", "aria-label": `Uploading ${file.name}` });
    const line = el("p", { class: "line small" }, foreign(file.name, "b"), ` ${shownSize(file.size)}`);
    const props = { class: "icon plain", "aria-label": `Do not send ${file.name}` };
    const drop = button("✕", () => this.#dropFile(), props);
    strip.replaceChildren(...[picture, el("div", { class: "line" }, line, bar), drop].filter(Boolean));
  }

  // The chat's commands

  #menu(anchor) {
    openMenu(anchor, "Commands", this.#entries(this.#chat.menu));
  }

  #entries(menu) {
    return menu.map((entry) => {
      if (entry.commands) return { label: entry.label, entries: this.#entries(entry.commands) };
      if (entry.fill != null) return { label: entry.label, hint: entry.fill, run: () => this.#fill(entry.fill) };
      return { label: entry.label, hint: entry.send, run: () => this.tap(entry.send) };
    });
  }

  #fill(text) {
    this.#put(text);
    this.focus();
  }
}

/** Mentions of a message that its new text still has. */
function keptMentions(text, item) {
  return Object.fromEntries(Object.entries(item?.mentions ?? {}).filter(([name]) => text.includes(name)));
}
