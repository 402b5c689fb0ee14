// The map of the fields: similar ones are near each other. With the mouse, with touch, or with the arrow keys.
import { get } from "./api.js";
import { paint } from "./colors.js";
import { el, keep, percent, setText } from "./dom.js";
import { openField } from "./field.js";
import { MapPainter } from "./map_paint.js";
import { aboutRows, hasPhotos, kind } from "./pictures.js";
import { classOf, lineListeners, now, watch } from "./state.js";

const SMALLEST = 18;
const SMALLEST_TOUCHED = 26;
const LARGEST = { image: 52, profile: 52, words: 72, document: 84, table: 104 };
const LARGEST_PHOTO = 72;
const READABLE = 30; // cells shrink to this to fit the height, not further

const parts = {};
let painter = null;
let places = new Map(); // "x,y" -> number of the cell
let here = -1; // the cell under the cursor
let version = null;
let learned = null;
let loading = false;

export function startMap() {
  const place = document.getElementById("panel-map");
  parts.canvas = el("canvas", { "aria-hidden": "true" });
  parts.cursor = el("div", { class: "map-cursor", hidden: true });
  parts.empty = el("p", { class: "placeholder" }, "The fields appear here when they are learned.");
  parts.sheet = el("div", { class: "map-sheet" }, parts.canvas, parts.cursor);
  parts.scroll = el(
    "div",
    { class: "map-scroll", tabindex: "0", role: "application", "aria-label": "Map of the fields: arrow keys move, Enter opens a field", "aria-describedby": "map-said" },
    parts.sheet, parts.empty,
  );
  parts.said = el("p", { id: "map-said", class: "map-said", "aria-live": "polite" });
  parts.legend = el("ul", { class: "legend", "aria-label": "Colors of the classes" });
  place.append(parts.scroll, parts.said, parts.legend);
  painter = new MapPainter(parts.canvas);
  rest();
  parts.scroll.addEventListener("keydown", onKey);
  parts.scroll.addEventListener("focus", () => {
    if (painter.map?.cells.length) move(here < 0 ? 0 : here, true);
  });
  parts.scroll.addEventListener("blur", rest);
  parts.canvas.addEventListener("pointermove", (event) => {
    if (event.pointerType === "mouse") move(cellAt(event), false);
  });
  parts.canvas.addEventListener("pointerleave", () => document.activeElement !== parts.scroll && rest());
  parts.canvas.addEventListener("click", (event) => {
    const i = cellAt(event);
    if (i < 0) return;
    move(i, false);
    openField(painter.map.cells[i].field);
  });
  new ResizeObserver(() => fit()).observe(parts.scroll);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", restyle);
  document.addEventListener("tnesi-style", restyle);
  lineListeners.add((line) => {
    if (line !== "open") version = null; // a restarted server numbers its maps from 1
  });
  watch(fromState);
  return painter;
}

function rest() {
  parts.cursor.hidden = true;
  const more = parts.scroll.scrollWidth > parts.scroll.clientWidth || parts.scroll.scrollHeight > parts.scroll.clientHeight;
  const text = "Each tile is a field: a typical pattern, found without labels. Select one to see its examples.";
  setText(parts.said, painter.map?.cells.length ? text + (more ? " Scroll to see the rest of the map." : "") : " ");
}

function cellAt(event) {
  if (!painter.map) return -1;
  const place = parts.canvas.getBoundingClientRect();
  const [x, y] = [event.clientX - place.left, event.clientY - place.top].map((value) => Math.floor(value / painter.cell));
  return places.get(`${x},${y}`) ?? -1;
}

function move(i, follow) {
  if (i < 0) return;
  here = i;
  const { x, y } = painter.map.cells[i];
  const side = painter.cell;
  Object.assign(parts.cursor.style, { insetInlineStart: `${x * side}px`, insetBlockStart: `${y * side}px`, inlineSize: `${side}px`, blockSize: `${side}px` });
  parts.cursor.hidden = false;
  setText(parts.said, describe(painter.map.cells[i]));
  if (follow) parts.cursor.scrollIntoView({ block: "nearest", inline: "nearest" });
}

function describe(cell) {
  const name = cell.class >= 0 ? painter.map.classes[cell.class] : null;
  const what = name ? `class ${name}, certainty ${percent(cell.certainty, 0)}` : "no class yet";
  return `Field ${cell.field}${cell.text ? ` (${cell.text.replaceAll("\n", ", ")})` : ""}: ${what}, stands for ${aboutRows(cell.mass)}`;
}

const STEPS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

function onKey(event) {
  if (!painter.map?.cells.length || event.ctrlKey || event.metaKey || event.altKey) return;
  const { cells, columns, rows } = painter.map;
  if (event.key === "Enter" || event.key === " ") {
    event.preventDefault();
    if (here >= 0) openField(cells[here].field);
    return;
  }
  if (event.key === "Home" || event.key === "End") {
    event.preventDefault();
    move(event.key === "Home" ? 0 : cells.length - 1, true);
    return;
  }
  const step = STEPS[event.key];
  if (!step) return;
  event.preventDefault();
  if (here < 0) return move(0, true);
  let { x, y } = cells[here];
  for (;;) {
    x += step[0];
    y += step[1];
    if (x < 0 || y < 0 || x >= columns || y >= rows) return;
    if (places.has(`${x},${y}`)) return move(places.get(`${x},${y}`), true);
  }
}

/** As large as the space allows, but never too small to see or touch. */
function fit() {
  if (!painter.map?.cells.length || parts.scroll.clientWidth === 0) return;
  const least = matchMedia("(pointer: coarse)").matches ? SMALLEST_TOUCHED : SMALLEST;
  const { columns, rows } = painter.map;
  const [wide, high] = [Math.floor(parts.scroll.clientWidth / columns), Math.floor(parts.scroll.clientHeight / rows)];
  const cell = Math.max(least, Math.min(hasPhotos() ? LARGEST_PHOTO : LARGEST[kind()], wide, Math.max(high, READABLE)));
  if (cell === painter.cell && painter.fitted === painter.map) return;
  painter.fitted = painter.map;
  painter.resize(cell);
  recolor(false);
  if (parts.cursor.hidden) rest();
  else move(here, false);
}

function recolor(fade) {
  if (!painter.map?.cells.length || !painter.cell) return;
  painter.color((k) => classOf(painter.map.classes[k])?.color ?? k, fade);
}

function restyle() {
  painter.restyle();
  recolor(false);
}

async function fromState(state) {
  keep(parts.legend, state.classes, (one) => one.name, (one) => el("li", {}, el("span", { class: "swatch" }), el("span", {}, one.name)), (line, one) => paint(line, one.color));
  if (loading) return;
  if (state.map_version === version && state.answers.learned === learned) return;
  if (!state.map_version && version === null) return; // no map yet
  loading = true;
  try {
    await load(state);
  } catch {
    version = null; // the next state tries again
  } finally {
    loading = false;
  }
  if (now.state !== state) fromState(now.state);
}

async function load(state) {
  if (state.map_version !== version) {
    const map = await get("/api/map");
    const field = painter.map?.cells[here]?.field;
    await painter.take(map);
    version = map.version;
    places = new Map(map.cells.map((cell, i) => [`${cell.x},${cell.y}`, i]));
    here = map.cells.findIndex((cell) => cell.field === field);
    parts.empty.hidden = map.cells.length > 0;
    fit();
  } else {
    const { class: classes, certainty, classes: names } = await get("/api/map/classes");
    if (classes.length === painter.map.cells.length) {
      painter.map.classes = names;
      painter.map.cells.forEach((cell, i) => Object.assign(cell, { class: classes[i], certainty: certainty[i] }));
      recolor(true);
    }
  }
  learned = state.answers.learned;
}
