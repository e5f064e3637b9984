// What the browser remembers: the person's name, what was seen, drafts. All of it may be missing or forbidden.

const PREFIX = "rooms.";

function get(storage, key, otherwise) {
  try {
    return JSON.parse(storage.getItem(PREFIX + key)) ?? otherwise;
  } catch {
    return otherwise;
  }
}

function put(storage, key, value) {
  try {
    storage.setItem(PREFIX + key, JSON.stringify(value));
  } catch {
    // A browser that keeps nothing: the page works, and forgets.
  }
}

const record = (value) => (value && typeof value === "object" && !Array.isArray(value) ? value : {});

/** The name the person writes under; "" before one was chosen. */
export const myName = () => String(get(localStorage, "name", ""));
export const setMyName = (name) => put(localStorage, "name", name);

/** Room → number of the newest message that was seen, of all tabs; null on the very first visit. */
export const seen = () => {
  const all = get(localStorage, "seen", null);
  return all === null ? null : record(all);
};
export const setSeen = (all) => put(localStorage, "seen", all);

/** The rooms that the person joined here. */
export const joined = () => Object.keys(record(get(localStorage, "joined", {}))).map(Number);
export function setJoined(room, is) {
  const all = record(get(localStorage, "joined", {}));
  if (is) all[room] = true;
  else delete all[room];
  put(localStorage, "joined", all);
}

/** Whether the panel is open; null before the person decided. */
export const panelOpen = () => get(localStorage, "panel", null);
export const setPanelOpen = (open) => put(localStorage, "panel", open);

/** Whether the person folded a room's pinned text, by its length: a changed one is shown again. */
export const isFolded = (room, text) => record(get(localStorage, "folded", {}))[room] === text.length;
export function setFolded(room, text, is) {
  const all = record(get(localStorage, "folded", {}));
  if (is) all[room] = text.length;
  else delete all[room];
  put(localStorage, "folded", all);
}

/** The room that was open last, in this tab or another one. */
export const lastRoom = () => Number(get(sessionStorage, "open", get(localStorage, "open", 0)));
export function setLastRoom(room) {
  put(sessionStorage, "open", room);
  put(localStorage, "open", room);
}

/** What was written and not sent, by room; of this tab. */
export const draft = (room) => String(record(get(sessionStorage, "drafts", {}))[room] ?? "");
export function setDraft(room, text) {
  const all = record(get(sessionStorage, "drafts", {}));
  if (text) all[room] = text;
  else delete all[room];
  put(sessionStorage, "drafts", all);
}

/** Nothing of a room that is gone. */
export function forget(room) {
  setJoined(room, false);
  setDraft(room, "");
  setFolded(room, "", false);
  const all = seen() ?? {};
  delete all[room];
  setSeen(all);
}
