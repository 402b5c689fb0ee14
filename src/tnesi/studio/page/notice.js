// One line beside the buttons of the question: what just happened.
import { el, setText } from "./dom.js";

export const line = el("p", { class: "notice", role: "status" });

let fading = null;

/** Say what just happened; a warning ("warning") stands out, and what is `lasting` stays until something else happens. */
export function notice(text, lasting = false, kind = "") {
  clearTimeout(fading);
  setText(line, text);
  line.dataset.kind = kind;
  if (!lasting) fading = setTimeout(() => setText(line, ""), 4000);
}

export const warn = (text) => notice(text, true, "warning");
