// The top of the page: data, status, themes, exports, and the banner for errors.
import { download, path } from "./api.js";
import { isDark } from "./colors.js";
import { capital, count, el, kept, plural, setText } from "./dom.js";
import * as outbox from "./outbox.js";
import { notice, warn } from "./notice.js";
import { lineListeners, now, watch } from "./state.js";

const EXPORTS = [
  ["labels.csv", "Labels", "CSV: your answers"],
  ["predictions.csv", "Predictions", "CSV: a class for every row"],
  ["predictions.parquet", "Predictions", "Parquet"],
  ["model.tnesi", "Model", "for tnesi predict and Python"],
  ["report.html", "Report", "one page, to keep or send"],
];

const root = document.documentElement;
const by = (id) => document.getElementById(id);

export function startHeader() {
  startTheme();
  startExport();
  watch(render);
  outbox.onChange(() => now.state && renderStatus(now.state));
  lineListeners.add(renderBanner);
  lineListeners.add(() => now.state && renderStatus(now.state));
}

function restyle() {
  by("theme").setAttribute("aria-pressed", String(isDark()));
  const inverted = root.dataset.invert === "1";
  by("invert").setAttribute("aria-pressed", String(inverted));
  const light = root.dataset.natural === "1" || isDark(); // whether large values are; pictures come with dark ones
  root.dataset.negative = light !== inverted ? "1" : "0";
  document.dispatchEvent(new Event("tnesi-style"));
}

function startTheme() {
  by("theme").addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    kept.set("tnesi-theme", root.dataset.theme);
    restyle();
  });
  by("invert").addEventListener("click", () => {
    root.dataset.invert = root.dataset.invert === "1" ? "0" : "1";
    kept.set("tnesi-invert", root.dataset.invert);
    restyle();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", restyle);
  restyle();
}

function startExport() {
  const [button, menu] = [by("export-button"), by("export-menu")];
  const show = (open) => {
    menu.hidden = !open;
    button.setAttribute("aria-expanded", String(open));
    if (open) menu.querySelector("a")?.focus();
  };
  for (const [file, name, text] of EXPORTS) {
    const link = el("a", { href: `/api/export/${file}`, download: "" }, el("span", { class: "menu-name" }, name), el("span", { class: "menu-text" }, text));
    link.addEventListener("click", async (event) => {
      event.preventDefault();
      show(false);
      button.focus();
      await save(file);
    });
    menu.append(link);
  }
  const exact = el("input", { type: "checkbox", id: "export-exact" });
  menu.append(el("label", { class: "menu-option" }, exact, el("span", { class: "menu-text" }, "Exact names in CSV files: not for spreadsheets, which treat names that begin with = + - @ as formulas")));
  button.addEventListener("click", () => show(menu.hidden));
  menu.addEventListener("keydown", (event) => {
    const links = [...menu.querySelectorAll("a")];
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape") {
      event.preventDefault();
      show(false);
      button.focus();
    } else if (step) {
      event.preventDefault();
      links.at((links.indexOf(document.activeElement) + step) % links.length).focus();
    }
  });
  document.addEventListener("pointerdown", (event) => {
    if (!menu.hidden && !event.target.closest(".menu")) show(false);
  });
  by("export-menu").parentElement.addEventListener("focusout", (event) => {
    if (event.relatedTarget && !event.relatedTarget.closest(".menu")) show(false);
  });
}

async function save(file) {
  const stem = (now.state?.data.name ?? "studio").replace(/\.[^.]*$/, "").replaceAll(/[^\w-]+/g, "-");
  notice(`Preparing ${file}`, true);
  try {
    const exact = file.endsWith(".csv") && by("export-exact").checked ? 1 : undefined;
    await download(path(`/api/export/${file}`, { exact }), `${stem}-${file}`);
    notice(`Exported ${file}`);
  } catch (error) {
    warn(error.message);
  }
}

function render(state) {
  const { data } = state;
  setText(by("data-name"), data.name ?? "");
  setText(by("data-rows"), data.rows ? plural(data.rows, "row") : "");
  root.dataset.kind = data.kind;
  if (data.natural && root.dataset.natural !== "1") {
    root.dataset.natural = "1";
    restyle();
  }
  root.dataset.photos = data.photos ? "1" : "0";
  by("invert").hidden = data.kind !== "image" || data.photos;
  renderNotes(data);
  document.title = data.name ? `${data.name} · tnesi studio` : "tnesi studio";
  renderProgress(state);
  renderStatus(state);
  renderBanner();
}

/** Notes about the data: existing labels, and skipped files. */
function renderNotes({ notes = [], skipped }) {
  const card = by("notes");
  const lines = [...notes];
  if (skipped?.total) lines.push(`${plural(skipped.total, "unreadable file was", "unreadable files were")} skipped:`);
  card.hidden = lines.length === 0;
  if (card.hidden || by("notes-body").childElementCount) return;
  const files = (skipped?.files ?? []).map((text) => el("li", {}, text));
  if (skipped?.total > files.length) files.push(el("li", {}, `and ${count(skipped.total - files.length)} more`));
  by("notes-body").append(...lines.map((text) => el("p", {}, text)), el("ul", { class: "skipped", hidden: files.length === 0, tabindex: "0", "aria-label": "Files left out" }, ...files));
}

function renderProgress(state) {
  const bar = by("progress");
  const at = state.phase === "reading" || state.phase === "training" ? state.progress : null;
  bar.classList.toggle("on", Boolean(at));
  const known = typeof at?.share === "number";
  bar.classList.toggle("unknown", Boolean(at) && !known);
  bar.firstElementChild.style.inlineSize = known ? `${100 * at.share}%` : "";
  if (known) bar.setAttribute("aria-valuenow", Math.round(100 * at.share));
  else bar.removeAttribute("aria-valuenow");
  bar.setAttribute("aria-valuetext", at?.text ?? "Done");
}

function renderStatus(state) {
  const [kind, text] = status(state);
  by("status").dataset.kind = kind;
  setText(document.querySelector("#status .status-text"), text);
  by("status").title = text;
  by("status").setAttribute("aria-live", kind === "busy" ? "off" : "polite"); // each iteration would be too much
}

function status(state) {
  if (now.line === "lost" || now.line === "stranger") return ["bad", "Connection lost"];
  if (outbox.waiting()) return ["bad", `${plural(outbox.unsaved(), "answer")} not saved yet`];
  if (state.phase === "failed") return ["bad", "Stopped"];
  if (state.phase === "reading") return ["busy", capital(state.progress?.text || "reading the data")];
  if (state.phase === "training") return ["busy", capital(state.progress?.text || "learning from the data")];
  if (outbox.unsaved()) return ["busy", "Saving"];
  if (state.busy) return ["busy", "Learning from your answers"];
  return ["good", state.answers.total ? "All answers saved" : "Ready"];
}

function renderBanner() {
  const banner = by("banner");
  let text = "";
  if (now.line === "stranger") text = "This page belongs to another run of the studio. Open the address printed in the terminal; unsaved answers stay in this browser.";
  else if (now.line === "lost") text = "Connection lost; retrying. Answers that you give now are stored here and sent when the connection is back.";
  else if (now.state?.phase === "failed") text = now.state.error ?? "Learning has failed; see the terminal.";
  setText(banner, text);
  banner.hidden = text === "";
}
