// The help: keys, and the meaning of the figures.
import { el, setText } from "./dom.js";
import { Panel } from "./panel.js";

let panel = null;

const KEYS = [
  [["1", "…", "9"], "choose the class with this key"],
  [["a", "…", "z"], "choose the class with this name of one letter"],
  [["Enter"], "start typing a class name; Enter confirms it, Esc cancels"],
  [["any other"], "start typing a class name"],
  [["→"], "skip: you do not know, or none of the classes fits"],
  [["←", "Ctrl", "Z"], "undo, as often as you like, back to the first answer"],
  [["?"], "this help; Esc closes it"],
  [["←", "↑", "↓", "→"], "on the map: move between fields; Enter opens one"],
];

const WORDS = [
  ["Field", "A typical pattern, found without labels. Each stands for a part of the data; similar fields are near each other on the map."],
  ["Decided", "The share of the rows whose class is clear: the best class is ahead of the second by a good margin."],
  ["Expected error", "The share of rows that are likely to have a wrong class, with a range. It is an estimate and can be off with few labels."],
  ["Margin", "How far the best class is ahead of the second, from 0 (a tie) to 1 (no doubt)."],
  ["Saved", "An answer with ✓ is on disk. One with ↻ is not saved yet and is sent again; leave the page open."],
];

export function startHelp() {
  panel = new Panel("help-panel", "centered");
  setText(panel.title, "How to label");
  panel.body.tabIndex = 0; // it has no other focusable element and may need scrolling
  panel.body.append(
    el("p", {}, "Label one example at a time. The program asks about the most informative ones; ten answers are often enough. If a name begins with the key of a class, press Enter first."),
    el("h3", {}, "Keys"),
    el("dl", { class: "keys" }, ...KEYS.map(([keys, text]) => el("div", {}, el("dt", {}, ...keys.map((key) => el("kbd", {}, key))), el("dd", {}, text)))),
    el("h3", {}, "Words"),
    el("dl", { class: "glossary" }, ...WORDS.map(([word, text]) => el("div", {}, el("dt", {}, word), el("dd", {}, text)))),
  );
  document.getElementById("help-button").addEventListener("click", openHelp);
}

export const openHelp = () => panel.show();
