// "What is this?": the example that the program asks about, and the answer to it.
import { paint } from "./colors.js";
import { Chooser } from "./chooser.js";
import { announce, capital, el, keep, kept, percent, plural, setText, together } from "./dom.js";
import { line, notice, warn } from "./notice.js";
import * as outbox from "./outbox.js";
import { largePicture, rowName } from "./pictures.js";
import { openRow, tellRelabel } from "./row.js";
import { classOf, now, watch } from "./state.js";

const TRAIL = 6;
const MOST_WAITING = 20;
const SLOW = 350; // milliseconds after which a pending save is mentioned

const parts = {};
const trail = [];
let shown = null; // the question on the page, once its picture is loaded
let coming = null; // the question whose picture is being loaded
let trailKey = null; // where the last answers are kept in the browser
let pending = null; // the answer to `shown`, until the next question is on the page
const waiting = []; // answers typed in advance, for the next questions

export function startQuestion() {
  const body = document.getElementById("question-body");
  parts.card = document.getElementById("question");
  parts.frame = el("div", { class: "frame" });
  parts.row = document.getElementById("question-row");
  parts.reason = el("p", { class: "reason" });
  parts.chooser = new Chooser(answer);
  parts.undo = el("button", { type: "button", class: "button quiet", onclick: undo, title: "Undo (← or Ctrl+Z)", "aria-keyshortcuts": "ArrowLeft Control+Z" }, "Undo", el("kbd", {}, "←"));
  parts.skip = el("button", { type: "button", class: "button quiet", onclick: () => skip("pointer"), title: "Skip (→)", "aria-keyshortcuts": "ArrowRight" }, "Skip", el("kbd", {}, "→"));
  parts.trail = el("ol", { class: "trail", "aria-label": "Last answers" });
  body.append(
    el("div", { class: "example asked" }, parts.reason, parts.frame, line, el("div", { class: "actions" }, parts.undo, parts.skip)),
    parts.chooser.node,
    parts.trail,
  );
  watch(fromState);
  outbox.onChange(fromOutbox);
}

function fromState(state) {
  if (trailKey === null && state.data?.project) recallTrail(state.data.project);
  const open = state.question;
  const settled = state.answers.last >= outbox.acknowledged && outbox.unsaved() === 0;
  if (settled) {
    if (!open) present(null);
    else if (open.row !== (coming ?? shown)?.row) present(open);
    else if (shown?.row === open.row) shown = { ...shown, ...open };
  }
  render();
}

/** Show a question once its picture is loaded; before that, keys do not answer it. */
async function present(question) {
  coming = question;
  if (!question) {
    shown = null;
    waiting.length = 0;
    render();
    return;
  }
  const picture = await largePicture(question, `Row ${question.row}`);
  if (coming !== question) return; // another one came in the meantime
  coming = null;
  shown = question;
  pending = null;
  parts.frame.replaceChildren(picture);
  render();
  announce(`Question ${question.number}: what is row ${question.row}? ${sentence(question.reason)}`);
  waiting.shift()?.();
}

/** The status until the first question. */
function waitingFor({ phase, progress }) {
  if (phase !== "training" || !progress?.text) return "";
  const share = progress.share > 0 ? ` (${percent(progress.share, 0)})` : "";
  return sentence(progress.text + share);
}

function emptyFrame(state) {
  const words = {
    reading: "Reading the data.",
    training: "Learning from the data. The first question follows soon.",
    failed: "No questions: learning has stopped.",
    ready: "Choosing the next question.",
  };
  if (state?.phase === "ready" && state.answers.labels + state.answers.skips >= state.data.rows) return "No more questions: every row has a label or was skipped.";
  return words[state?.phase] ?? "Connecting.";
}

const sentence = (text) => together(capital(text)) + (/[.!?]$/.test(text) ? "" : ".");

function render() {
  const state = now.state;
  if (!state) return;
  const blocked = !shown || pending !== null;
  if (!shown) {
    const placeholder = parts.frame.querySelector(".placeholder") ?? el("p", { class: "placeholder" });
    setText(placeholder, emptyFrame(state));
    if (!placeholder.isConnected) parts.frame.replaceChildren(placeholder);
  }
  parts.card.classList.toggle("asking", Boolean(shown));
  parts.card.classList.toggle("pending", pending !== null);
  parts.card.setAttribute("aria-busy", String(blocked && state.phase !== "failed"));
  setText(parts.row, shown ? `Question ${shown.number} · ${rowName(shown)}` : "");
  setText(parts.reason, shown ? sentence(shown.reason) : waitingFor(state));
  parts.chooser.disabled = blocked;
  parts.chooser.closed = !shown && pending === null;
  parts.chooser.update(shown?.suggested);
  parts.chooser.mark(pending?.label ?? null);
  parts.skip.disabled = blocked;
  parts.undo.disabled = !state.answers.can_undo && outbox.unsaved() === 0;
  renderTrail();
}

/** The last answers of this tab outlive a reload. */
function recallTrail(project) {
  trailKey = `tnesi-trail:${project}`;
  try {
    trail.unshift(...(JSON.parse(kept.get(trailKey, "sessionStorage")) ?? []));
  } catch {
    // foreign content
  }
}

function keepTrail() {
  const lasting = trail.filter((entry) => entry.state === "saved" || entry.state === "undone").slice(-TRAIL);
  const said = lasting.map(({ request, kind, row, label, state, before }) => ({ request, kind, row, label, state, before }));
  if (trailKey !== null) kept.set(trailKey, JSON.stringify(said), "sessionStorage");
}

function renderTrail() {
  keep(parts.trail, trail.slice(-TRAIL).reverse(), (entry) => entry.request, (entry) => {
    const button = el("button", { type: "button", class: "chip" }, el("span", { class: "swatch" }), el("span", { class: "chip-name" }), el("span", { class: "chip-state", "aria-hidden": "true" }));
    button.addEventListener("click", () => openRow(entry.row));
    return el("li", {}, button);
  }, (line, entry) => {
    const button = line.firstElementChild;
    const name = entry.kind === "skip" ? "skipped" : entry.label;
    const said = { sending: "being saved", saved: "saved", waiting: "not saved yet, retrying", refused: "refused", undone: "undone" }[entry.state];
    button.className = `chip ${entry.state}`;
    paint(button, classOf(entry.label)?.color);
    setText(button.querySelector(".chip-name"), name);
    setText(button.querySelector(".chip-state"), { sending: "…", saved: "✓", waiting: "↻", refused: "!", undone: "↶" }[entry.state]);
    button.title = `Row ${entry.row}: ${name}, ${said}`;
    button.setAttribute("aria-label", button.title);
  });
}

function fromOutbox(entry) {
  if ((entry.kind === "label" || entry.kind === "skip") && !entry.adopted && !trail.includes(entry)) trail.push(entry);
  if (entry.state === "waiting") {
    const many = outbox.unsaved();
    const what = many === 1 && entry.label ? entry.label : plural(many, "answer");
    warn(`${what}: not saved yet, retrying`);
  } else if (entry.state === "refused") warn(entry.error);
  else if (entry.state === "saved" && outbox.unsaved() === 0 && line.dataset.kind === "warning") notice("Saved");
  if (entry.adopted && entry.state === "saved") notice("An earlier answer is now saved");
  keepTrail();
  render();
  if (outbox.unsaved() === 0) setTimeout(goOn); // after the code that posted the answer has handled the response
}

/** The newest state may have arrived before the last acknowledgement, with no later one to follow. */
function goOn() {
  if (now.state) fromState(now.state);
}

/** Keep an answer typed before the next question is on the page; no typed text is lost. */
function wait(act) {
  if (waiting.length < MOST_WAITING) waiting.push(act);
}

/** Answer the question on the page. */
export async function answer(label, how = "key") {
  if (pending && how !== "pointer") return wait(() => answer(label, how));
  if (!shown || pending) return;
  const { row } = shown;
  const entry = await give("label", { row, label }, label);
  if (how === "pointer") parts.card.focus({ preventScroll: true });
  return entry;
}

export async function skip(how = "key") {
  if (pending && how !== "pointer") return wait(() => skip(how));
  if (!shown || pending) return;
  await give("skip", { row: shown.row }, "Skipped");
}

async function give(kind, what, said) {
  const entry = outbox.give(kind, what);
  pending = entry;
  render();
  const slow = setTimeout(() => pending === entry && entry.state === "sending" && notice("Saving"), SLOW);
  try {
    const response = await entry.saved;
    notice(kind === "skip" ? "Skipped" : `${said}: saved`);
    next(entry, response);
  } catch (error) {
    if (pending === entry) pending = null;
    waiting.length = 0;
    warn(error.message);
    render();
  } finally {
    clearTimeout(slow);
  }
  return entry;
}

/** Continue with the question in the acknowledgement. */
function next(entry, response) {
  if (outbox.unsaved() > 0) return; // another answer is pending; its response counts
  if (!response.question) pending = null;
  if (response.question && response.question.row === shown?.row && entry.row === undefined) {
    pending = null;
    render();
    waiting.shift()?.();
  } else present(response.question ?? null);
}

export async function undo() {
  if (waiting.pop()) return notice("Undone");
  if (!now.state?.answers.can_undo && outbox.unsaved() === 0) {
    notice("Nothing to undo");
    return;
  }
  const entry = outbox.give("undo", {});
  render();
  try {
    const response = await entry.saved;
    const undone = response.undone;
    const given = undone && trail.findLast((one) => one.row === undone.row && one.state === "saved");
    if (given) {
      given.state = "undone";
      keepTrail();
    }
    if (undone && undone.row !== null) tellRelabel(undone.row, undone.now);
    if (undone?.kind === "rename") renameTrail(undone.old, undone.label, true);
    notice(takenBack(undone));
    if (outbox.unsaved() === 0) present(response.question ?? null);
  } catch (error) {
    warn(error.message);
    render();
  }
}

/** Describe an undo; a row that has a label again is not asked about. */
function takenBack(undone) {
  if (!undone) return "Undone";
  if (undone.kind === "rename") return `Undone: renaming ${undone.old} to ${undone.label}`;
  const what = `Undone: ${undone.label ?? { skip: "skip", clear: "removed label" }[undone.kind] ?? "answer"}`;
  return undone.now ? `${what}. Row ${undone.row} is ${undone.now} again` : what;
}

/** Whether the question can be seen; otherwise bring it into view, for the next key to answer it. */
export function inView() {
  const place = parts.frame.getBoundingClientRect();
  if (place.bottom > 40 && place.top < innerHeight - 40) return true;
  parts.card.scrollIntoView({ block: "start" });
  notice("This is the question: press the key again");
  return false;
}

/** After a class is renamed, show its new name in the last answers; undo restores the old one. */
export function renameTrail(old, name, back = false) {
  for (const entry of trail) {
    if (back && entry.label === name && entry.before?.at(-1) === old) entry.label = entry.before.pop();
    else if (!back && entry.label === old) {
      (entry.before ??= []).push(old);
      entry.label = name;
    }
  }
  keepTrail();
  render();
}

/** Start a class name in the box. */
export const beginName = (text) => parts.chooser.begin(text);
