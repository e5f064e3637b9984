// The panel beside the messages: who is here, what is claimed, and who has not read what is meant for them.

import { byId, el, foreign } from "./dom.js";
import * as memory from "./memory.js";
import { age, mark, span } from "./message.js";
import { ask } from "./server.js";

const PAUSE = 300; // milliseconds between two looks, at least
const TICK = 20_000; // between two looks without news: times pass
const WIDE = "(min-width: 72rem)";

export class Panel {
  #room = null;
  #name = "";
  #asked = false;
  #again = false;
  #panel = byId("panel");

  constructor() {
    byId("do-panel").addEventListener("click", () => this.#toggle(this.#panel.hidden));
    byId("close-panel").addEventListener("click", () => this.close());
    setInterval(() => this.changed(), TICK);
  }

  /** Show a room's, if the panel is open. */
  show(room, name) {
    this.#name = name;
    if (room !== this.#room) this.#fill({ agents: [], claims: [], pending: [], total: 0, claimed: 0 });
    this.#room = room;
    const open = room !== null && (memory.panelOpen() ?? true) && matchMedia(WIDE).matches;
    this.#set(room !== null && (open || !this.#panel.hidden));
  }

  get isOpen() {
    return !this.#panel.hidden;
  }

  /** Close it, and go back to where it was opened. */
  close() {
    this.#toggle(false);
    byId("do-panel").focus();
  }

  /** Something changed: look again, but not too often. */
  changed() {
    if (this.#panel.hidden || document.hidden || this.#room === null) return;
    if (this.#asked) this.#again = true;
    else void this.#load();
  }

  #toggle(open) {
    if (matchMedia(WIDE).matches) memory.setPanelOpen(open);
    this.#set(open);
    if (open) byId("panel-title").focus();
  }

  #set(open) {
    this.#panel.hidden = !open;
    byId("do-panel").setAttribute("aria-pressed", String(open));
    this.changed();
  }

  async #load() {
    const room = this.#room;
    this.#asked = true;
    const found = await ask("around", { room }).catch(() => null); // the stream tells of a lost connection
    if (found && room === this.#room) this.#fill(found);
    setTimeout(() => {
      this.#asked = false;
      if (this.#again) this.changed();
      this.#again = false;
    }, room === this.#room ? PAUSE : 0);
    if (room !== this.#room) this.#again = true;
  }

  #fill({ agents, claims, pending, total, claimed }) {
    const models = new Map(agents.map((agent) => [agent.id, agent]));
    rows("waiting", pending.map(pendingRow.bind(null, models)), "Nobody waits for anybody.");
    rows("claims", claims.map(claimRow.bind(null, models)), "Nothing is claimed.", claimed);
    const present = [...agents].sort((a, b) => order(a) - order(b));
    rows("agents", present.map((agent) => agentRow(agent, this.#name)), "Nobody has joined.", total);
  }
}

/** Those who listen first, then those who are here, at the end those who left. */
const order = (agent) => (agent.present ? (agent.active ? 0 : 1) : 2);

function rows(id, nodes, nothing, total = nodes.length) {
  const note = (text) => el("li", { class: "soft small", text });
  const rest = total > nodes.length ? [note(`and ${total - nodes.length} more`)] : [];
  byId(id).replaceChildren(...(nodes.length ? nodes : [note(nothing)]), ...rest);
}

function state(agent) {
  if (!agent.present) return "left";
  if (agent.watching) return "waits for messages";
  if (agent.idle_seconds === null) return "not seen yet";
  return agent.active ? "active" : `last seen ${span(agent.idle_seconds)} ago`;
}

function agentRow(agent, me) {
  const kind = agent.present ? (agent.active ? "on" : "off") : "left";
  const light = el("span", { class: "light", "aria-hidden": "true" });
  return el(
    "li",
    { class: `agent ${kind}` },
    mark(agent, true),
    el(
      "span",
      { class: "lines" },
      el(
        "span",
        { class: "first" },
        foreign(agent.model ?? agent.id, "b"),
        agent.id === me && el("span", { class: "tag you", text: "you" }),
        agent.role && foreign(agent.role, "span", { class: "tag" }),
      ),
      agent.model !== null && foreign(agent.id, "span", { class: "id soft" }),
      agent.description && foreign(agent.description, "span", { class: "soft small about" }),
      el("span", { class: "soft small" }, light, `${state(agent)}, read to #${agent.last_read_seq}`),
    ),
  );
}

const named = (models, id) => foreign(models.get(id)?.model ?? id, "b");

function claimRow(models, claim) {
  const left = `, ${span(claim.expires_in_seconds)} left`;
  const holder = el("span", { class: "soft small" }, named(models, claim.holder), left);
  const note = claim.note && foreign(claim.note, "span", { class: "soft small about" });
  return el("li", {}, el("span", { class: "lines" }, foreign(claim.key, "code"), note, holder));
}

function pendingRow(models, work) {
  const since = age(new Date(work.oldest_unix * 1000).toISOString().slice(0, 19).replace("T", " "));
  const count = work.directed_unread === 1 ? "1 message" : `${work.directed_unread} messages`;
  const text = `${count} from #${work.oldest_seq} on, ${since === "now" ? "just now" : `for ${since}`}`;
  const what = el("span", { class: "soft small", text });
  return el("li", {}, el("span", { class: "lines" }, named(models, work.agent_id), what));
}
