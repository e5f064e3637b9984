// The page: whom it plays, the chats, the open one, and what the server says of them.

import { Composer } from "./composer.js";
import { Conversation } from "./conversation.js";
import { confirm } from "./dialog.js";
import { chooseWho, joinByLink, newGroup, showLink } from "./dialogs.js";
import { announce, byId, button, copy, el, face, named, notice, shown } from "./dom.js";
import { Members } from "./members.js";
import { listenToMenu, openMenu } from "./menu.js";
import { chatAbout, chatFace, chatRow, isGroup, sender } from "./render.js";
import { Stream } from "./stream.js";

const REMEMBERED = "person"; // in the tab's own storage: whom it plays after a reload

const stream = new Stream(take, lost);
const ask = (what, fields) => stream.ask(what, fields);
const composer = new Composer(ask);
const members = new Members(ask);
const conversation = new Conversation(ask, { tap: (text) => composer.tap(text), menu: itemMenu });

const chats = new Map(); // reference → chat
let hello = null; // people, places, limits
let me = null;
let drawing = 0;
let joining = new URLSearchParams(location.search).get("link") ?? "";

/** Do something that may fail; the failure is told. */
const attempt = (work) => work().catch((error) => notice(error.message));

// What the server says

function take(frame) {
  const handlers = {
    hello: greeted,
    people: () => Object.assign(hello, { people: frame.people }),
    chat: () => chatChanged(frame.chat),
    forgotten: () => chatGone(frame.chat),
    item: () => isOpen(frame.chat) && conversation.put(frame.item, frame.new),
    gone: () => isOpen(frame.chat) && conversation.gone(frame.items),
    progress: () => isOpen(frame.chat) && conversation.progress(frame.item, frame.progress),
    members: () => (members.changed(frame.chat), composer.membersChanged(frame.chat)),
    notice: () => notice(frame.text),
  };
  handlers[frame.push]?.(frame);
}

function lost(sentence) {
  byId("connecting").hidden = true;
  byId("trouble").textContent = sentence;
  byId("trouble").hidden = false;
}

const isOpen = (ref) => conversation.chat?.chat === ref;

async function greeted(frame) {
  hello = frame;
  byId("trouble").hidden = true;
  byId("connecting").hidden = true;
  composer.limit(frame.limits);
  showPlaces();
  const again = me?.name ?? sessionStorage.getItem(REMEMBERED);
  const owner = joining && frame.people.find((person) => person.kind === "owner")?.name;
  await becomeAgain(again || owner);
  if (!me) chooseWho(hello, null, pick);
  else if (joining) startJoin(joining);
}

// Who one is

async function becomeAgain(name) {
  if (!name) return;
  try {
    await become(name);
  } catch (error) {
    // Another network, in which this person is not.
    me = null;
    notice(error.message);
  }
}

async function pick(name, link = joining) {
  await become(name);
  byId("dialog").close();
  if (link) startJoin(link);
}

async function become(name) {
  const open = conversation.chat;
  if (me && name !== me.name) await composer.finish();
  const { person, chats: all } = await ask("become", { name });
  const other = person.name !== me?.name;
  me = person;
  sessionStorage.setItem(REMEMBERED, person.name);
  chats.clear();
  for (const chat of all) chats.set(chat.chat, chat);
  showMe();
  if (other) leaveChat();
  else if (open) await (chats.has(open.chat) ? openChat(open.chat, { focus: false }) : leaveChat());
}

function showMe() {
  byId("app").hidden = false;
  byId("my-face").replaceChildren(face(me.label));
  byId("my-name").textContent = shown(me.label);
  byId("my-about").textContent = me.kind === "owner" ? "owner of the agent" : "";
  draw();
}

function startJoin(link) {
  const who = (typed) => chooseWho(hello, me, (name) => pick(name, typed));
  joining = "";
  history.replaceState(null, "", "/");
  joinByLink(link, me, { ask, joined: (ref) => openChat(ref), who });
}

function showPlaces() {
  byId("places").hidden = !hello.places.length;
  byId("places-rows").replaceChildren(...hello.places.map((place) => el("li", {}, placeButton(place))));
}

function placeButton(place) {
  const mark = face(place.name, { square: isGroup(place), little: true });
  return button("", () => startJoin(place.link), { class: "row plain" }, [mark, named(place.name, isGroup(place) && place.kind)]);
}

// The chats

function chatChanged(chat) {
  const before = chats.get(chat.chat);
  chats.set(chat.chat, chat);
  if (isOpen(chat.chat)) {
    conversation.chat = chat;
    showHead();
    if (before?.cannot && !chat.cannot) nowWritable();
    if (chat.unread) void markRead();
  } else if (chat.unread > (before?.unread ?? 0)) {
    announce(`New in ${chat.name}: ${chat.last?.text ?? ""}`);
  }
  draw();
}

function chatGone(ref) {
  chats.delete(ref);
  if (isOpen(ref)) leaveChat();
  draw();
}

/** Draw the list once for all that changes now. */
function draw() {
  drawing ||= setTimeout(() => {
    drawing = 0;
    drawList();
  });
}

function drawList() {
  const list = byId("chats");
  const focused = document.activeElement?.closest("#chats li")?.dataset.chat;
  const sorted = [...chats.values()].sort((one, other) => (one.at < other.at ? 1 : -1));
  list.replaceChildren(...sorted.map((chat) => chatRow(chat, isOpen(chat.chat), () => openChat(chat.chat))));
  byId("no-chats").hidden = sorted.length > 0;
  const rows = [...list.querySelectorAll("button.row")];
  const again = rows.find((row) => row.parentElement.dataset.chat === focused);
  const current = again ?? rows.find((row) => row.tabIndex === 0) ?? rows[0];
  for (const row of rows) row.tabIndex = row === current ? 0 : -1;
  again?.focus();
  const unread = sorted.reduce((sum, chat) => sum + chat.unread, 0);
  document.title = `${unread ? `(${unread}) ` : ""}${me.label} – Phone (a simulation)`;
}

function stepInList(event) {
  const rows = [...byId("chats").querySelectorAll("button.row")];
  const at = rows.indexOf(document.activeElement);
  const next = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: rows.length - 1 }[event.key];
  if (at < 0 || !rows[next]) return;
  event.preventDefault();
  rows[at].tabIndex = -1;
  rows[next].tabIndex = 0;
  rows[next].focus();
}

// The open chat

async function openChat(ref, { focus = true } = {}) {
  const chat = chats.get(ref) ?? { chat: ref, name: "", kind: "group", menu: [], state: "connecting", unread: 0 };
  if (!isOpen(ref)) members.close();
  byId("nothing").hidden = true;
  byId("conversation").hidden = false;
  byId("app").dataset.pane = "chat";
  await attempt(async () => {
    const opening = conversation.open(chat);
    showHead();
    if (!(await opening)) return;
    chats.set(ref, conversation.chat);
    showHead();
    if (focus) focusChat();
    await markRead();
  });
  draw();
}

/** The focus goes where one writes; on a touch screen that would open the keyboard over the messages. */
function focusChat() {
  if (!matchMedia("(pointer: coarse)").matches && !conversation.chat.cannot) composer.focus();
  else byId("chat-name").focus();
}

/** Who just joined goes on to write, unless something else was chosen meanwhile. */
function nowWritable() {
  const { activeElement } = document;
  const idle = activeElement === document.body || activeElement === byId("chat-name");
  // The button that was pressed to join is not there any more.
  if (idle || !activeElement.checkVisibility()) focusChat();
}

function leaveChat() {
  members.close();
  conversation.close();
  composer.reset();
  byId("nothing").hidden = false;
  byId("conversation").hidden = true;
  byId("app").dataset.pane = "list";
  draw();
}

function backToList() {
  const ref = conversation.chat?.chat;
  byId("app").dataset.pane = "list";
  byId("chats").querySelector(`[data-chat="${CSS.escape(ref)}"] button`)?.focus();
}

function showHead() {
  const { chat } = conversation;
  byId("chat-face").replaceChildren(chatFace(chat));
  byId("chat-name").textContent = shown(chat.name);
  byId("chat-about").textContent = chatAbout(chat);
  byId("show-members").hidden = !chat.members;
  composer.show(chat);
}

async function markRead() {
  const { chat } = conversation;
  if (!chat || document.visibilityState !== "visible") return;
  if (byId("app").dataset.pane === "list" && matchMedia("(max-width: 45rem)").matches) return;
  await attempt(() => ask("read", { chat: chat.chat }));
}

// Menus

function itemMenu(item, anchor) {
  const about = { chat: conversation.chat.chat, item: item.id };
  const everyone = item.mine ? "Delete for everyone" : "Delete as moderator";
  const entries = [
    item.can.reply && { label: "Reply", run: () => composer.reply(item) },
    item.can.edit && { label: "Edit", run: () => composer.edit(item) },
    item.text && { label: "Copy the text", run: () => copy(item.text, anchor) },
    { label: "Delete for me", risky: true, run: () => attempt(() => ask("delete", { ...about, everyone: false })) },
    item.can.everyone && { label: everyone, risky: true, run: () => attempt(() => deleteForAll(item, about)) },
  ];
  openMenu(anchor, `The message of ${sender(item)}`, entries.filter(Boolean));
}

async function deleteForAll(item, about) {
  const sure = await confirm("Delete the message", "Everybody in this chat sees that it was deleted.", "Delete");
  if (sure) await ask("delete", { ...about, everyone: true });
}

function chatMenu(anchor) {
  const { chat } = conversation;
  const group = Boolean(chat.members);
  const gone = chat.state !== "connected" && chat.state !== "connecting";
  const entries = [
    chat.manage && { label: "Link of the group", run: () => attempt(() => showGroupLink(chat.chat)) },
    group && !gone && { label: "Leave the group", risky: true, run: () => attempt(() => leaveGroup(chat)) },
    { label: group ? "Delete the chat" : "Delete the contact", risky: true, run: () => attempt(() => forget(chat)) },
  ];
  openMenu(anchor, `More about ${chat.name}`, entries.filter(Boolean));
}

async function showGroupLink(ref) {
  const link = await ask("link", { chat: ref });
  showLink("Link of the group", "Whoever has this link can join the group.", link);
}

async function leaveGroup(chat) {
  if (await confirm("Leave the group", `You leave ${chat.name}. Its messages stay here.`, "Leave")) {
    await ask("leave", { chat: chat.chat });
  }
}

async function forget(chat) {
  const told = `${chat.name} is told that you deleted the contact.`;
  const text = chat.members ? "Its messages are deleted for you." : told;
  if (await confirm("Delete the chat", text, "Delete")) await ask("forget", { chat: chat.chat });
}

async function groupMade(ref) {
  await openChat(ref);
  await attempt(() => showGroupLink(ref));
}

async function showAddress() {
  showLink("My address", "Whoever has this link can write to you.", await ask("address"));
}

// Wiring

function escape(event) {
  if (event.key !== "Escape" || event.defaultPrevented || byId("dialog").open) return;
  if (!byId("menu").matches(":popover-open")) members.close();
}

function listen() {
  byId("switch").addEventListener("click", () => chooseWho(hello, me, pick));
  byId("do-join").addEventListener("click", () => startJoin(""));
  byId("do-group").addEventListener("click", () => newGroup(hello.limits, { ask, made: groupMade }));
  byId("do-address").addEventListener("click", () => attempt(showAddress));
  byId("back").addEventListener("click", backToList);
  byId("chats").addEventListener("keydown", stepInList);
  byId("chat-more").addEventListener("click", (event) => chatMenu(event.currentTarget));
  byId("show-members").addEventListener("click", (event) =>
    members.shown ? members.close() : members.open(conversation.chat, event.currentTarget),
  );
  document.addEventListener("keydown", escape);
  document.addEventListener("visibilitychange", () => conversation.chat?.unread && void markRead());
  listenToMenu();
}

listen();
byId("connecting").hidden = false;
stream.open();
