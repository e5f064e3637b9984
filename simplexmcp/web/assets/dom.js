// Small helpers to make elements. Text is always set as text: nothing here reads markup.

/** The element of the page with this id. */
export const byId = (id) => document.getElementById(id);

/**
 * A new element. `props`: `class`, `text`, `data` (an object), `on…` (listeners); true and false set and leave out an
 * attribute; everything else is an attribute. Children that are null or false are left out.
 */
export function el(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (name === "class") node.className = value;
    else if (name === "text") node.textContent = value;
    else if (name === "data") Object.assign(node.dataset, value);
    else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value != null) node.setAttribute(name, value);
  }
  node.append(...children.flat().filter((child) => child != null && child !== false));
  return node;
}

/** A button that is no submit button. */
export const button = (text, onclick, props = {}, children = []) =>
  el("button", { type: "button", text, onclick, ...props }, children);

// Marks of direction, zero-width characters and blanks: a text of nothing else would not be seen.
const UNSEEN = /^[\s\p{C}\p{M}\u115F\u1160\u2800\u3164\uFFA0]*$/u;

/** Text of somebody else, kept apart from the text around it. */
export const foreign = (text, tag = "span", props = {}) =>
  el(tag, { ...props, class: `foreign ${props.class ?? ""}`.trim(), dir: "auto", text: shown(text) });

/** A name or text; one that nobody could see is said to be so. */
export const shown = (text) => (text && UNSEEN.test(text) ? "(invisible)" : text);

/** Words about something, each on a ground of its own; false ones are left out. */
export const tags = (...words) => words.filter(Boolean).map((text) => el("span", { class: "tag", text }));

/** A name with words about it. */
export const named = (name, ...words) => el("span", { class: "first" }, foreign(name, "b"), tags(...words));

/** Text for screen readers only. */
export const aside = (text) => el("span", { class: "aside", text });

/** The mark of a person or a group: its picture, or the first letter of its name. */
export function face(name, { square = false, little = false, image = null } = {}) {
  const letter = [...name.matchAll(/[\p{L}\p{N}]/gu)][0]?.[0]?.toUpperCase() ?? "?";
  const hue = [...name].reduce((sum, char) => (sum * 31 + char.codePointAt(0)) % 8191, 7) % 8;
  const shape = `face hue-${hue}${square ? " square" : ""}${little ? " little" : ""}`;
  const picture = image && isPicture(image);
  return el("span", { class: shape, "aria-hidden": "true" }, picture ? el("img", { src: image, alt: "" }) : letter);
}

/** Whether this is a picture that may be shown: the server checked it, and so does the page. */
export const isPicture = (uri) => /^data:image\/(jpe?g|png);base64,[A-Za-z0-9+/=]+$/.test(uri);

/** A size in bytes for people. */
export function shownSize(bytes) {
  const units = ["bytes", "KB", "MB", "GB"];
  const step = bytes ? Math.min(3, Math.floor(Math.log2(bytes) / 10)) : 0;
  return `${Number((bytes / 1024 ** step).toFixed(step ? 1 : 0))} ${units[step]}`;
}

/** Tell the person something that went wrong or was done; it goes away by itself. */
export function notice(text) {
  const line = el("p", { class: "notice" }, el("span", { text }));
  line.append(button("✕", () => line.remove(), { class: "icon plain", "aria-label": "Close this notice" }));
  const lines = byId("notices");
  lines.append(line);
  // Over a dialog that is open.
  if (lines.matches(":popover-open")) lines.hidePopover();
  lines.showPopover();
  setTimeout(() => line.remove(), 10_000);
}

/** Tell screen readers of a new message. */
export function announce(text) {
  const heard = byId("heard");
  heard.append(el("p", { text }));
  while (heard.childElementCount > 20) heard.firstElementChild.remove();
}

/** Copy a text, and say so on the button. */
export async function copy(text, from) {
  try {
    await navigator.clipboard.writeText(text);
    from.dataset.done = "Copied";
    setTimeout(() => delete from.dataset.done, 2000);
    announce("Copied.");
  } catch {
    notice("The browser does not let this page copy. Mark the text and copy it yourself.");
  }
}
