// The dialog of a page: shown with a title, as a form with one line, or as "are you sure".

import { button, byId, el, foreign } from "./dom.js";

/** Show it with these nodes; the focus goes to `[autofocus]`, or to the button that closes it. */
export function show(title, ...nodes) {
  const dialog = byId("dialog");
  const cross = button("✕", () => dialog.close(), { class: "icon plain close", "aria-label": "Close" });
  dialog.oncancel = null;
  dialog.onclose = null;
  dialog.classList.remove("must");
  dialog.replaceChildren(el("h2", { id: "dialog-title", text: title }), ...nodes.filter(Boolean), cross);
  if (!dialog.open) dialog.showModal();
  (dialog.querySelector("[autofocus]") ?? cross).focus();
  return dialog;
}

/** Close it. */
export const close = () => byId("dialog").close();

/** A form with one line; `work(value)` does it, and its failure is said in the dialog. */
export function form(label, word, props, work) {
  const all = { id: "dialog-input", autocomplete: "off", spellcheck: "false", required: true, ...props };
  const input = el("input", all);
  const trouble = el("p", { class: "risky-text small", role: "alert" });
  const onsubmit = async (event) => {
    event.preventDefault();
    trouble.textContent = "";
    try {
      await work(input.value.trim());
    } catch (error) {
      trouble.textContent = error.message;
    }
  };
  const send = el("button", { type: "submit", class: "main", text: word });
  const line = el("div", { class: "pair" }, input, send);
  const name = el("label", { for: "dialog-input", text: label });
  return { node: el("form", { class: "stack", onsubmit }, name, line, trouble), input, send };
}

/** Ask before something that cannot be taken back; whether the person agreed. */
export function confirm(title, text, word) {
  return new Promise((done) => {
    // Not left to the dialog's own event: a tab that is not seen gets that late.
    const agree = button(word, () => (done(true), close()), { class: "risky" });
    const stay = button("Cancel", close, { autofocus: true });
    const dialog = show(title, foreign(text, "p"), el("div", { class: "pair end" }, stay, agree));
    dialog.onclose = () => done(false);
  });
}
