// The page: the rooms, the open one, and what the news say of them.

import { close, confirm, form, show } from "./dialog.js";
import { announce, aside, byId, el, face, foreign, notice, shown } from "./dom.js";
import * as memory from "./memory.js";
import { listenToMenu, openMenu } from "./menu.js";
import { age } from "./message.js";
import { Panel } from "./panel.js";
import { Seat } from "./seat.js";
import { ask, listen, tell } from "./server.js";
import { Stream } from "./stream.js";
import { textNode } from "./text.js";

const AGES = 30_000; // milliseconds between two looks at the clock
const DRAWING = 60; // until news are drawn: many come at once
const MOST_COUNTED = 99;
const MOST_FOUND = 100;

const rooms = new Map(); // ID → row of the list
let open = null; // the ID of the open room
let name = memory.myName();
let greeted = false;
let drawing = null;

const stream = new Stream({
  reply: (message) => seat.answer(message),
  heard: announce,
  seen,
});
const seat = new Seat({ changed: seatChanged, named, sent: () => stream.toNewest() });
const panel = new Panel();

/** Do something that may fail; the failure is told. */
const attempt = (work) => work().catch((error) => notice(error.message));

// What the server says

function take(frame) {
  byId("trouble").hidden = frame.trouble === null;
  byId("trouble").textContent = frame.trouble ?? "";
  if (frame.push === "hello") return hello(frame.rooms);
  for (const room of frame.rooms) rooms.set(room.id, room);
  for (const id of frame.gone) forget(id);
  if (frame.rooms.length || frame.gone.length) drawSoon();
  if (frame.rooms.some((room) => room.id === open)) roomChanged();
  panel.changed();
}

function hello(all) {
  const gone = [...rooms.keys()].filter((id) => !all.some((room) => room.id === id));
  rooms.clear();
  for (const room of all) rooms.set(room.id, room);
  if (memory.seen() === null) memory.setSeen(Object.fromEntries(all.map((room) => [room.id, room.latest])));
  for (const id of gone) forget(id);
  draw();
  if (!greeted) begin();
  else if (rooms.has(open)) roomChanged();
  greeted = true;
  panel.changed();
}

function lost(sentence) {
  byId("trouble").hidden = false;
  byId("trouble").textContent = sentence;
}

function begin() {
  const [room, seq] = asked();
  if (rooms.has(room)) void openRoom(room, { seq, focus: false });
  else if (room) notice("The room of this address is not there.");
  else if (rooms.has(memory.lastRoom()) && !isNarrow()) void openRoom(memory.lastRoom(), { focus: false });
}

/** The room and the message in the address: `#3` or `#3/17`. */
function asked() {
  const [, room = "0", seq = "0"] = /^#(\d{1,15})(?:\/(\d{1,15}))?$/.exec(location.hash) ?? [];
  return [Number(room), Number(seq)];
}

const isNarrow = () => matchMedia("(max-width: 45rem)").matches;

/** Another message in the open room, or another number of members. */
function roomChanged() {
  const room = rooms.get(open);
  showAbout(room);
  void stream.came(room.latest);
}

function forget(id) {
  rooms.delete(id);
  memory.forget(id);
  if (id !== open) return;
  closeRoom();
  notice("This room was deleted.");
}

// The list of rooms

function drawSoon() {
  drawing ??= setTimeout(() => {
    drawing = null;
    draw();
  }, DRAWING);
}

function draw() {
  const wanted = byId("filter").value.trim().toLowerCase();
  const fits = (room) => `${room.name} ${room.description ?? ""}`.toLowerCase().includes(wanted);
  const all = [...rooms.values()].sort(byActivity);
  const some = all.filter(fits);
  const focused = document.activeElement?.closest?.("#rooms li")?.dataset.room;
  byId("rooms").replaceChildren(...some.map(roomRow));
  if (focused) byId("rooms").querySelector(`[data-room="${focused}"] button`)?.focus();
  const rows = [...byId("rooms").querySelectorAll("button")];
  if (rows.length && !rows.some((row) => row.tabIndex === 0)) rows[0].tabIndex = 0;
  byId("count").textContent = all.length === 1 ? "1 room" : `${all.length} rooms`;
  byId("no-rooms").hidden = some.length > 0;
  byId("no-rooms").textContent = all.length ? "No room fits." : "No rooms yet. Agents make them.";
  drawTitle();
}

const byActivity = (a, b) => (b.last_activity ?? "").localeCompare(a.last_activity ?? "") || b.id - a.id;

function unseen(room, all = memory.seen() ?? {}) {
  return Math.max(0, room.latest - (all[room.id] ?? 0));
}

function roomRow(room) {
  const count = unseen(room);
  const isOpen = room.id === open;
  const props = { type: "button", class: "row plain", tabindex: isOpen ? "0" : "-1" };
  if (isOpen) props["aria-current"] = "true";
  const number = count > MOST_COUNTED ? `${MOST_COUNTED}+` : String(count);
  const badge = count > 0 && el("span", { class: "count" }, number, aside(" unseen"));
  const last = el("span", { class: "soft small", text: room.last_activity ? age(room.last_activity) : "" });
  const members = room.members === 1 ? "1 here" : `${room.members} here`;
  return el(
    "li",
    { data: { room: room.id } },
    el(
      "button",
      { ...props, onclick: () => openRoom(room.id) },
      face(room.name, { square: true }),
      el(
        "span",
        { class: "lines" },
        foreign(room.name, "b", { class: "line" }),
        el("span", { class: "soft small line" }, members, room.description && [" · ", foreign(room.description)]),
      ),
      el("span", { class: "ends" }, last, badge),
    ),
  );
}

function drawTitle() {
  const all = memory.seen() ?? {};
  const count = [...rooms.values()].reduce((sum, room) => sum + unseen(room, all), 0);
  const room = rooms.get(open);
  const what = room ? `${shown(room.name)} · Rooms` : "Rooms";
  document.title = count ? `(${count}) ${what}` : what;
}

function drawMe() {
  byId("my-face").replaceChildren(face(name || "?", { little: true }));
  byId("my-name").replaceChildren(name ? foreign(name, "b") : "");
  byId("rename").textContent = name ? "Change" : "Choose a name";
}

// The open room

async function openRoom(id, { seq = 0, focus = true } = {}) {
  const again = id === open;
  open = id;
  memory.setLastRoom(id);
  history.replaceState(null, "", `#${id}`);
  byId("app").dataset.pane = "room";
  byId("nothing").hidden = true;
  byId("open").hidden = false;
  endSearch();
  const room = rooms.get(id);
  byId("room-name").textContent = shown(room.name);
  showAbout(room);
  draw();
  if (focus) byId("room-name").focus();
  if (again) return seq ? stream.jump(seq) : stream.toNewest();
  byId("pinned").hidden = true;
  panel.show(id, name);
  await Promise.all([attempt(() => showPinned(id)), seat.show(id, name), stream.show(id, seq)]);
}

function closeRoom() {
  open = null;
  history.replaceState(null, "", location.pathname);
  byId("app").dataset.pane = "list";
  byId("nothing").hidden = false;
  byId("open").hidden = true;
  stream.hide();
  panel.show(null, name);
  void seat.show(null, name);
  draw();
}

function showAbout(room) {
  const people = room.members === 1 ? "1 here" : `${room.members} here`;
  const last = room.last_activity && age(room.last_activity);
  const written = last && (last === "now" ? "written to just now" : `last message ${last} ago`);
  byId("room-about").textContent = [people, written, room.description].filter(Boolean).join(" · ");
}

async function showPinned(id) {
  const { room } = await ask("room", { id });
  if (id !== open) return;
  const text = room?.pinned ?? "";
  const box = byId("pinned");
  box.hidden = !text.trim();
  if (box.hidden) return;
  box.open = !memory.isFolded(id, text) && !isNarrow();
  byId("pinned-first").textContent = shown(text.trim().split("\n", 1)[0].slice(0, 200));
  byId("pinned-text").replaceChildren(...textNode(text).childNodes);
  box.firstElementChild.onclick = () => memory.setFolded(id, text, box.open);
}

/** The newest message of the open room is on the screen. */
function seen(seq) {
  if (open === null || !byId("results").hidden) return;
  const all = memory.seen() ?? {};
  const known = Math.max(all[open] ?? 0, seq);
  if (known !== all[open]) {
    memory.setSeen({ ...all, [open]: known });
    draw();
  }
  if (stream.reaches(seat.marker)) void seat.read(seq);
}

function seatChanged() {
  stream.setMe(name, seat.joined);
  stream.look();
}

// Searching

function startSearch() {
  byId("search").hidden = false;
  byId("do-search").setAttribute("aria-pressed", "true");
  byId("query").focus();
  byId("query").select();
}

function endSearch() {
  byId("search").hidden = true;
  byId("results").hidden = true;
  byId("scroll").hidden = false;
  byId("do-search").setAttribute("aria-pressed", "false");
}

/** Back to the messages as they were. */
function leaveSearch() {
  endSearch();
  stream.look();
  byId("do-search").focus();
}

async function search(event) {
  event.preventDefault();
  const query = byId("query").value.trim();
  const room = open;
  if (!query) return;
  byId("matches").replaceChildren();
  byId("results").hidden = false;
  byId("scroll").hidden = true;
  byId("newest").hidden = true;
  byId("found").textContent = "Searching…";
  const nothing = (error) => ({ matches: [], trouble: error.message });
  const answer = await ask("search", { room, q: query, limit: MOST_FOUND }).catch(nothing);
  if (room !== open) return;
  const count = answer.matches.length;
  const found = count === 1 ? "1 message" : `${answer.trimmed ? "The best " : ""}${count} messages`;
  byId("found").textContent = answer.trouble ?? (count ? found : "Nothing fits.");
  byId("matches").replaceChildren(...stream.matches(answer.matches, goTo));
}

function goTo(seq) {
  endSearch();
  void stream.jump(seq);
}

// Who one is

function rename() {
  const places = memory.joined().filter((id) => rooms.has(id));
  if (seat.joined && !places.includes(open)) places.push(open);
  const leaves = "Your seats under the old name are left; in the open room you join again.";
  const text = name && places.length ? leaves : "Agents speak to you by this name: @name.";
  const { pattern, title } = byId("name");
  const props = { value: name, pattern, title, maxlength: "200", autofocus: true };
  const parts = form("Name", "Take this name", props, async (wanted) => {
    if (wanted !== name) await takeName(wanted, places);
    close();
  });
  show("Your name", el("p", { class: "soft", text }), parts.node);
}

async function takeName(wanted, places) {
  const again = places.includes(open);
  if (again) await tell("join", { room: open, name: wanted });
  for (const room of name ? places : []) {
    await tell("leave", { room, name });
    memory.setJoined(room, false);
  }
  memory.setMyName(wanted);
  if (again) memory.setJoined(open, true);
  named(wanted);
  await seat.named(wanted);
}

function named(wanted) {
  name = wanted;
  drawMe();
  panel.show(open, name);
}

async function deleteRoom() {
  const room = rooms.get(open);
  const what = `${room.name}: all its messages and claims are deleted for everybody, and cannot be brought back.`;
  const sure = await confirm("Delete this room?", what, "Delete the room");
  if (sure) await attempt(() => tell("delete-room", { room: room.id, confirm: true }));
}

function menu(event) {
  const room = rooms.get(open);
  openMenu(event.currentTarget, "More about this room", [
    seat.joined && { label: "Mark all as read", run: () => markAll(room.latest) },
    { label: name ? "Change my name" : "Choose my name", run: rename },
    seat.joined && { label: "Leave the room", run: () => attempt(() => seat.leave()) },
    { label: "Delete the room", risky: true, run: deleteRoom },
  ].filter(Boolean));
}

async function markAll(seq) {
  await seat.read(seq);
  memory.setSeen({ ...(memory.seen() ?? {}), [open]: seq });
  draw();
}

// Beginning

function key(event) {
  if (event.key !== "Escape" || byId("dialog").open || byId("menu").matches(":popover-open")) return;
  if (!byId("search").hidden) {
    leaveSearch();
  } else if (panel.isOpen && isNarrow()) panel.close();
}

function rowKey(event) {
  const rows = [...byId("rooms").querySelectorAll("button")];
  const at = rows.indexOf(document.activeElement);
  const next = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: rows.length - 1 }[event.key];
  if (at < 0 || next === undefined || !rows[next]) return;
  event.preventDefault();
  rows[next].focus();
}

byId("filter").addEventListener("input", draw);
byId("rooms").addEventListener("keydown", rowKey);
byId("rename").addEventListener("click", rename);
byId("back").addEventListener("click", () => {
  byId("app").dataset.pane = "list";
  byId("rooms").querySelector("[aria-current] , button")?.focus();
});
byId("do-search").addEventListener("click", () => (byId("search").hidden ? startSearch() : leaveSearch()));
byId("end-search").addEventListener("click", leaveSearch);
byId("search").addEventListener("submit", search);
byId("more").addEventListener("click", menu);
addEventListener("keydown", key);
addEventListener("hashchange", () => {
  const [room, seq] = asked();
  if (rooms.has(room)) void openRoom(room, { seq });
});
addEventListener("storage", (event) => {
  if (event.key === "rooms.seen") draw();
  if (event.key === "rooms.name" && memory.myName() !== name) {
    named(memory.myName());
    void seat.named(name);
  }
});
setInterval(() => {
  draw();
  if (rooms.has(open)) showAbout(rooms.get(open));
}, AGES);

listenToMenu();
drawMe();
listen(take, lost);
