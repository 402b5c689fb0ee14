// Rows by class, the most or least certain first; a row by its index.
import { get } from "./api.js";
import { count, el, keep, setText } from "./dom.js";
import { knownRow, onRelabel, openRow } from "./row.js";
import { now, watch } from "./state.js";
import { nameTile, showTiles, TILES_SAY } from "./tiles.js";

const PAGE = 60;
const ORDERS = { certain: "Most certain first", uncertain: "Least certain first", index: "By index" };

const parts = {};
const asked = { class: "", order: "certain", labeled: "", offset: 0 };
let rows = [];
let total = 0;
let drawnAt = null; // the answers reflected by the rows on the page
let visible = false;
let turn = 0;

export function startGallery() {
  const place = document.getElementById("panel-gallery");
  parts.class = el("select", { id: "gallery-class" });
  parts.order = el("select", { id: "gallery-order" }, ...Object.entries(ORDERS).map(([value, text]) => el("option", { value }, text)));
  parts.index = el("input", { id: "gallery-index", type: "text", inputmode: "numeric", autocomplete: "off", size: 8 });
  parts.search = el("form", { class: "gallery-search", role: "search" }, el("label", { for: "gallery-index" }, "Row"), parts.index, el("button", { type: "submit", class: "button" }, "Open"));
  parts.said = el("p", { class: "hint gallery-said", role: "status" });
  parts.list = el("ul", { class: "tiles", "aria-label": "Rows" });
  parts.back = el("button", { type: "button", class: "button" }, "Previous");
  parts.on = el("button", { type: "button", class: "button" }, "Next");
  parts.fresh = el("button", { type: "button", class: "button quiet", title: "The classes have changed since" }, "Show newest");
  place.append(
    el(
      "div", { class: "gallery-bar" },
      el("div", { class: "picker" }, el("label", { for: "gallery-class" }, "Class"), parts.class),
      el("div", { class: "picker" }, el("label", { for: "gallery-order" }, "Order"), parts.order),
      parts.search,
    ),
    el("div", { class: "gallery-pager" }, parts.back, parts.on, parts.said, parts.fresh),
    parts.list,
    el("p", { class: "hint" }, TILES_SAY),
  );
  parts.class.addEventListener("change", () => {
    const [kind, name] = [parts.class.value.slice(0, 1), parts.class.value.slice(1)];
    Object.assign(asked, { class: kind === "c" ? name : "", labeled: kind === "l" ? "1" : "", offset: 0 });
    load();
  });
  parts.order.addEventListener("change", () => {
    Object.assign(asked, { order: parts.order.value, offset: 0 });
    load();
  });
  parts.search.addEventListener("submit", (event) => {
    event.preventDefault();
    search();
  });
  parts.back.addEventListener("click", () => page(-PAGE));
  parts.on.addEventListener("click", () => page(PAGE));
  parts.fresh.addEventListener("click", load);
  watch(fromState);
  onRelabel((row, label) => {
    const found = rows.find((one) => one.row === row);
    if (!found) return;
    found.label = label;
    nameTile(parts.list.querySelector(`[data-row="${row}"]`), found);
  });
}

function page(step) {
  asked.offset = Math.max(0, asked.offset + step);
  load();
}

async function search() {
  const row = knownRow(parts.index.value);
  const error = row === null ? `Enter a number from 0 to ${count(now.state.data.rows - 1)}.` : await openRow(row);
  if (error) setText(parts.said, error);
}

function fromState(state) {
  const options = [{ value: "", name: "All rows" }, { value: "l", name: "With a label" }, ...state.classes.map((one) => ({ value: `c${one.name}`, name: one.name }))];
  const chosen = parts.class.value;
  keep(parts.class, options, (one) => one.value, (one) => el("option", { value: one.value }, one.name));
  if (parts.class.value !== chosen && !options.some((one) => one.value === chosen)) {
    Object.assign(asked, { class: "", labeled: "", offset: 0 });
    parts.class.value = "";
    if (visible) load();
  }
  parts.index.placeholder = `e.g. ${Math.min(4711, state.data.rows - 1)}`;
  renderFresh();
  if (visible && drawnAt === null) load();
}

const renderFresh = () => {
  parts.fresh.classList.toggle("away", drawnAt === null || drawnAt === now.state.answers.learned);
};

/** Called when the tab is shown. */
export function showGallery(name) {
  visible = true;
  if (name !== undefined) {
    Object.assign(asked, { class: name, labeled: "", offset: 0 });
    parts.class.value = `c${name}`;
  }
  if (now.state && (name !== undefined || drawnAt !== now.state.answers.learned)) load();
}

export const hideGallery = () => {
  visible = false;
};

async function load() {
  const mine = ++turn;
  const learned = now.state.answers.learned;
  let found;
  try {
    found = await get("/api/gallery", { ...asked, limit: PAGE });
  } catch (error) {
    setText(parts.said, error.message);
    return;
  }
  if (mine !== turn) return; // superseded
  if (found.rows.length === 0 && found.total > 0 && asked.offset > 0) {
    asked.offset = Math.floor((found.total - 1) / PAGE) * PAGE;
    return load();
  }
  ({ rows, total } = found);
  drawnAt = learned;
  const [first, last] = [asked.offset + 1, asked.offset + rows.length];
  setText(parts.said, total === 0 ? "There are none." : `${count(first)} to ${count(last)} of ${count(total)}`);
  parts.back.disabled = asked.offset === 0;
  parts.on.disabled = last >= total;
  renderFresh();
  await showTiles(parts.list, rows, openRow);
}
