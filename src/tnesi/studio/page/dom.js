// Small helpers for building the page; text is always set as text, never as HTML.

/** Make an element: el("p", {class: "hint", hidden: true, onclick: f}, "text", child, ...). */
export function el(tag, properties = {}, ...children) {
  return fill(document.createElement(tag), properties, ...children);
}

/** Make an SVG element. */
export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, ...children);
}

function fill(node, properties, ...children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (typeof value === "boolean") node.toggleAttribute(name, value);
    else node.setAttribute(name, value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}

/** An icon of 20 by 20 units, drawn with strokes. */
export function icon(path) {
  return svg("svg", { class: "icon", viewBox: "0 0 20 20", "aria-hidden": "true" }, svg("path", { d: path }));
}

/** Set text only if it changes, so that screen readers do not repeat it. */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** Keep the children of `parent` in step with `items`, reusing the element of each key. */
export function keep(parent, items, keyOf, make, update) {
  const old = new Map([...parent.children].map((child) => [child.dataset.key, child]));
  let next = parent.firstElementChild;
  for (const item of items) {
    const key = String(keyOf(item));
    let node = old.get(key);
    if (node) old.delete(key);
    else {
      node = make(item);
      node.dataset.key = key;
    }
    if (node === next) next = next.nextElementSibling;
    else parent.insertBefore(node, next);
    update?.(node, item);
  }
  for (const node of old.values()) node.remove();
}

/** Announce a text to screen readers. */
export function announce(text) {
  const live = document.getElementById("live");
  live.textContent = "";
  requestAnimationFrame(() => {
    live.textContent = text;
  });
}

/** Keep a percent sign with its number. */
export const together = (text) => text.replaceAll(" %", "\u00a0%");

/** Begin with a capital letter. */
export const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

const whole = new Intl.NumberFormat("en");

export const count = (number) => whole.format(Math.round(number));

export const plural = (number, one, many = `${one}s`) => `${count(number)} ${number === 1 ? one : many}`;

/** A share as percent, with a decimal if it is informative. */
export function percent(share, digits) {
  const value = 100 * share;
  if (digits === undefined) digits = value > 0 && (value < 10 || (value > 99 && value < 100)) ? 1 : 0;
  let text = value.toFixed(digits);
  if (Number(text) === 100 && value < 100) text = "99.9"; // 100 % only if it is exact
  return `${text} %`;
}

/** Browser storage, permanent or of this tab ("sessionStorage"); it may be disabled. */
export const kept = {
  get(key, place = "localStorage") {
    try {
      return window[place].getItem(key);
    } catch {
      return null;
    }
  },
  set(key, value, place = "localStorage") {
    try {
      if (value === null) window[place].removeItem(key);
      else window[place].setItem(key, value);
    } catch {
      // kept only as long as the page
    }
  },
};
