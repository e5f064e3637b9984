// The person's seat in the open room: joining, writing, reading on.

import { byId, button, el, foreign, notice } from "./dom.js";
import * as memory from "./memory.js";
import { beginning, label } from "./message.js";
import { ask, tell } from "./server.js";

const TALLEST = 160; // pixels of the field that is written in

export class Seat {
  #room = null;
  #name = "";
  #marker = 0;
  #reply = null;
  #joined = false;
  #sending = false;
  #text = byId("text");
  #can;

  /** `changed()`: the seat was taken or left; `named(name)`: the person has a name now; `sent()`: a message was. */
  constructor(can) {
    this.#can = can;
    byId("composer").addEventListener("submit", (event) => (event.preventDefault(), void this.#send()));
    byId("join").addEventListener("submit", (event) => (event.preventDefault(), void this.#join()));
    this.#text.addEventListener("input", () => this.#typed());
    this.#text.addEventListener("keydown", (event) => this.#key(event));
  }

  get joined() {
    return this.#joined;
  }

  /** The number up to which the person has read the open room. */
  get marker() {
    return this.#marker;
  }

  /** Sit down at a room; what is typed there was kept. */
  async show(room, name) {
    this.#room = room;
    this.#joined = false;
    this.answer(null);
    this.#text.value = room ? memory.draft(room) : "";
    await this.named(name);
    this.#grow();
  }

  /** The person has another name now. */
  async named(name) {
    this.#name = name;
    byId("name").value = name;
    byId("name-line").hidden = Boolean(name);
    byId("join-known").hidden = !name;
    byId("do-join").textContent = name ? `Join as ${name}` : "Join";
    const room = this.#room;
    const seat = room && name ? await ask("me", { room, name }).catch(() => null) : null;
    if (room !== this.#room || name !== this.#name) return;
    this.#joined = seat?.joined ?? false;
    this.#marker = seat?.last_read_seq ?? 0;
    this.#draw();
  }

  /** Answer a message; null answers none. */
  answer(message) {
    this.#reply = message;
    const strip = byId("reply");
    strip.hidden = !message;
    if (!message) return strip.replaceChildren();
    const [author, text] = [foreign(label(message), "b"), foreign(beginning(message.body))];
    const what = el("span", { class: "line" }, "Reply to ", author, " ", text);
    const end = button("✕", () => this.answer(null), { class: "icon plain", "aria-label": "No reply" });
    strip.replaceChildren(what, end);
    this.#text.focus();
  }

  /** Everything up to a number is read. */
  async read(seq) {
    if (!this.#joined || seq <= this.#marker) return;
    const room = this.#room;
    const before = this.#marker;
    this.#marker = seq;
    try {
      const { last_read_seq: marker } = await tell("read", { room, name: this.#name, seq });
      if (room === this.#room) this.#marker = marker;
    } catch (error) {
      if (room !== this.#room) return;
      this.#marker = before;
      if (error.status === 400) await this.named(this.#name);
    }
  }

  /** Leave the open room. */
  async leave() {
    await tell("leave", { room: this.#room, name: this.#name });
    memory.setJoined(this.#room, false);
    await this.named(this.#name);
  }

  async #join() {
    const [room, name] = [this.#room, byId("name").value.trim()];
    try {
      await tell("join", { room, name });
      memory.setMyName(name);
      memory.setJoined(room, true);
      this.#can.named(name);
      await this.named(name);
      this.#text.focus();
    } catch (error) {
      notice(error.message);
    }
  }

  async #send() {
    const body = this.#text.value.trim();
    if (!body || this.#sending) return;
    const room = this.#room;
    const reply = this.#reply && { reply_to_seq: this.#reply.seq };
    this.#sending = true;
    try {
      await tell("post", { room, name: this.#name, body, ...reply });
      memory.setDraft(room, "");
      if (room !== this.#room) return;
      this.#text.value = "";
      this.answer(null);
      this.#grow();
      this.#can.sent();
    } catch (error) {
      notice(error.message);
      if (error.status === 400) await this.named(this.#name);
    } finally {
      this.#sending = false;
    }
  }

  #key(event) {
    if (event.key === "Escape" && this.#reply) {
      event.stopPropagation();
      this.answer(null);
    }
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    void this.#send();
  }

  #typed() {
    memory.setDraft(this.#room, this.#text.value);
    this.#grow();
  }

  #grow() {
    this.#text.style.height = "auto";
    this.#text.style.height = `${Math.min(this.#text.scrollHeight + 2, TALLEST)}px`;
  }

  #draw() {
    byId("composer").hidden = !this.#joined;
    byId("join").hidden = this.#joined || !this.#room;
    if (!this.#joined) this.answer(null);
    this.#can.changed();
  }
}
