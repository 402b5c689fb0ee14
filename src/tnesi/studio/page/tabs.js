// Map and gallery share a place: tabs, with the arrow keys as usual.
const order = ["map", "gallery"];
const listeners = [];

export const onTab = (listener) => listeners.push(listener);

export function startTabs() {
  for (const name of order) {
    const tab = document.getElementById(`tab-${name}`);
    tab.addEventListener("click", () => showTab(name));
    tab.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      const other = order.at((order.indexOf(name) + step) % order.length);
      showTab(other);
      document.getElementById(`tab-${other}`).focus();
    });
  }
}

/** Show a tab; further arguments are passed to its listeners. */
export function showTab(name, ...rest) {
  for (const one of order) {
    const tab = document.getElementById(`tab-${one}`);
    tab.setAttribute("aria-selected", String(one === name));
    tab.tabIndex = one === name ? 0 : -1;
    document.getElementById(`panel-${one}`).hidden = one !== name;
  }
  for (const listener of listeners) listener(name, ...rest);
}
