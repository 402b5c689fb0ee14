// The answer to "what is this?": a button per class, and a box to type a name. Used by the question and by the panel of a row.
import { paint } from "./colors.js";
import { el, keep, percent, setText } from "./dom.js";
import { now } from "./state.js";

const LONGEST_NAME = 100;
const LEAST_SHARE = 0.005; // smallest guess to show
let boxes = 0;

/** Find the class with a typed name; except for single letters, case is ignored. */
function meant(typed) {
  const name = typed.trim();
  const classes = now.state?.classes ?? [];
  const same = classes.find((one) => one.name === name);
  if (same || name.length < 2) return same;
  return classes.find((one) => one.name.toLowerCase() === name.toLowerCase());
}

export class Chooser {
  /** `choose(label, how)` is called with an answer. */
  constructor(choose) {
    this.choose = choose;
    const id = `name-${++boxes}`;
    this.list = el("div", { class: "choices", role: "group", "aria-label": "Classes" });
    this.empty = el("p", { class: "choices-empty" }, "No classes yet. Type what you see and press Enter.");
    this.input = el("input", {
      id, type: "text", maxlength: LONGEST_NAME, autocomplete: "off", autocapitalize: "off", spellcheck: "false",
      placeholder: "Type a class name", list: `${id}-known`, "aria-describedby": `${id}-hint`, enterkeyhint: "done",
    });
    this.known = el("datalist", { id: `${id}-known` });
    this.hint = el("p", { id: `${id}-hint`, class: "name-hint" });
    this.confirm = el("button", { type: "submit", class: "button" }, "Answer");
    this.form = el(
      "form", { class: "name-form", autocomplete: "off" },
      el("label", { for: id, class: "out-of-sight" }, "Class name"),
      this.input, this.known, this.confirm, this.hint,
    );
    this.node = el("div", { class: "chooser" }, el("div", { class: "choices-place" }, this.list, this.empty), this.form);
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#typed();
    });
    this.input.addEventListener("input", () => this.#tell());
    this.input.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      event.preventDefault(); // leaves the box, not the panel around it
      event.stopPropagation();
      this.clear();
      this.input.blur();
    });
    this.disabled = false; // while an answer is being saved: names can be typed for the next question
    this.closed = false; // if there is no question
    this.#tell();
  }

  /** Show the classes, with probabilities of the guesses, [[name, probability], ...]. */
  update(guesses = [], current = null) {
    const classes = now.state?.classes ?? [];
    const shares = new Map(guesses);
    this.empty.hidden = classes.length > 0;
    this.list.classList.toggle("several", classes.length > 8);
    this.list.classList.toggle("many", classes.length > 12);
    const longest = Math.max(0, ...classes.map((one) => one.name.length));
    this.list.dataset.names = longest > 12 ? "long" : longest > 6 ? "medium" : "short";
    keep(this.list, classes, (one) => one.name, (one) => this.#button(one.name), (button, one) => {
      paint(button, one.color);
      const guessed = shares.get(one.name);
      const share = guessed >= LEAST_SHARE ? guessed : undefined;
      const [key, name, figure, bar] = ["kbd", ".choice-name", ".choice-share", ".guess > span"].map((part) => button.querySelector(part));
      setText(key, one.key ?? "");
      key.hidden = !one.key || one.key === one.name; // the name serves as the key
      name.classList.toggle("is-key", one.key === one.name);
      setText(name, one.name);
      setText(figure, share === undefined ? "" : percent(share, 0));
      button.title = share === undefined ? one.name : `${one.name}: ${percent(share)}`;
      bar.style.inlineSize = share === undefined ? "0" : `${Math.max(2, 100 * share)}%`;
      button.classList.toggle("current", one.name === current);
      button.disabled = this.disabled;
      const said = [key.hidden ? "" : one.key, one.name, figure.textContent].filter(Boolean).join(" ");
      if (one.key) button.setAttribute("aria-keyshortcuts", one.key);
      else button.removeAttribute("aria-keyshortcuts");
      button.setAttribute("aria-label", one.name === current ? `${said}, the label now` : said);
    });
    keep(this.known, classes, (one) => one.name, (one) => el("option", { value: one.name }));
    this.input.disabled = this.confirm.disabled = this.closed;
    this.#tell();
  }

  #button(label) {
    const button = el(
      "button", { type: "button", class: "choice" },
      el("kbd"), " ", el("span", { class: "choice-name" }), " ", el("span", { class: "choice-share" }), el("span", { class: "guess" }, el("span")),
    );
    button.addEventListener("click", (event) => {
      if (event.detail > 1) return; // the second half of a double click does not apply to the next example
      this.choose(label, event.detail === 0 ? "keyboard" : "pointer");
    });
    return button;
  }

  #tell() {
    const name = this.input.value.trim();
    const same = name ? meant(name) : undefined;
    setText(this.hint, !name ? "Press Enter, type, press Enter." : same ? `Enter: class ${same.name}` : `Enter: new class “${name}”`);
  }

  #typed() {
    const name = this.input.value.trim();
    if (!name || this.closed) return;
    const label = meant(name)?.name ?? name;
    this.clear();
    this.input.blur();
    this.choose(label, "typed");
  }

  /** Start a name with the typed character. */
  begin(text) {
    if (this.closed) return;
    this.input.focus();
    this.input.value += text;
    this.#tell();
  }

  clear() {
    this.input.value = "";
    this.#tell();
  }

  /** Mark the choice until the server has saved it. */
  mark(label) {
    for (const button of this.list.children) button.classList.toggle("chosen", label !== null && button.dataset.key === label);
  }
}
