// Rows as tiles: in the panel of a field, in the gallery, and among the conflicts.
import { paint } from "./colors.js";
import { el, percent, setText } from "./dom.js";
import { drawTiles, rowName, smallPicture } from "./pictures.js";
import { classOf } from "./state.js";

export const TILES_SAY = "Below each: its class and margin. Outlined: labeled by you. Red: the model disagrees.";

/** Fill `list` with a tile per row; `open(row)` is called when one is pressed. */
export function showTiles(list, rows, open) {
  const tiles = rows.map((row) => {
    const button = el("button", { type: "button", class: "tile" }, smallPicture(row), " ", el("span", { class: "tile-name" }), " ", el("span", { class: "tile-share" }));
    button.addEventListener("click", () => open(row.row));
    const line = el("li", {}, button);
    line.dataset.row = row.row;
    return line;
  });
  const longest = Math.max(...rows.map((row) => (row.label ?? row.predicted ?? "").length));
  list.classList.toggle("wide", rows.some((row) => row.words || row.snippet) || longest > 3);
  list.replaceChildren(...tiles);
  rows.forEach((row, i) => nameTile(tiles[i], row));
  return drawTiles(rows.map((row) => row.row), tiles.map((tile) => tile.querySelector("canvas")));
}

/** Write the class of a row on its tile: its label, or else the prediction. */
export function nameTile(line, row) {
  const button = line.firstElementChild;
  const name = row.label ?? row.predicted;
  paint(button, classOf(name)?.color);
  button.classList.toggle("labeled", row.label !== null && row.label !== undefined);
  button.classList.toggle("unlike", Boolean(row.label && row.predicted && row.label !== row.predicted));
  setText(button.querySelector(".tile-name"), name ?? "?");
  const margin = typeof row.margin === "number" ? row.margin.toFixed(2) : "";
  setText(button.querySelector(".tile-share"), margin);
  const seen = [row.snippet ?? (row.words?.length ? row.words.join(", ") : ""), name ?? "?", margin].filter(Boolean).join(" ");
  const said = [seen, rowName(row)];
  if (row.label) said.push(`labeled ${row.label}`);
  if (row.predicted) said.push(`guess ${row.predicted}${typeof row.probability === "number" ? ` ${percent(row.probability)}` : ""}`);
  else if (!row.label) said.push("no class yet");
  if (margin) said.push(`margin ${margin}`);
  button.setAttribute("aria-label", said.join(", "));
  button.title = said.slice(1).join(", ");
}
