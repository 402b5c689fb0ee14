// Colours of the classes: twenty that people with and without colour blindness tell apart, then shades of them.
// Chosen for a large smallest distance in CIELAB, over normal sight, protanopia, deuteranopia and tritanopia
// (Machado's matrices): 22 among the first ten, 13 among all. Names and numbers always stand beside them.

const PALETTE = [
  "#2f6fde", "#e69f00", "#e81c70", "#10e8e8", "#e8d094", "#884c10", "#644c94", "#aca0f4", "#ac944c", "#10aca0",
  "#28644c", "#acd0b8", "#707cac", "#b8c458", "#ac7c10", "#646434", "#d0107c", "#a070d0", "#88ac70", "#e86494",
];
const SHADES = [0, -0.3, 0.35, -0.5, 0.55];

function rgb(hex) {
  const number = Number.parseInt(hex.slice(1), 16);
  return [number >> 16, (number >> 8) & 255, number & 255];
}

/** Mix two colours given as [r, g, b]; `share` of the second. */
export const mix = (a, b, share) => a.map((value, i) => value + (b[i] - value) * share);

/** The colour of a class as [r, g, b], by the number the server gave it. */
export function classColour(number) {
  if (number === null || number === undefined || number < 0) return null;
  const base = rgb(PALETTE[number % PALETTE.length]);
  const shade = SHADES[Math.floor(number / PALETTE.length) % SHADES.length];
  return shade < 0 ? mix(base, [0, 0, 0], -shade) : mix(base, [255, 255, 255], shade);
}

export const css = ([r, g, b], alpha = 1) => `rgb(${Math.round(r)} ${Math.round(g)} ${Math.round(b)} / ${alpha})`;

/** Give an element its class's colour, for the style sheet to use as --class. */
export function paint(node, number) {
  const colour = classColour(number);
  if (colour) node.style.setProperty("--class", css(colour));
  else node.style.removeProperty("--class");
}

export const isDark = () =>
  document.documentElement.dataset.theme
    ? document.documentElement.dataset.theme === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches;

/** Surface and ink of the theme, for what is drawn on a canvas. */
export const themeColours = () =>
  isDark() ? { surface: [38, 42, 49], ink: [240, 242, 246], strong: 0.72 } : { surface: [236, 237, 240], ink: [20, 22, 28], strong: 0.78 };
