// The dialogs: who one is, joining by a link, a new group, and a link to give away.

import { close, form, show } from "./dialog.js";
import { button, copy, el, face, foreign, isPicture, named, notice } from "./dom.js";
import { chatFace } from "./render.js";

const TYPING_PAUSE = 250; // milliseconds after the last key until a link is looked up
const LINK = /^(https?:\/\/|simplex:|[@#])\S+$/;

/** Choose whom this tab plays; `pick(name)` becomes that person. Without `me` it must be chosen. */
export function chooseWho({ people, limits }, me, pick) {
  const rows = people.map((person) => el("li", {}, personButton(person, me, pick)));
  const create = form("Somebody new", "Create", { maxlength: String(limits.name), placeholder: "A name" }, pick);
  const intro = hint("Each tab of the browser can be another person of the simulation.");
  const dialog = show("Who are you?", intro, el("ul", { class: "rows people" }, rows), create.node);
  dialog.classList.toggle("must", !me);
  dialog.oncancel = (event) => {
    if (!me) event.preventDefault();
  };
  dialog.querySelector(".people button")?.focus();
}

function personButton(person, me, pick) {
  const where = person.name === me?.name ? "you" : person.tabs > 0 && "open in a tab";
  const about = person.about && el("span", { class: "soft small foreign", text: person.about });
  const lines = el("span", { class: "lines" }, named(person.label, person.kind === "owner" && "owner", where), about);
  const choose = () => pick(person.name).catch((error) => notice(error.message));
  return button("", choose, { class: "row plain" }, [face(person.label), lines]);
}

/** Join by a link. `ask`: of the stream; `joined(chat)`; `who()`: choose another person first. */
export function joinByLink(link, me, { ask, joined, who }) {
  const found = el("div", { class: "found", "aria-live": "polite" });
  const parts = form("Link", "Join", { value: link, placeholder: "https://… or simplex:/…" }, async (text) => {
    const { chat } = await ask("join", { link: text });
    close();
    joined(chat);
  });
  const look = looker(parts, found, { ask, joined });
  parts.input.addEventListener("input", () => look(TYPING_PAUSE));
  parts.input.setAttribute("autofocus", "");
  const change = button("Somebody else?", () => who(parts.input.value), { class: "plain" });
  const name = el("span", { class: "line" }, "You are ", foreign(me.label, "b"), ".");
  const you = el("p", { class: "pair" }, name, change);
  show("Join by a link", parts.node, found, you);
  look(0);
}

/** Looks up the link in the form, and says what it leads to. */
function looker({ input, send }, found, { ask, joined }) {
  let timer = 0;
  let asked = 0;
  const look = async (filledIn) => {
    const number = ++asked;
    const link = input.value.trim();
    if (!LINK.test(link)) return found.replaceChildren(link ? hint("This is no SimpleX link.") : "");
    found.replaceChildren(hint("Looking up the link…"));
    const plan = await ask("plan", { link }).catch((error) => ({ text: error.message, can: false }));
    if (number !== asked || !found.isConnected) return;
    found.replaceChildren(planNode(plan, joined));
    send.textContent = plan.kind === "group" || plan.kind === "channel" ? "Join" : "Connect";
    send.disabled = !plan.can;
    // A link that was filled in needs one key more; who types one is not interrupted.
    if (filledIn) (plan.can ? send : found.querySelector("button"))?.focus();
  };
  return (pause) => {
    clearTimeout(timer);
    send.disabled = true;
    timer = setTimeout(look, pause, pause === 0);
  };
}

const hint = (text) => el("p", { class: "soft", text });

function planNode(plan, joined) {
  if (!plan.kind) return hint(plan.text);
  const name = named(plan.name, plan.kind !== "unknown" && plan.kind);
  const about = plan.about && foreign(plan.about, "span", { class: "soft small" });
  const open = () => {
    close();
    joined(plan.chat);
  };
  return el(
    "div",
    { class: "stack" },
    plan.name && el("div", { class: "row" }, chatFace(plan), el("span", { class: "lines" }, name, about)),
    hint(plan.text),
    plan.chat && button("Open the chat", open, { class: "main" }),
  );
}

/** A new group; `made(chat)` gets its reference. */
export function newGroup(limits, { ask, made }) {
  const props = { maxlength: String(limits.name), autofocus: true };
  const parts = form("Name of the group", "Create", props, async (name) => {
    const { chat } = await ask("group", { name });
    close();
    await made(chat);
  });
  show("New group", hint("You will be its owner. Others join by its link."), parts.node);
}

/** A link to give away, with its QR code. */
export function showLink(title, about, { link, qr }) {
  const props = { class: "main copy", autofocus: true };
  const take = button("Copy the link", (event) => copy(link, event.currentTarget), props);
  const code = qr && isPicture(qr) && el("img", { class: "qr", src: qr, alt: "QR code of the link" });
  show(title, hint(about), el("p", { class: "code given foreign", text: link }), take, code);
}
