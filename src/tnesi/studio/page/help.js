// The help: what the keys do, and what the figures mean.
import { el, setText } from "./dom.js";
import { Panel } from "./panel.js";

let panel = null;

const KEYS = [
  [["1", "…", "9"], "answer with the class that shows this key"],
  [["a", "…", "z"], "answer with the class of that name, if its name is one letter"],
  [["Enter"], "start a class name; Enter again confirms it, Esc leaves the box"],
  [["any other"], "starts a new class name with that character"],
  [["→"], "skip: you do not know, or it is none of them"],
  [["←", "Ctrl", "Z"], "undo, as often as you like, back to the first answer"],
  [["?"], "this help; Esc closes it"],
  [["←", "↑", "↓", "→"], "on the map: go from field to field; Enter opens one"],
];

const WORDS = [
  ["Field", "A kind of example that was found without labels. Each stands for a part of the data; similar ones are near each other on the map."],
  ["Decided", "The share of the rows whose class is clear: the best class is ahead of the second by a good margin."],
  ["Expected error", "How many of 100 rows are likely to get a wrong class, with the range it is likely in. It is an estimate: with few labels it can be off."],
  ["Margin", "How far the best class is ahead of the second, from 0 (a tie) to 1 (no doubt)."],
  ["Saved", "An answer with ✓ is on the disk. One with ↻ is not saved yet and is sent again until it is; leave the page open."],
];

export function startHelp() {
  panel = new Panel("help-panel", "centered");
  setText(panel.title, "How to label");
  panel.body.tabIndex = 0; // nothing else in it takes the focus, and it may have to be scrolled
  panel.body.append(
    el("p", {}, "Say what you see, one example at a time. The program asks about those that tell it most; ten answers are often enough. Names that begin with the key of a class: press Enter first."),
    el("h3", {}, "Keys"),
    el("dl", { class: "keys" }, ...KEYS.map(([keys, text]) => el("div", {}, el("dt", {}, ...keys.map((key) => el("kbd", {}, key))), el("dd", {}, text)))),
    el("h3", {}, "Words"),
    el("dl", { class: "glossary" }, ...WORDS.map(([word, text]) => el("div", {}, el("dt", {}, word), el("dd", {}, text)))),
  );
  document.getElementById("help-button").addEventListener("click", openHelp);
}

export const openHelp = () => panel.show();
