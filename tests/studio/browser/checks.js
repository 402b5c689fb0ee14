// What can be checked of any page by looking at it; the tests put it in brackets and evaluate it in the page.
{
  // What stands out at the side.
  wide() {
    if (document.documentElement.scrollWidth <= innerWidth) return [];
    return [...document.querySelectorAll("body *")]
      .filter((node) => node.getBoundingClientRect().right > innerWidth + 1)
      .map((node) => node.outerHTML.slice(0, 200));
  },

  // Controls without a name for people who cannot see them.
  nameless() {
    return [...document.querySelectorAll('button, a, input, select, [role=application], [tabindex="0"]')]
      .filter((node) => node.checkVisibility({ visibilityProperty: true }))
      .filter((node) => !(node.getAttribute("aria-label") || node.innerText?.trim() || node.labels?.[0]?.textContent.trim()))
      .map((node) => node.outerHTML);
  },

  // Controls that a finger misses.
  small(least) {
    return [...document.querySelectorAll("button, a, input, select")]
      .filter((node) => node.checkVisibility() && !node.matches(".skip-link"))
      .filter((node) => Math.min(node.offsetWidth, node.offsetHeight) < least)
      .map((node) => node.outerHTML);
  },

  // Text that is hard to read on what is behind it, after WCAG 2 AA (disabled controls apart).
  faint() {
    const rgb = (color) => {
      const [r, g, b, alpha = 1] = color.match(/^rgba?\((.+)\)$/)[1].split(/[ ,/]+/).map(Number);
      return [r, g, b, alpha];
    };
    const channel = (value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
    const light = ([r, g, b]) => 0.2126 * channel(r / 255) + 0.7152 * channel(g / 255) + 0.0722 * channel(b / 255);
    const behind = (node) => {
      for (; node; node = node.parentElement) {
        const found = rgb(getComputedStyle(node).backgroundColor);
        if (found[3] === 1) return found;
      }
      return [255, 255, 255];
    };
    const faint = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const node = walker.currentNode.parentElement;
      if (!walker.currentNode.data.trim() || !node.checkVisibility({ visibilityProperty: true })) continue;
      if (node.closest(":disabled, option, .out-of-sight, noscript, .skip-link")) continue;
      const [low, high] = [light(rgb(getComputedStyle(node).color)), light(behind(node))].sort((a, b) => a - b);
      const least = parseFloat(getComputedStyle(node).fontSize) >= 24 ? 3 : 4.5;
      if ((high + 0.05) / (low + 0.05) < least) faint.push(`${getComputedStyle(node).color} on ${behind(node)}: ${node.outerHTML}`);
    }
    return faint;
  },

  // Where the parts are, to see whether they jump; the lists below the map may grow.
  places() {
    return [...document.querySelectorAll(".figure, .question, .frame, .choices-place, #question input, .trail, .explore")]
      .map((node) => [node.id || node.className, node.getBoundingClientRect()])
      .map(([name, r]) => [name, r.x, r.y + scrollY, r.width, name.includes("explore") ? 0 : r.height]);
  },
}
