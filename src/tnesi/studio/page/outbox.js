// Answers on their way to the server: sent one after the other, kept in the browser until they are
// acknowledged, tried again for as long as it takes. Each carries a random id, so the server takes it once.
import { ApiError, client, post, randomId, remove } from "./api.js";
import { kept } from "./dom.js";

const FIRST_WAIT = 300;
const LONGEST_WAIT = 4000;

const queue = [];
const listeners = new Set();
let prefix = null;
let working = false;
let wake = null;

/** The highest answer that the server has acknowledged to this tab. */
export let acknowledged = 0;

export const unsaved = () => queue.length;
export const waiting = () => queue.some((entry) => entry.state === "waiting");
export const onChange = (listener) => listeners.add(listener);

function changed(entry) {
  for (const listener of listeners) listener(entry);
}

/** Open the storage of unsaved answers, and send those of an earlier page. */
export function openOutbox(project) {
  if (prefix !== null) return;
  prefix = `tnesi-unsaved:${project}:`;
  const found = [];
  try {
    for (const key of Object.keys(localStorage)) {
      if (key.startsWith(prefix)) found.push(JSON.parse(localStorage.getItem(key)));
    }
  } catch {
    // storage is disabled, or has foreign content
  }
  found.sort((a, b) => a.time - b.time);
  for (const entry of found) queue.push({ ...entry, state: "waiting", adopted: true });
  if (found.length) work();
}

/**
 * Put an answer in the queue. `kind` is label, skip, undo, clear or rename.
 * The promise resolves to the server's response, or rejects if the server refuses the answer.
 */
export function give(kind, what) {
  const entry = { kind, ...what, client, request: randomId(), time: Date.now(), state: "sending" };
  const { state: _, ...lasting } = entry;
  if (prefix !== null) kept.set(prefix + entry.request, JSON.stringify(lasting));
  entry.saved = new Promise((resolve, reject) => {
    entry.resolve = resolve;
    entry.reject = reject;
  });
  entry.saved.catch(() => {}); // callers handle the error
  queue.push(entry);
  changed(entry);
  work();
  return entry;
}

/** Retry immediately, since the connection is back. */
export function hurry() {
  wake?.();
}

function request(entry) {
  const { kind, row, label, old, name } = entry;
  const own = { client: entry.client, request: entry.request };
  if (kind === "label") return post("/api/answers", { ...own, row, label });
  if (kind === "skip") return post("/api/skips", { ...own, row });
  if (kind === "undo") return post("/api/undo", own);
  if (kind === "clear") return remove(`/api/answers/${row}`, own);
  return post("/api/classes/rename", { ...own, old, new: name });
}

const lasts = (error) => error instanceof ApiError && error.status >= 400 && error.status < 500 && ![401, 408, 425, 429].includes(error.status);

async function work() {
  if (working) return;
  working = true;
  let pause = FIRST_WAIT;
  while (queue.length) {
    const entry = queue[0];
    try {
      const response = await request(entry);
      if (response.answer) acknowledged = Math.max(acknowledged, response.answer);
      finish(entry, "saved");
      entry.resolve?.(response);
      pause = FIRST_WAIT;
    } catch (error) {
      if (lasts(error)) {
        finish(entry, "refused", error.message);
        entry.reject?.(error);
        continue;
      }
      for (const other of queue) other.state = "waiting";
      changed(entry);
      await Promise.race([new Promise((resolve) => setTimeout(resolve, pause)), new Promise((resolve) => (wake = resolve))]);
      pause = Math.min(2 * pause, LONGEST_WAIT);
    }
  }
  working = false;
}

function finish(entry, state, error) {
  queue.shift();
  kept.set(prefix + entry.request, null);
  entry.state = state;
  entry.error = error;
  changed(entry);
}
