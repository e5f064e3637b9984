// One menu for the whole page: actions of a message or a chat, and commands.

import { byId, el } from "./dom.js";

/** Entries: `{label, run}` or `{label, entries}` (a menu in the menu); `risky` colours one, `hint` explains it. */
export function openMenu(anchor, label, entries) {
  const menu = byId("menu");
  menu.setAttribute("aria-label", label);
  fill(menu, entries, null);
  menu.showPopover();
  anchor.setAttribute("aria-expanded", "true");
  menu.ontoggle = (event) => {
    if (event.newState === "closed") anchor.setAttribute("aria-expanded", "false");
  };
  place(menu, anchor);
  menu.firstElementChild?.focus();
}

function fill(menu, entries, above) {
  const back = above && [row({ label: "‹ Back" }, () => show(menu, above, null))];
  menu.replaceChildren(...(back ?? []), ...entries.map((entry) => row(entry, () => choose(menu, entry, entries))));
}

function row(entry, onclick) {
  const props = { type: "button", role: "menuitem", tabindex: "-1", class: entry.risky ? "risky" : "", onclick };
  if (entry.entries) props["aria-haspopup"] = "menu";
  const hint = entry.hint && el("span", { class: "soft small code foreign", text: entry.hint });
  return el("button", props, el("span", { class: "foreign", text: entry.label }), hint, entry.entries && "›");
}

function choose(menu, entry, entries) {
  if (entry.entries) return show(menu, entry.entries, entries);
  menu.hidePopover();
  entry.run();
}

function show(menu, entries, above) {
  fill(menu, entries, above);
  menu.firstElementChild?.focus();
}

/** Beside what opened it, inside the window. */
function place(menu, anchor) {
  const at = anchor.getBoundingClientRect();
  const { offsetWidth: width, offsetHeight: height } = menu;
  const below = at.bottom + height + 8 < innerHeight;
  menu.style.left = `${Math.max(8, Math.min(at.left, innerWidth - width - 8))}px`;
  menu.style.top = `${Math.max(8, below ? at.bottom + 4 : at.top - height - 4)}px`;
}

const STEPS = { ArrowDown: 1, ArrowUp: -1 };

/** Arrows, Home and End move in the menu; Escape is the browser's. */
export function listenToMenu() {
  byId("menu").addEventListener("keydown", (event) => {
    const rows = [...event.currentTarget.children];
    const at = rows.indexOf(document.activeElement);
    const next = { Home: 0, End: rows.length - 1 }[event.key] ?? at + (STEPS[event.key] ?? NaN);
    if (event.key === "Tab") event.currentTarget.hidePopover();
    if (Number.isNaN(next)) return;
    event.preventDefault();
    rows[(next + rows.length) % rows.length]?.focus();
  });
}
