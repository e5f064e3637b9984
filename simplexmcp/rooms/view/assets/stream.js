// The messages of the open room: what is loaded, where one is in it, and what is new.
//
// What is loaded has no gaps. Either it ends with the newest message, which new ones join, or it is a window somewhere
// in the past, which stays as it is until one goes back to the newest.

import { byId, notice } from "./dom.js";
import { beginning, dayOf, follows, label, matchNode, messageNode } from "./message.js";
import { ask } from "./server.js";

const PAGE = 100;
const AT_ONCE = 1000; // what one request brings at most
const KEPT = 1200; // messages on the page while one follows the newest
const BOTTOM = 60; // pixels from the end that count as the end
const BEFORE_TARGET = 30;
const HEARD = 3; // messages at once that are read aloud one by one

export class Stream {
  #room = null;
  #messages = [];
  #visit = 0; // rises whenever another room or window is shown: answers that come later are for nobody
  #older = false;
  #past = false;
  #news = 0;
  #newest = 0; // when a window in the past was opened
  #work = Promise.resolve(); // one after the other
  #following = true;
  #replying = null;
  #list = byId("messages");
  #scroll = byId("scroll");
  #me = "";
  #can = { reply: null, heard: () => {}, seen: () => {} };

  /** `reply(message)`, `heard(text)` for screen readers, `seen(seq)` when the newest is looked at. */
  constructor(can) {
    this.#can = can;
    byId("older").addEventListener("click", () => this.#attempt(() => this.#loadOlder()));
    byId("later").addEventListener("click", () => this.#attempt(() => this.#loadLater()));
    byId("newest").addEventListener("click", () => this.toNewest());
    this.#scroll.addEventListener("scroll", () => this.#moved(), { passive: true });
    document.addEventListener("visibilitychange", () => this.#moved());
    new ResizeObserver(() => this.#following && this.#toEnd()).observe(this.#scroll);
  }

  /** Show a room from its newest messages on, or around one of them. */
  async show(room, seq = 0) {
    this.#room = room;
    this.#clear();
    await this.#attempt(() => (seq ? this.#jump(seq) : this.#loadNewest()));
  }

  /** Show nothing. */
  hide() {
    this.#room = null;
    this.#clear();
  }

  /** The number of the newest message that is loaded. */
  get last() {
    return this.#messages.at(-1)?.seq ?? 0;
  }

  /** Whether everything from a number on to the newest is loaded. */
  reaches(seq) {
    return !this.#past && (!this.#older || (this.#messages[0]?.seq ?? Infinity) <= seq + 1);
  }

  /** Who the person is, and whether they can write; draws all anew when that changed. */
  setMe(name, canWrite) {
    const reply = canWrite ? this.#can.reply : null;
    if (name === this.#me && reply === this.#replying) return;
    this.#me = name;
    this.#replying = reply;
    this.#draw();
  }

  /** The room has messages up to this number now. */
  came(latest) {
    return this.#attempt(async () => {
      if (latest <= this.last) return;
      if (!this.#past) return this.#loadNew();
      this.#news = Math.max(0, latest - this.#newest);
      this.#drawEnds();
    });
  }

  /** Go to the newest message. */
  async toNewest() {
    if (this.#past) await this.#attempt(() => this.#loadNewest());
    this.#following = true;
    this.#news = 0;
    this.#toEnd();
    this.#drawEnds();
    this.#moved();
  }

  /** Go to a message, loaded or not. */
  jump(seq) {
    return this.#attempt(() => this.#jump(seq));
  }

  async #jump(seq) {
    if (!this.#find(seq)) await this.#loadAround(seq);
    if (!this.#find(seq)) {
      notice(`Message #${seq} is not there any more.`);
      if (!this.#messages.length) await this.#loadNewest();
      return;
    }
    const node = byId(`m${seq}`);
    this.#following = false;
    node.scrollIntoView({ block: "center" });
    node.focus({ preventScroll: true });
    node.classList.remove("target");
    void node.offsetWidth; // starts the flash again
    node.classList.add("target");
  }

  /** Rows of found messages; `open(seq)` goes to one. */
  matches(rows, open) {
    return rows.map((row) => matchNode(row, open));
  }

  // Loading

  #attempt(work) {
    const room = this.#room;
    this.#work = this.#work.then(() => (room === this.#room ? work() : null)).catch((error) => notice(error.message));
    return this.#work;
  }

  async #get(query) {
    const visit = this.#visit;
    const answer = await ask("messages", { room: this.#room, ...query });
    return visit === this.#visit ? answer : null;
  }

  async #loadNewest() {
    const answer = await this.#get({ limit: PAGE });
    if (!answer) return;
    this.#replace(answer.messages, answer.messages.length === PAGE || answer.trimmed, false);
    this.#following = true;
    this.#toEnd();
    this.#moved();
  }

  async #loadNew() {
    const answer = await this.#get({ after: this.last, limit: AT_ONCE });
    if (!answer) return;
    if (answer.messages.length === AT_ONCE) return this.#loadNewest(); // long away: better to begin anew
    this.#append(answer.messages);
    if (answer.trimmed) await this.#loadNew();
  }

  async #loadOlder() {
    const first = this.#messages[0]?.seq ?? 0;
    const answer = await this.#get({ before: first, limit: PAGE });
    if (!answer) return;
    const height = this.#scroll.scrollHeight - this.#scroll.scrollTop;
    this.#older = answer.messages.length === PAGE || Boolean(answer.trimmed);
    this.#messages.unshift(...answer.messages);
    this.#list.prepend(...answer.messages.map((message) => this.#node(message)));
    this.#join(0, answer.messages.length + 1);
    this.#drawEnds();
    this.#scroll.scrollTop = this.#scroll.scrollHeight - height;
  }

  async #loadLater() {
    const answer = await this.#get({ after: this.last, limit: PAGE });
    if (!answer) return;
    this.#past = answer.messages.length === PAGE || Boolean(answer.trimmed);
    this.#add(answer.messages);
    if (!this.#past) this.#news = 0;
    this.#drawEnds();
    this.#moved();
  }

  async #loadAround(seq) {
    const start = seq - BEFORE_TARGET;
    const answer = await this.#get(start > 0 ? { after: start, limit: PAGE } : { before: PAGE, limit: PAGE });
    if (!answer?.messages.some((message) => message.seq === seq)) return;
    const newest = await this.#get({ limit: 1 });
    if (!newest) return;
    this.#newest = newest.messages.at(-1)?.seq ?? 0;
    const past = this.#newest > answer.messages.at(-1).seq;
    this.#replace(answer.messages, answer.messages[0].seq > 1, past);
  }

  // Showing

  #clear() {
    this.#work = Promise.resolve();
    this.#following = true;
    this.#replace([], false, false);
    byId("empty").hidden = true;
  }

  #replace(messages, older, past) {
    this.#visit += 1;
    this.#messages = messages;
    this.#older = Boolean(older);
    this.#past = past;
    this.#news = 0;
    this.#draw();
  }

  #draw() {
    const place = this.#scroll.scrollTop;
    const focused = document.activeElement?.closest?.("#messages > li")?.id;
    this.#list.replaceChildren(...this.#messages.map((message) => this.#node(message)));
    this.#join(0, this.#messages.length);
    this.#drawEnds();
    if (focused) byId(focused)?.focus({ preventScroll: true });
    this.#scroll.scrollTop = this.#following ? this.#scroll.scrollHeight : place;
  }

  /** New messages at the end. */
  #append(messages) {
    if (!messages.length) return;
    const watched = this.#following;
    this.#add(messages);
    const others = messages.filter((message) => message.from !== this.#me);
    this.#announce(others);
    if (watched) {
      this.#trim();
      this.#toEnd();
    } else {
      this.#news += others.length;
    }
    this.#drawEnds();
    this.#moved();
  }

  #add(messages) {
    const from = this.#messages.length;
    this.#messages.push(...messages);
    this.#list.append(...messages.map((message) => this.#node(message)));
    this.#join(from, this.#messages.length);
    for (const message of messages) if (message.supersedes_seq) this.#supersede(message.supersedes_seq, message.seq);
  }

  #supersede(seq, by) {
    const old = this.#find(seq);
    if (!old || old.superseded_by >= by) return;
    old.superseded_by = by;
    const place = this.#messages.indexOf(old);
    byId(`m${seq}`).replaceWith(this.#node(old));
    this.#join(place, place + 1);
  }

  /** The oldest ones go when there are too many. */
  #trim() {
    const extra = this.#messages.length - KEPT;
    if (extra <= 0) return;
    this.#messages.splice(0, extra);
    for (let count = 0; count < extra; count += 1) this.#list.firstElementChild.remove();
    this.#older = true;
    this.#join(0, 1);
  }

  /** Headings and lines between days, for the messages from one place to another. */
  #join(from, to) {
    for (let at = from; at < Math.min(to, this.#messages.length); at += 1) {
      const [before, message] = [this.#messages[at - 1], this.#messages[at]];
      const node = this.#list.children[at];
      node.classList.toggle("follows", follows(message, before));
      if (!before || dayOf(before) !== dayOf(message)) node.dataset.day = dayOf(message);
      else delete node.dataset.day;
    }
  }

  #node(message) {
    return messageNode(message, {
      me: this.#me,
      find: (seq) => this.#find(seq),
      jump: (seq) => void this.jump(seq),
      reply: this.#replying,
    });
  }

  #find(seq) {
    const first = this.#messages[0]?.seq ?? 0;
    const near = this.#messages[seq - first]; // numbers are dense
    return near?.seq === seq ? near : this.#messages.find((message) => message.seq === seq);
  }

  #drawEnds() {
    byId("older").hidden = !this.#older;
    byId("later").hidden = !this.#past;
    byId("empty").hidden = this.#messages.length > 0 || !this.#room;
    const button = byId("newest");
    button.hidden = this.#following && !this.#past;
    const what = this.#past ? "Return to the newest" : "Newest";
    button.textContent = this.#news ? `${this.#news} new ↓` : `${what} ↓`;
  }

  #announce(messages) {
    if (messages.length > HEARD) this.#can.heard(`${messages.length} new messages`);
    else for (const message of messages) this.#can.heard(`${label(message)}: ${beginning(message.body)}`);
  }

  #toEnd() {
    this.#scroll.scrollTop = this.#scroll.scrollHeight;
  }

  get #atEnd() {
    const { scrollHeight, scrollTop, clientHeight } = this.#scroll;
    return scrollHeight - scrollTop - clientHeight < BOTTOM;
  }

  /** The person moved in the messages, or looks at the page again. */
  #moved() {
    if (!this.#scroll.checkVisibility()) return;
    this.#following = this.#atEnd && !this.#past;
    if (this.#following) this.#news = 0;
    this.#drawEnds();
    const looked = this.#following && this.#messages.length > 0 && document.visibilityState === "visible";
    if (looked) this.#can.seen(this.last);
  }

  /** Says of the newest message, when it is on the screen, that it was seen. */
  look() {
    this.#moved();
  }
}
