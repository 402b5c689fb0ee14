// Talking to the studio's server: the token, requests and downloads.
import { kept } from "./dom.js";

const TOKEN = "tnesi-token";
const CLIENT = "tnesi-client";
const PATIENCE = 15000; // milliseconds until a request counts as lost
const LONG_PATIENCE = 300000; // for responses that take long to compute and may be large

let token = null;

export class ApiError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

class ConnectionLost extends Error {
  constructor(cause) {
    super("The connection to the studio was lost.", { cause });
  }
}

/** Remove the token from the address, so that it is neither visible nor bookmarked. */
export function takeToken() {
  const address = new URL(location.href);
  token = address.searchParams.get("token");
  if (token) {
    kept.set(TOKEN, token, "sessionStorage");
    address.searchParams.delete("token");
    history.replaceState(null, "", address);
  } else token = kept.get(TOKEN, "sessionStorage");
}

/** Without a token the page could show data but save nothing. */
export const hasToken = () => Boolean(token);

export function randomId() {
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** The identifier of this tab, the same after a reload. */
export const client = kept.get(CLIENT, "sessionStorage") ?? randomId();
kept.set(CLIENT, client, "sessionStorage");

export function path(where, query = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "");
  return given.length ? `${where}?${new URLSearchParams(given)}` : where;
}

async function send(method, where, body, patience = PATIENCE) {
  const headers = {};
  if (token) headers.Authorization = `Bearer ${token}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(where, {
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      cache: "no-store",
      signal: AbortSignal.timeout(patience),
    });
  } catch (error) {
    throw new ConnectionLost(error);
  }
  if (response.ok) return response;
  let said = `The studio answered ${response.status}.`;
  try {
    said = (await response.json()).error ?? said;
  } catch {
    // not JSON: the status must suffice
  }
  throw new ApiError(response.status, said);
}

/** Read the body of a response; a truncated one is an error. */
async function whole(reading) {
  try {
    return await reading;
  } catch (error) {
    throw new ConnectionLost(error);
  }
}

async function json(method, where, body) {
  const response = await send(method, where, body);
  return whole(response.json());
}

export const get = (where, query) => json("GET", path(where, query));
export const post = (where, body) => json("POST", where, body);
export const remove = (where, query) => json("DELETE", path(where, query));

/** Fetch a picture without the cache: after a restart its address may have a different one. */
export async function picture(where) {
  return createImageBitmap(await (await send("GET", where)).blob());
}

/** Fetch an export and start a download in the browser. */
export async function download(where, name) {
  const response = await send("GET", where, undefined, LONG_PATIENCE);
  const address = URL.createObjectURL(await whole(response.blob()));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 60000);
}
