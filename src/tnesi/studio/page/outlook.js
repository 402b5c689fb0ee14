// Progress: the share decided, the expected error in plain words, the number of answers, and advice.
import { count, percent, plural, setText, svg, together } from "./dom.js";
import { watch } from "./state.js";

const [WIDTH, HEIGHT] = [120, 32];
const WAIT = {
  reading: "Reading the data.",
  training: "Learning from the data without labels. The map shows what it finds.",
  failed: "Fix the problem below, then restart the studio. Your answers are saved.",
};

export function startOutlook() {
  document.getElementById("to-conflicts").addEventListener("click", () => {
    document.querySelector(".conflicts").scrollIntoView({ block: "nearest" });
    document.querySelector("#conflicts-body button")?.focus({ preventScroll: true });
  });
  watch(render);
}

/** For screen readers: the figures after each answer, in one sentence. */
function inWords(state) {
  const error = state.error_estimate;
  const said = error ? `, expected error ${percent(error.value, 1)}, likely ${range(error.low, error.high)}` : "";
  return `${percent(state.decided)} decided${said}.`;
}

function setNumber(id, text) {
  setText(part(id, "number"), text ?? "–");
  part(id, "number").classList.toggle("unknown", text === null);
}

const part = (id, kind) => document.querySelector(`#${id} .${kind}`);

function render(state) {
  renderDecided(state);
  renderError(state);
  const { labels, skips } = state.answers;
  setNumber("count", count(labels));
  const said = [plural(state.classes.length, "class", "classes")];
  if (skips) said.push(`${count(skips)} skipped`);
  setText(part("count", "words"), said.join(", "));
  if (!state.busy && state.answers.labels > 0) setText(document.getElementById("figures-said"), inWords(state));
  const advice = document.getElementById("advice");
  advice.dataset.kind = state.advice?.kind ?? "";
  document.getElementById("to-conflicts").hidden = state.advice?.kind !== "look_again";
  const early = state.phase !== "ready" && !state.question;
  setText(part("advice", "said"), early ? WAIT[state.phase] : together(state.advice?.text ?? ""));
}

function renderDecided(state) {
  const known = typeof state.decided === "number" && state.answers.labels > 0;
  setNumber("decided", known ? percent(state.decided) : null);
  setText(part("decided", "words"), `of ${plural(state.data.rows ?? 0, "row")}`);
  const points = state.history.map((point) => point.decided).filter((value) => typeof value === "number");
  spark(part("decided", "spark"), points, 1, "Share decided");
}

function renderError(state) {
  const estimate = state.error_estimate;
  setNumber("error", estimate ? percent(estimate.value, 1) : null);
  const words = estimate ? `likely ${range(estimate.low, estimate.high)}` : "not known yet";
  setText(part("error", "words"), words);
  part("error", "words").title = estimate?.note ?? "";
  const points = state.history.map((point) => point.error_estimate?.value ?? point.error_estimate).filter((value) => typeof value === "number");
  spark(part("error", "spark"), points, Math.max(0.1, ...points), "Expected error");
}

const range = (low, high) => `${(100 * low).toFixed(1)} to ${percent(high, 1)}`;

/** A sparkline of the past values of a figure. */
function spark(place, points, top, name) {
  const drawn = points.join();
  if (place.dataset.drawn === drawn) return;
  place.dataset.drawn = drawn;
  if (points.length < 2) {
    place.replaceChildren();
    return;
  }
  const at = points.map((value, i) => [3 + ((WIDTH - 6) * i) / (points.length - 1), HEIGHT - 3 - (HEIGHT - 6) * Math.min(1, value / top)]);
  const line = at.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join(" ");
  const said = `${name} over ${plural(points.length, "answer")}: from ${percent(points[0])} to ${percent(points.at(-1))}`;
  place.replaceChildren(
    svg(
      "svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": said },
      svg("title", {}, said),
      svg("path", { class: "under", d: `M${at[0][0]},${HEIGHT - 1} L${line.replaceAll(" ", " L")} L${at.at(-1)[0]},${HEIGHT - 1} Z` }),
      svg("polyline", { class: "line", points: line }),
      svg("circle", { class: "end", cx: at.at(-1)[0], cy: at.at(-1)[1], r: 2.6 }),
    ),
  );
}

