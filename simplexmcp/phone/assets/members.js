// The panel with a group's members.

import { byId, notice } from "./dom.js";
import { confirm } from "./dialog.js";
import { memberRow } from "./render.js";

export class Members {
  #ask;
  #chat = null;
  #from = null; // what had the focus before

  constructor(ask) {
    this.#ask = ask;
    byId("close-panel").addEventListener("click", () => this.close());
  }

  get shown() {
    return !byId("panel").hidden;
  }

  /** Show the members of this group. */
  async open(chat, from) {
    this.#chat = chat;
    this.#from = from;
    byId("members").replaceChildren();
    byId("panel").hidden = false;
    byId("show-members").setAttribute("aria-expanded", "true");
    byId("panel-title").focus();
    await this.refresh();
  }

  close() {
    if (!this.shown) return;
    byId("panel").hidden = true;
    byId("show-members").setAttribute("aria-expanded", "false");
    this.#chat = null;
    this.#from?.focus();
  }

  /** Who is in a group changed. */
  changed(ref) {
    if (this.#chat?.chat === ref) void this.refresh();
  }

  async refresh() {
    const chat = this.#chat;
    const focused = document.activeElement.closest("[data-member]")?.dataset.member;
    const { members } = await this.#ask("members", { chat: chat.chat }).catch(failed);
    if (this.#chat !== chat) return;
    byId("panel-title").textContent = members.length === 1 ? "1 member" : `${members.length} members`;
    byId("members").replaceChildren(...members.map((member) => memberRow(member, this.#acts(member))));
    if (focused) (byId("members").querySelector(`[data-member="${focused}"] select`) ?? byId("panel-title")).focus();
  }

  #acts(member) {
    const about = { chat: this.#chat.chat, member: member.member };
    return {
      role: (role) => this.#do("role", { ...about, role }),
      remove: async () => {
        const sure = await confirm("Remove from the group", `${member.name} will no longer be in the group.`, "Remove");
        if (sure) await this.#do("remove", about);
      },
    };
  }

  async #do(what, fields) {
    await this.#ask(what, fields).catch(failed);
    if (this.#chat) await this.refresh();
  }
}

function failed(error) {
  notice(error.message);
  return { members: [] };
}
