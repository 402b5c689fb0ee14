// Side panels: modal dialogs with a title, a close button, and focus that goes back to where it was.
import { el, icon } from "./dom.js";

export class Panel {
  constructor(id, kind = "sheet") {
    this.title = el("h2", { id: `${id}-title`, tabindex: "-1" });
    this.body = el("div", { class: "panel-body" });
    const close = el("button", { type: "button", class: "tool", "aria-label": "Close", title: "Close (Esc)" }, icon("M5 5l10 10M15 5 5 15"));
    close.addEventListener("click", () => this.close());
    this.node = el("dialog", { id, class: `panel ${kind}`, "aria-labelledby": `${id}-title` }, el("div", { class: "panel-head" }, this.title, close), this.body);
    this.node.addEventListener("click", (event) => {
      if (event.target === this.node) this.close(); // outside of the panel
    });
    this.node.addEventListener("close", () => this.closed?.());
    document.body.append(this.node);
  }

  get open() {
    return this.node.open;
  }

  show() {
    if (!this.node.open) this.node.showModal();
    this.title.focus({ preventScroll: true });
    this.body.scrollTop = 0;
  }

  close() {
    if (this.node.open) this.node.close();
  }
}

/** The panel on top, if one is open. */
export const topPanel = () => [...document.querySelectorAll("dialog[open]")].at(-1) ?? null;
