// Keys, wherever the focus is, unless text is being typed or a panel is open. See the help for what they do.
import { openHelp } from "./help.js";
import { topPanel } from "./panel.js";
import { notice } from "./notice.js";
import { answer, beginName, inView, press, skip, undo } from "./question.js";
import { keyInRow } from "./row.js";
import { now } from "./state.js";

const TYPING = 450; // milliseconds: letters that follow a letter key this fast are a word being typed

const SETTLED = 700; // milliseconds until U and S are sure not to begin a word, also for those who type slowly

let lastLetter = -Infinity; // when a letter last did something at once
let waiting = null; // U or S, not done yet

/** The class with that key: the very character, else the other case of it. */
export function classWithKey(key) {
  const classes = now.state?.classes ?? [];
  return classes.find((one) => one.key === key) ?? classes.find((one) => one.key !== null && one.key?.toLowerCase() === key.toLowerCase());
}

const isLetter = (key) => /^\p{L}$/u.test(key);

/** Whether the element takes characters itself. */
const takesText = (node) => node instanceof HTMLElement && (node.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(node.tagName));

/** Enter presses these. */
const takesEnter = (node) => node instanceof HTMLElement && node.closest("button, a, summary, [role=application], [role=tab]") !== null;

export function startKeys() {
  document.addEventListener("keydown", onKey);
  document.addEventListener("pointerdown", drop); // who goes on otherwise did not mean it
  document.addEventListener("focusin", (event) => takesText(event.target) && drop());
}

function onKey(event) {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  const { key, target } = event;
  if (takesText(target)) return;
  const panel = topPanel();
  if (panel && panel.id !== "row-panel") return;
  if (key === "Enter") {
    drop();
    if (takesEnter(target)) return;
    event.preventDefault();
    if (performance.now() - lastLetter < TYPING) return;
    if (panel) keyInRow("", undefined);
    else beginName("");
    return;
  }
  if (key.length !== 1 || key === " ") return;
  if (event.repeat) return event.preventDefault(); // a key that is held down answers once
  event.preventDefault();
  if (panel && key === "?") return;
  if (panel) return keyInRow(key, classWithKey(key));
  onQuestion(key);
}

/** U or S waits for what follows; its button is pressed meanwhile. */
function wait(what) {
  waiting = what;
  press(what?.key ?? null);
}

function drop() {
  if (!waiting) return;
  clearTimeout(waiting.timer);
  wait(null);
}

function doWaiting() {
  const { command, timer } = waiting;
  clearTimeout(timer);
  wait(null);
  command(null);
}

function onQuestion(key) {
  if (waiting) {
    const first = waiting.key;
    if (isLetter(key) && key.toLowerCase() !== first.toLowerCase()) {
      drop();
      return beginName(first + key);
    }
    doWaiting();
  }
  if (key === "?") return openHelp();
  const found = classWithKey(key);
  const command = { u: undo, s: skip }[key.toLowerCase()];
  if (!found && !command && isLetter(key) && performance.now() - lastLetter < TYPING) {
    lastLetter = performance.now();
    return notice("That looked like a word. Press Enter first, then type the name.");
  }
  if (!inView()) return;
  if (isLetter(key) && (found || command)) lastLetter = performance.now();
  if (found) answer(found.name);
  else if (command) wait({ key, command, timer: setTimeout(doWaiting, SETTLED) });
  else beginName(key);
}
