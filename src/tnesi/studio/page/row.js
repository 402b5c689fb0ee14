// The panel of one row: its picture, its predicted class, and a new label.
import { get } from "./api.js";
import { Chooser } from "./chooser.js";
import { paint } from "./colors.js";
import { announce, capital, el, keep, percent, plural, setText } from "./dom.js";
import { notice } from "./notice.js";
import * as outbox from "./outbox.js";
import { Panel } from "./panel.js";
import { largePicture, rowName } from "./pictures.js";
import { classOf, now, watch } from "./state.js";

const listeners = new Set();
const parts = {};
let panel = null;
let shown = null;

/** Call `listener(row, label)` when a row has been relabeled (null: its label was removed). */
export const onRelabel = (listener) => listeners.add(listener);

/** Say that a row has another label now, or none. */
export function tellRelabel(row, label) {
  for (const listener of listeners) listener(row, label);
}

/** `field(number)` shows a field. */
export function startRow(field) {
  panel = new Panel("row-panel", "centered");
  parts.frame = el("div", { class: "frame" });
  parts.label = el("p", { class: "row-label" });
  parts.guesses = el("ul", { class: "guesses", "aria-label": "Probabilities" });
  parts.margin = el("p", { class: "hint" });
  parts.conflict = el("p", { class: "row-conflict" });
  parts.history = el("p", { class: "hint" });
  parts.chooser = new Chooser(relabel);
  parts.clear = el("button", { type: "button", class: "button quiet", onclick: clear }, "Remove the label");
  parts.around = el("button", { type: "button", class: "button quiet" }, "Rows around it");
  parts.around.addEventListener("click", () => {
    const [first] = shown.fields;
    panel.close();
    field(first);
  });
  parts.notice = el("p", { class: "notice", role: "status" });
  panel.body.append(
    el("div", { class: "example" }, parts.frame, el("div", { class: "about" }, parts.label, parts.conflict, parts.guesses, parts.margin, parts.history)),
    parts.chooser.node,
    el("div", { class: "actions" }, parts.clear, parts.around, parts.notice),
  );
  panel.closed = () => {
    shown = null;
    parts.chooser.clear();
  };
  watch(() => shown && render());
  outbox.onChange((entry) => {
    if (shown && entry.row === shown.row) render(entry);
  });
}

export async function openRow(row) {
  let found;
  try {
    found = await get(`/api/rows/${row}`);
  } catch (error) {
    notice(error.message, false, "warning");
    return error.message;
  }
  const picture = await largePicture(found, `Row ${found.row}`);
  shown = found;
  setText(panel.title, capital(rowName(found)));
  parts.frame.replaceChildren(picture);
  setText(parts.notice, "");
  render();
  panel.show();
  return null;
}

function render(entry) {
  const { label, predicted, probabilities, margin, history } = shown;
  setText(parts.label, label ? `Labeled ${label}` : predicted ? `No label; looks like ${predicted}` : "No label yet");
  keep(parts.guesses, (probabilities ?? []).filter(([, share]) => share >= 0.001), ([name]) => name, ([name]) => el("li", {}, el("span", { class: "swatch" }), el("span", { class: "guess-name" }, name), el("span", { class: "guess-share" })), (line, [name, share]) => {
    paint(line, classOf(name)?.color);
    setText(line.querySelector(".guess-share"), percent(share));
  });
  const conflict = label && now.state.conflicts.find((one) => one.row === shown.row);
  setText(parts.conflict, conflict ? `Of the rows around it ${percent(conflict.probability, 0)} look like ${conflict.seems}. Is the label correct?` : "");
  parts.around.hidden = !shown.fields?.length;
  setText(parts.margin, typeof margin === "number" ? `Margin ${margin.toFixed(2)}` : "");
  setText(parts.history, history?.length ? `Answered ${plural(history.length, "time")}` : "");
  parts.chooser.update(probabilities, label);
  parts.clear.disabled = !label;
  if (entry) setText(parts.notice, { sending: "Saving", waiting: "Not saved yet, retrying", saved: "Saved", refused: entry.error }[entry.state] ?? "");
}

async function give(kind, what, label) {
  const { row } = shown;
  shown = { ...shown, label };
  const entry = outbox.give(kind, { row, ...what });
  render(entry);
  try {
    await entry.saved;
    tellRelabel(row, label);
    announce(label === null ? `Removed the label of row ${row}.` : `Row ${row} is now labeled ${label}.`);
    if (shown?.row === row) panel.close();
  } catch {
    if (shown?.row === row) openRow(row); // refused: show the saved state
  }
}

const relabel = (label) => shown && give("label", { label }, label);
const clear = () => shown && give("clear", {}, null);

/** A key in the panel: a class's key relabels, anything else starts a name. */
export function keyInRow(key, found) {
  if (found) relabel(found.name);
  else parts.chooser.begin(key);
}

export const knownRow = (text) => {
  const number = Number(text);
  const rows = now.state?.data.rows ?? 0;
  return /^\d+$/.test(text.trim()) && number < rows ? number : null;
};
