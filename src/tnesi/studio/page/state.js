// The last state from the server, and the connection.
import { ApiError, client, get, hasToken, path } from "./api.js";
import { openOutbox } from "./outbox.js";

const SILENCE_WHEN_HIDDEN = 20000; // a hidden tab closes its connection: browsers allow six per server
const FIRST_WAIT = 400;
const LONGEST_WAIT = 4000;

/** `line` is "connecting", "open", "lost" or "stranger" (the token is not the server's). */
export const now = { state: null, line: "connecting" };

const listeners = new Set();
let source = null;
let pause = FIRST_WAIT;
let again = null;
let attempt = 0;
let hiddenSince = null;

/** Call `listener` with the newest state whenever it or the line changes. */
export function watch(listener) {
  listeners.add(listener);
  if (now.state) listener(now.state);
}

function tell() {
  if (now.state) for (const listener of listeners) listener(now.state);
}

export const lineListeners = new Set();

function setLine(line) {
  if (now.line === line) return;
  now.line = line;
  for (const listener of lineListeners) listener(line);
}

/** Classes in the order of their keys; those without a key in order of appearance. */
const byKey = (classes) =>
  classes.toSorted((a, b) => {
    if (a.key === null || b.key === null) return (a.key === null) - (b.key === null);
    return a.key.localeCompare(b.key, "en", { numeric: true });
  });

/** Versions grow while a server runs; a restarted server numbers them from 1 (`fresh`). */
function take(state, fresh) {
  if (!fresh && now.state && state.version < now.state.version) return;
  now.state = { ...state, classes: byKey(state.classes) };
  if (state.data?.project) openOutbox(state.data.project);
  tell();
}

/** Request the state again, for example to find out why the connection broke. */
async function ask() {
  if (!hasToken()) {
    setLine("stranger");
    return false;
  }
  try {
    take(await get("/api/state", { client }), true);
    return true;
  } catch (error) {
    setLine(error instanceof ApiError && (error.status === 401 || error.status === 403) ? "stranger" : "lost");
    return false;
  }
}

async function connect() {
  clearTimeout(again);
  source?.close();
  source = null;
  const mine = ++attempt;
  const found = await ask();
  if (mine !== attempt) return; // superseded
  if (!found) return later();
  source = new EventSource(path("/api/events", { client }));
  source.addEventListener("open", () => {
    pause = FIRST_WAIT;
    setLine("open");
  });
  source.addEventListener("state", (event) => {
    setLine("open");
    take(JSON.parse(event.data), false);
  });
  source.addEventListener("error", () => {
    source?.close();
    setLine("lost");
    later();
  });
}

function later() {
  clearTimeout(again);
  again = setTimeout(connect, pause);
  pause = Math.min(1.6 * pause, LONGEST_WAIT);
}

export function start() {
  document.addEventListener("visibilitychange", () => {
    clearTimeout(hiddenSince);
    if (document.hidden) {
      hiddenSince = setTimeout(() => {
        source?.close();
        source = null;
        clearTimeout(again);
      }, SILENCE_WHEN_HIDDEN);
    } else if (!source) connect();
  });
  addEventListener("online", () => {
    pause = FIRST_WAIT;
    connect();
  });
  return connect();
}

/** The class of that name, if there is one. */
export const classOf = (name) => now.state?.classes.find((one) => one.name === name);
