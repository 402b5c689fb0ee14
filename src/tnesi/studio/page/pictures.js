// How examples are shown: a picture, a profile of bars, top words, a text, or the row of a table.
import { get, path } from "./api.js";
import { count, el, plural, svg } from "./dom.js";
import { now } from "./state.js";

const SHEET_COLUMNS = 16;
const NAMED_BARS = 24; // maximum number of readable names
const LARGE = 640; // pixels of a photograph beside the question
const WHOLE = 4096;
const FEW_BARS = 6; // with more, name, number and bar are on one line

export const kind = () => now.state?.data.kind ?? "image";
export const hasPhotos = () => Boolean(now.state?.data.photos);
const isText = () => ["words", "document", "table"].includes(kind());

const rowPicture = (row, size) => path(`/api/pictures/row/${row}.png`, { size });

/** The name of a row: its number and file, if any. */
export const rowName = ({ row, file }) => (file ? `row ${row} · ${file}` : `row ${row}`);

/** Load a picture; null on failure. */
export async function loaded(source) {
  const image = new Image();
  image.src = source;
  try {
    await image.decode();
    return image;
  } catch {
    return null;
  }
}

/** Show a large example: `what` has the row and the server's details for this kind of data. */
export async function largePicture(what, name) {
  if (what.columns) return tableRow(what, name);
  if (typeof what.text === "string") return documentText(what, name);
  if (kind() === "words" || (what.words && !what.profile)) return wordList(what.words ?? [], name);
  if (kind() === "profile" || what.row === undefined) {
    const bars = profile(what.profile ?? [], what.profile_names, name);
    const nameless = !what.words?.length || what.profile.length <= NAMED_BARS;
    return nameless ? bars : el("div", { class: "profile-with-words" }, bars, wordList(what.words, name));
  }
  const image = await loaded(rowPicture(what.row, hasPhotos() ? LARGE : 280));
  if (!image) return el("p", { class: "no-picture" }, "The picture could not be loaded.");
  image.alt = name;
  image.className = "picture";
  image.draggable = false;
  if (!hasPhotos()) return image;
  return el("a", { class: "photo", href: rowPicture(what.row, WHOLE), target: "_blank", title: "Open at full size", "aria-label": `${name}: open at full size` }, image);
}

/** A document; long ones are folded. */
function documentText({ row, text, text_length: length }, name) {
  const body = el("div", { class: "document", tabindex: "0", role: "group", "aria-label": name }, el("p", {}, text.trim() ? text : "This document is empty."));
  if (text.length >= length) return body;
  const more = el("button", { type: "button", class: "button quiet" }, `Show all ${count(length)} characters`);
  more.addEventListener("click", async () => {
    const found = await get(`/api/rows/${row}`).catch(() => null);
    if (!found) return;
    body.firstElementChild.textContent = found.text + (found.text.length < found.text_length ? " …" : "");
    more.remove();
    body.focus();
  });
  body.firstElementChild.append(" …");
  body.append(more);
  return body;
}

/** The row of a table, with the names of its columns. */
function tableRow({ columns, n_columns: n }, name) {
  const lines = columns.map(([column, value]) => el("div", {}, el("dt", { title: column }, column), value === null ? el("dd", { class: "missing" }, "missing") : el("dd", {}, value)));
  const rest = n > columns.length ? el("p", { class: "hint" }, `and ${plural(n - columns.length, "more column")}`) : null;
  return el("div", { class: "table-row", tabindex: "0", role: "group", "aria-label": `${name}: values` }, el("dl", {}, ...lines), rest);
}

/** Whether there are names for all values, few enough to be read. */
export const hasNames = (values, names) => Boolean(names) && values.length <= NAMED_BARS;

/** How many rows a field stands for, in words. */
export const aboutRows = (mass) => `about ${plural(Math.max(1, Math.round(mass)), "row")}`;

/** A bar per feature, the highest as high as the picture; beside names are the numbers, if these tell something. */
export function profile(values, names, name, numbers = true) {
  if (!values.length) return el("p", { class: "no-picture" }, "This row is empty.");
  const top = Math.max(...values);
  if (!(top > 0)) return el("p", { class: "no-picture" }, "All values of this row are zero.");
  if (hasNames(values, names)) return namedBars(values, names, top, name, numbers);
  const gap = values.length <= 64 ? 0.15 : 0;
  const bars = values.map((value, i) => {
    const height = (100 * Math.max(value, 0)) / top;
    return svg("rect", { x: i + gap / 2, y: 100 - height, width: 1 - gap, height });
  });
  return svg(
    "svg",
    { class: "profile", viewBox: `0 0 ${values.length} 100`, preserveAspectRatio: "none", role: "img", "aria-label": describe(values, names, name) },
    ...bars,
  );
}

function describe(values, names, name) {
  const order = values.map((_, i) => i).sort((a, b) => values[b] - values[a]);
  const said = order.slice(0, 3).map((i) => names?.[i] ?? `number ${i + 1}`);
  return `${name}: profile of ${values.length} bars, highest at ${said.join(", ")}`;
}

const short = (value) => (Number.isInteger(value) ? String(value) : value.toPrecision(3).replace(/\.?0+$/, ""));

function bar(text, share, said) {
  const line = el("li", {}, el("span", { class: "bar-name", title: text }, text), said ? el("span", { class: "bar-value" }, said) : null, el("span", { class: "bar" }, el("span")));
  line.querySelector(".bar > span").style.inlineSize = `${Math.max(0, Math.min(100, 100 * share))}%`;
  return line;
}

function namedBars(values, names, top, name, numbers) {
  const lines = values.map((value, i) => bar(names[i], value / top, numbers && short(value)));
  return el("ul", { class: `named-bars${values.length > FEW_BARS ? " dense" : ""}`, "aria-label": `${name}: values`, tabindex: "0" }, ...lines);
}

/** Words with bars for their weights, [[word, weight], ...]. */
export function wordList(words, name) {
  if (!words.length) return el("p", { class: "no-picture" }, "This row has no words.");
  const top = Math.max(...words.map(([, weight]) => weight), 1e-30);
  const lines = words.map(([word, weight]) => bar(word, weight / top));
  return el("ul", { class: "named-bars words", "aria-label": `${name}: its top words`, tabindex: "0" }, ...lines);
}

/** Draw the small pictures of rows on their canvases, from one sheet. */
export async function drawTiles(rows, canvases) {
  if (!rows.length || isText()) return;
  const sheet = await loaded(path("/api/pictures/rows.png", { rows: rows.join(",") }));
  if (!sheet) return;
  const width = sheet.naturalWidth / Math.min(SHEET_COLUMNS, rows.length);
  const height = sheet.naturalHeight / Math.ceil(rows.length / SHEET_COLUMNS);
  rows.forEach((_, i) => {
    const [x, y] = [(i % SHEET_COLUMNS) * width, Math.floor(i / SHEET_COLUMNS) * height];
    Object.assign(canvases[i], { width, height });
    canvases[i].getContext("2d").drawImage(sheet, x, y, width, height, 0, 0, width, height);
  });
}

/** The placeholder of a small picture, or a few words about the row. */
export function smallPicture(row) {
  if (isText()) return el("span", { class: "tile-words" }, row.snippet || row.words?.join(", ") || "no words");
  return el("canvas", { class: "tile-picture", width: 1, height: 1 });
}
