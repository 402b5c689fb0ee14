// Colors of the classes: twenty that are distinct with and without color blindness, then shades of them.
// The first seven are Okabe and Ito's; the others were chosen for a large smallest distance in CIELAB, over normal
// sight, protanopia, deuteranopia and tritanopia (Machado's matrices): 16 among the first twelve, 13 among all.

const PALETTE = [
  "#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#f0e442", "#823c1e", "#a0b464", "#64466e",
  "#96d2a0", "#9678fa", "#3c3caa", "#dc2846", "#507846", "#fabe5a", "#1ee6fa", "#782882", "#aa460a", "#aaa03c",
];
const SHADES = [0, -0.3, 0.35, -0.5, 0.55];

function rgb(hex) {
  const number = Number.parseInt(hex.slice(1), 16);
  return [number >> 16, (number >> 8) & 255, number & 255];
}

/** Mix two colors given as [r, g, b]; `share` of the second. */
export const mix = (a, b, share) => a.map((value, i) => value + (b[i] - value) * share);

/** The color of a class as [r, g, b], by the number the server gave it. */
export function classColor(number) {
  if (number === null || number === undefined || number < 0) return null;
  const base = rgb(PALETTE[number % PALETTE.length]);
  const shade = SHADES[Math.floor(number / PALETTE.length) % SHADES.length];
  return shade < 0 ? mix(base, [0, 0, 0], -shade) : mix(base, [255, 255, 255], shade);
}

export const css = ([r, g, b], alpha = 1) => `rgb(${Math.round(r)} ${Math.round(g)} ${Math.round(b)} / ${alpha})`;

/** Give an element its class's color, for the style sheet to use as --class. */
export function paint(node, number) {
  const color = classColor(number);
  if (color) node.style.setProperty("--class", css(color));
  else node.style.removeProperty("--class");
}

export const isDark = () =>
  document.documentElement.dataset.theme
    ? document.documentElement.dataset.theme === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches;

/** Surface and ink of the theme, for canvases. */
export const themeColors = () =>
  isDark() ? { surface: [38, 42, 49], ink: [240, 242, 246], strong: 0.72 } : { surface: [236, 237, 240], ink: [20, 22, 28], strong: 0.78 };
