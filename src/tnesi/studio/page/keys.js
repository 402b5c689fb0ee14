// Keyboard shortcuts, active unless text is being typed or a panel is open; the help lists them.
import { openHelp } from "./help.js";
import { topPanel } from "./panel.js";
import { notice } from "./notice.js";
import { answer, beginName, inView, skip, undo } from "./question.js";
import { keyInRow } from "./row.js";
import { now } from "./state.js";

const TYPING = 450; // milliseconds: letters that follow a letter key this fast are a word being typed
const BOUNCE = 80; // milliseconds: the same key this soon after itself is one press

let lastLetter = -Infinity; // when a letter last answered a question
let last = { key: "", time: -Infinity };

/** The class with that key: the exact character, or else its other case. */
function classWithKey(key) {
  const classes = now.state?.classes ?? [];
  return classes.find((one) => one.key === key) ?? classes.find((one) => one.key !== null && one.key?.toLowerCase() === key.toLowerCase());
}

const isLetter = (key) => /^\p{L}$/u.test(key);

/** Whether the element accepts text. */
const takesText = (node) => node instanceof HTMLElement && (node.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(node.tagName));

/** Enter presses these. */
const takesEnter = (node) => node instanceof HTMLElement && node.closest("button, a, summary, [role=application], [role=tab]") !== null;

export function startKeys() {
  document.addEventListener("keydown", onKey);
}

/** Whether a key press is a bounce of the previous one. */
function bounces({ key, timeStamp, repeat }) {
  const same = repeat || (key === last.key && timeStamp - last.time < BOUNCE);
  last = { key, time: timeStamp };
  return same;
}

function onKey(event) {
  if (event.defaultPrevented || event.altKey || event.isComposing) return;
  const { key, target } = event;
  if (takesText(target)) return;
  const panel = topPanel();
  if (event.ctrlKey || event.metaKey) {
    if (panel || event.shiftKey || key.toLowerCase() !== "z") return;
    event.preventDefault();
    if (!bounces(event)) undo();
    return;
  }
  if (panel && panel.id !== "row-panel") return;
  if (key === "Enter") {
    if (takesEnter(target)) return;
    event.preventDefault();
    if (performance.now() - lastLetter < TYPING) return;
    if (panel) keyInRow("", undefined);
    else beginName("");
    return;
  }
  const command = { ArrowRight: skip, ArrowLeft: undo }[key];
  if (command && !panel && !event.shiftKey) {
    event.preventDefault();
    if (!bounces(event) && inView()) command();
    return;
  }
  if (key.length !== 1 || key === " ") return;
  event.preventDefault();
  if (bounces(event) || (panel && key === "?")) return;
  if (panel) return keyInRow(key, classWithKey(key));
  onQuestion(key);
}

function onQuestion(key) {
  if (key === "?") return openHelp();
  const found = classWithKey(key);
  if (!found && isLetter(key) && performance.now() - lastLetter < TYPING) {
    lastLetter = performance.now();
    return notice("That looked like a word. Press Enter, type it, press Enter.");
  }
  if (!inView()) return;
  if (isLetter(key) && found) lastLetter = performance.now();
  if (found) answer(found.name);
  else beginName(key);
}
