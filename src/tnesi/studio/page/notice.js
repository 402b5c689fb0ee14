// One line beside the buttons of the question: the last event.
import { el, setText } from "./dom.js";

export const line = el("p", { class: "notice", role: "status" });

let fading = null;

/** Show an event; a "warning" is highlighted, and a `lasting` text stays until the next event. */
export function notice(text, lasting = false, kind = "") {
  clearTimeout(fading);
  setText(line, text);
  line.dataset.kind = kind;
  if (!lasting) fading = setTimeout(() => setText(line, ""), 4000);
}

export const warn = (text) => notice(text, true, "warning");
