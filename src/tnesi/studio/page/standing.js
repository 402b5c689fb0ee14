// The classes with their sizes, and the labels to check.
import { paint } from "./colors.js";
import { capital, count, el, icon, keep, percent, plural, setText } from "./dom.js";
import { notice } from "./notice.js";
import * as outbox from "./outbox.js";
import { Panel } from "./panel.js";
import { renameTrail } from "./question.js";
import { openRow } from "./row.js";
import { now, watch } from "./state.js";
import { drawTiles, smallPicture } from "./pictures.js";

const DOUBTFUL = 0.8;
const PENCIL = "M4 16l1-4 8.5-8.5 3 3L8 15l-4 1zM11.5 5.5l3 3";

const parts = {};
let openGallery = () => {};
let renamed = null;

/** `gallery(name)` shows the rows of a class. */
export function startStanding(gallery) {
  openGallery = gallery;
  parts.classes = el("ul", { class: "class-list" });
  parts.noClasses = el("p", { class: "hint" }, "Classes appear here with your first answers.");
  document.getElementById("classes-body").append(parts.classes, parts.noClasses);
  parts.conflicts = el("ul", { class: "conflict-list" });
  parts.noConflicts = el("p", { class: "hint" }, "Labels that contradict their surroundings appear here. There are none.");
  document.getElementById("conflicts-body").append(parts.conflicts, parts.noConflicts);
  startRename();
  watch(render);
}

function render(state) {
  parts.noClasses.hidden = state.classes.length > 0;
  const most = Math.max(...state.classes.map((one) => one.share ?? 0), 1e-9);
  keep(parts.classes, state.classes, (one) => one.name, makeClass, (line, one) => {
    paint(line, one.color);
    setText(line.querySelector(".class-name"), one.name);
    line.querySelector(".class-bar > span").style.inlineSize = `${(100 * (one.share ?? 0)) / most}%`;
    setText(line.querySelector(".class-rows"), `${count(one.rows ?? 0)} rows`);
    setText(line.querySelector(".class-labels"), plural(one.labels, "label"));
    const doubt = typeof one.confidence === "number" && one.confidence < DOUBTFUL && one.rival;
    setText(line.querySelector(".class-doubt"), doubt ? `${one.name} and ${one.rival} may be swapped.` : "");
  });
  renderConflicts(state.conflicts);
}

function makeClass(one) {
  const open = el("button", { type: "button", class: "class-open", title: "Show its rows" }, el("span", { class: "swatch" }), el("span", { class: "class-name" }));
  open.addEventListener("click", () => openGallery(one.name));
  const rename = el("button", { type: "button", class: "tool small", "aria-label": `Rename ${one.name}`, title: "Rename" }, icon(PENCIL));
  rename.addEventListener("click", () => startRenaming(one.name));
  return el(
    "li", {},
    open,
    el("span", { class: "class-labels" }),
    el("span", { class: "class-rows" }),
    rename,
    el("span", { class: "class-bar", "aria-hidden": "true" }, el("span")),
    el("span", { class: "class-doubt" }),
  );
}

let drawnConflicts = "";

function renderConflicts(conflicts) {
  parts.noConflicts.hidden = conflicts.length > 0;
  const drawn = JSON.stringify(conflicts);
  if (drawn === drawnConflicts) return;
  drawnConflicts = drawn;
  const made = [];
  keep(parts.conflicts, conflicts, (one) => `${one.row} ${one.label} ${one.seems}`, (one) => {
    const picture = smallPicture(one);
    made.push([one.row, picture]);
    const button = el("button", { type: "button", class: "button", "aria-label": `Look again at row ${one.row}` }, "Look again");
    button.addEventListener("click", () => openRow(one.row));
    return el("li", {}, picture, el("p", {}, el("span", { class: "conflict-text" }), el("span", { class: "hint" }, `row ${one.row}`)), button);
  }, (line, one) => setText(line.querySelector(".conflict-text"), capital(one.text)));
  if (made.length) drawTiles(made.map(([row]) => row), made.map(([, canvas]) => canvas));
}

function startRename() {
  const panel = new Panel("rename-panel", "centered narrow");
  setText(panel.title, "Rename the class");
  const input = el("input", { id: "rename-name", type: "text", maxlength: 100, autocomplete: "off" });
  const hint = el("p", { class: "name-hint", role: "status" });
  const button = el("button", { type: "submit", class: "button" });
  const form = el("form", { class: "name-form" }, el("label", { for: "rename-name", class: "out-of-sight" }, "New name"), input, button, hint);
  let joined = null; // the class to merge with, after the warning
  const labelsOf = (name) => now.state.classes.find((one) => one.name === name)?.labels;
  const tell = () => {
    joined = null;
    const name = input.value.trim();
    setText(hint, name !== renamed && labelsOf(name) ? `${renamed} and ${name} will be merged.` : " ");
    setText(button, "Rename");
  };
  input.addEventListener("input", tell);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const name = input.value.trim();
    const old = renamed; // another class may be selected while this one is saved
    if (!name || name === old) return panel.close();
    if (labelsOf(name) && joined !== name) {
      joined = name;
      setText(hint, `Press again to merge ${plural(labelsOf(old) ?? 0, "label")} of ${old} and ${labelsOf(name)} of ${name}.`);
      setText(button, "Merge");
      return;
    }
    try {
      setText(hint, "Saving");
      await outbox.give("rename", { old, name }).saved;
      renameTrail(old, name);
      notice(`${old} is ${name} now; Ctrl+Z undoes this`);
      if (renamed === old) panel.close();
    } catch (error) {
      setText(hint, error.message);
    }
  });
  panel.body.append(form);
  Object.assign(parts, { renamePanel: panel, renameInput: input, renameTell: tell });
}

function startRenaming(name) {
  renamed = name;
  parts.renameInput.value = name;
  parts.renameTell();
  parts.renamePanel.show();
  parts.renameInput.select();
}
