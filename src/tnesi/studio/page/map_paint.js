// Drawing the map: each field's picture as ink on the color of its class, stronger where it is more certain.
import { picture } from "./api.js";
import { el } from "./dom.js";
import { hasPhotos, kind } from "./pictures.js";
import { classColor, css, isDark, mix, themeColors } from "./colors.js";

const FADE = 320; // milliseconds from old colors to new ones
const SMALLEST_WORD = 8; // pixels: words that would be smaller are cut
const LINE = 13; // pixels
const WEAK = 0.2; // strength of the color of an uncertain class

const calm = matchMedia("(prefers-reduced-motion: reduce)");

/** Cut what is too long to `n` characters; of "column=value" the value stays as far as possible. */
function shortened(text, n) {
  const at = text.search(/[=~]/);
  if (at < 0) return `${text.slice(0, n - 1)}…`;
  const column = Math.max(1, n - 1 - (text.length - at));
  return (column < at ? `${text.slice(0, column)}…${text.slice(at)}` : text).slice(0, n);
}

export class MapPainter {
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
    this.map = null;
    this.ink = null;
    this.from = [];
    this.to = [];
    this.frame = 0;
  }

  /** Show another map: its cells and their pictures. Nothing is drawn before these are loaded. */
  async take(map) {
    const sheet = map.sheet ? await picture(map.sheet) : null;
    this.map = map;
    this.sheet = sheet;
    this.ink = null;
    this.from = this.to = [];
  }

  /** The pictures in the ink of the theme. */
  #inked() {
    if (!this.sheet || this.ink) return this.ink;
    if (hasPhotos()) return (this.ink = this.sheet);
    const { width, height } = this.sheet;
    const ink = new OffscreenCanvas(width, height);
    const context = ink.getContext("2d", { willReadFrequently: true });
    context.drawImage(this.sheet, 0, 0);
    const pixels = context.getImageData(0, 0, width, height);
    const [r, g, b] = themeColors().ink;
    const inkIsLarge = (document.documentElement.dataset.negative === "1") === isDark();
    for (let i = 0; i < pixels.data.length; i += 4) {
      const gray = pixels.data[i];
      pixels.data[i] = r;
      pixels.data[i + 1] = g;
      pixels.data[i + 2] = b;
      pixels.data[i + 3] = inkIsLarge ? 255 - gray : gray;
    }
    context.putImageData(pixels, 0, 0);
    this.ink = ink;
    return ink;
  }

  /** Redraw all after a change of theme or cell size. `colors` are the numbers of the map's classes. */
  restyle() {
    this.ink = null;
  }

  resize(cell) {
    this.cell = cell;
    const [width, height] = [this.map.columns * cell, this.map.rows * cell];
    const ratio = Math.min(devicePixelRatio || 1, 2);
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.canvas.style.inlineSize = `${width}px`;
    this.canvas.style.blockSize = `${height}px`;
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
  }

  /** Color the cells; `colorOf(k)` gives the number of the color of the map's class k. */
  color(colorOf, fade = true) {
    const { surface, strong } = themeColors();
    const target = this.map.cells.map((cell) => {
      const own = cell.class >= 0 ? classColor(colorOf(cell.class)) : null;
      return own ? mix(surface, own, WEAK + (strong - WEAK) * Math.max(0, Math.min(1, cell.certainty))) : surface;
    });
    cancelAnimationFrame(this.frame);
    if (!fade || calm.matches || this.from.length !== target.length) {
      this.from = target;
      this.#draw(target);
      return;
    }
    const [before, start] = [this.from, performance.now()];
    const step = (time) => {
      const share = Math.max(0, Math.min(1, (time - start) / FADE));
      this.from = share === 1 ? target : target.map((color, i) => mix(before[i], color, share));
      this.#draw(this.from);
      if (share < 1) this.frame = requestAnimationFrame(step);
    };
    this.frame = requestAnimationFrame(step);
  }

  #draw(colors) {
    const { context, cell, map } = this;
    const gap = cell >= 24 ? 1.5 : 1;
    const ink = this.#inked();
    context.clearRect(0, 0, map.columns * cell, map.rows * cell);
    map.cells.forEach((one, i) => {
      const [x, y, side] = [one.x * cell + gap / 2, one.y * cell + gap / 2, cell - gap];
      context.fillStyle = css(colors[i]);
      context.beginPath();
      context.roundRect(x, y, side, side, Math.min(4, side / 6));
      context.fill();
      if (ink) this.#picture(context, i, x, y, side);
      else if (one.text) this.#word(one.text, x, y, side);
    });
  }

  #picture(context, i, x, y, side) {
    const [height, width] = this.map.tile;
    const columns = this.map.sheet_columns;
    const scale = side / Math.max(height, width);
    const share = kind() === "profile" || hasPhotos() ? 0.76 : 1; // photographs are framed by the color of their class
    const [w, h] = kind() === "profile" ? [share * side, share * side] : [share * width * scale, share * height * scale];
    context.imageSmoothingEnabled = scale < 1;
    const edge = scale < 1 ? 0.5 : 0; // smoothing would include pixels of neighbors
    context.drawImage(
      this.ink, (i % columns) * width + edge, Math.floor(i / columns) * height + edge, width - 2 * edge, height - 2 * edge,
      x + (side - w) / 2, y + (side - h) / 2, w, h,
    );
  }

  #word(text, x, y, side) {
    const { context } = this;
    context.fillStyle = css(themeColors().ink);
    const lines = text.split("\n").slice(0, Math.max(1, Math.floor(side / LINE)));
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.save();
    context.beginPath();
    context.rect(x, y, side, side);
    context.clip();
    lines.forEach((line, i) => {
      context.font = "12px system-ui, sans-serif";
      const size = (12 * (side - 4)) / context.measureText(line).width;
      const fits = size >= SMALLEST_WORD ? line : shortened(line, Math.max(3, Math.floor((line.length * size) / SMALLEST_WORD)));
      context.font = `${Math.max(SMALLEST_WORD, Math.min(12, size))}px system-ui, sans-serif`;
      context.fillText(fits, x + side / 2, y + side / 2 + (i - (lines.length - 1) / 2) * LINE);
    });
    context.restore();
  }

  /** The picture of a field at its original size; null if there are no pictures or the field is not on the map. */
  pictureOf(field) {
    const i = this.map?.cells.findIndex((cell) => cell.field === field) ?? -1;
    if (i < 0) return null;
    if (!this.sheet) return el("span", { class: "tile-words" }, this.map.cells[i].text?.replaceAll("\n", ", ") || String(field));
    const [height, width] = this.map.tile;
    const canvas = document.createElement("canvas");
    Object.assign(canvas, { width, height, className: "picture" });
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", `Field ${field}`);
    const columns = this.map.sheet_columns;
    canvas.getContext("2d").drawImage(this.sheet, (i % columns) * width, Math.floor(i / columns) * height, width, height, 0, 0, width, height);
    return canvas;
  }
}
