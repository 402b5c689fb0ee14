// The panel of a field: its picture, its share of the data, and the nearest examples.
import { get } from "./api.js";
import { paint } from "./colors.js";
import { el, percent, setText } from "./dom.js";
import { notice } from "./notice.js";
import { Panel } from "./panel.js";
import { aboutRows, hasNames, kind, largePicture, profile, wordList } from "./pictures.js";
import { onRelabel, openRow } from "./row.js";
import { classOf } from "./state.js";
import { nameTile, showTiles, TILES_SAY } from "./tiles.js";

const parts = {};
let panel = null;
let shown = null;
let pictureOf = () => null;

/** `picture(field)` gives a canvas with the field's picture, where the map has one. */
export function startField(picture) {
  pictureOf = picture;
  panel = new Panel("field-panel");
  parts.frame = el("div", { class: "frame small" });
  parts.facts = el("dl", { class: "facts" });
  parts.list = el("ul", { class: "tiles" });
  parts.neighbors = el("p", { class: "neighbors" });
  panel.body.append(
    el("div", { class: "example" }, parts.frame, parts.facts),
    el("h3", {}, "Nearest examples"),
    el("p", { class: "hint" }, `Select one to label it. ${TILES_SAY}`),
    parts.list,
    el("h3", {}, "Fields like this"),
    parts.neighbors,
  );
  panel.closed = () => {
    shown = null;
  };
  onRelabel((row, label) => {
    const found = shown?.rows.find((one) => one.row === row);
    if (!found) return;
    found.label = label;
    nameTile(parts.list.querySelector(`[data-row="${row}"]`), found);
  });
}

function fact(name, ...value) {
  return el("div", {}, el("dt", {}, name), el("dd", {}, ...value));
}

function className(name) {
  if (!name) return el("span", {}, "none yet");
  const node = el("span", { class: "class-name" }, el("span", { class: "swatch" }), name);
  paint(node, classOf(name)?.color);
  return node;
}

export async function openField(field) {
  let found;
  try {
    found = await get(`/api/fields/${field}`);
  } catch (error) {
    notice(error.message, false, "warning");
    return;
  }
  shown = found;
  setText(panel.title, `Field ${field}`);
  const picture = await large(found);
  if (shown !== found) return;
  parts.frame.replaceChildren(picture);
  parts.facts.replaceChildren(
    fact("Class", className(found.class)),
    fact("Certainty", typeof found.certainty === "number" && found.class ? percent(found.certainty) : "–"),
    fact("Stands for", aboutRows(found.mass)),
  );
  const others = (found.neighbors ?? []).filter((other) => kind() === "words" || pictureOf(other)).slice(0, 8);
  parts.neighbors.replaceChildren(...others.map((other) => fieldButton(other)));
  parts.neighbors.previousElementSibling.hidden = others.length === 0;
  showTiles(parts.list, found.rows, openRow);
  panel.show();
}

/** The field itself, what sets it apart, or its most typical row. */
async function large({ field, profile: values, profile_names: names, words, typical, rows }) {
  const name = `Field ${field}`;
  if (words && (!values || kind() === "words")) return wordList(words, name);
  if (typical !== undefined && kind() === "image") return largePicture({ row: typical }, `${name}: its most typical example`);
  if (typical !== undefined) return el("p", { class: "no-picture" }, rows[0]?.snippet ?? "");
  if (values && hasNames(values, names)) return profile(values, names, name, false);
  return pictureOf(field) ?? (values ? profile(values, names, name) : el("p", { class: "no-picture" }, "No picture"));
}

function fieldButton(field) {
  const picture = pictureOf(field);
  const button = el("button", { type: "button", class: "tile field-tile", "aria-label": `Field ${field}`, title: `Field ${field}` }, picture ?? String(field));
  button.addEventListener("click", () => openField(field));
  return button;
}
