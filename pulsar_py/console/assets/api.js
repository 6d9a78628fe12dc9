// Calls of the broker. Credentials are kept in this variable alone: closing the page forgets them.

let authorization = null;
let onSignedOut = () => {};

export class CallError extends Error {
  constructor(status, reason) {
    super(reason);
    this.status = status;
  }
}

export function signOut() {
  authorization = null;
}

export function withToken(token) {
  authorization = "Bearer " + token.trim();
}

export function withPassword(user, password) {
  const data = new TextEncoder().encode(user + ":" + password);
  authorization = "Basic " + btoa(String.fromCharCode(...data));
}

export function isSignedIn() {
  return authorization !== null;
}

export function whenSignedOut(callback) {
  onSignedOut = callback;
}

/** A path of encoded segments. */
export function path(base, ...parts) {
  return base + parts.map((part) => "/" + encodeURIComponent(part)).join("");
}

export function query(values) {
  const pairs = Object.entries(values).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  return pairs.length ? "?" + new URLSearchParams(pairs) : "";
}

async function call(method, target, body) {
  const headers = { Accept: "application/json" };
  if (authorization) headers.Authorization = authorization;
  const options = { method, headers, credentials: "same-origin", cache: "no-store", redirect: "manual" };
  if (body !== undefined) {
    headers["Content-Type"] = "application/json";
    options.body = JSON.stringify(body);
  }
  let response;
  try {
    response = await fetch(target, options);
  } catch {
    throw new CallError(0, "The broker does not answer.");
  }
  // A page may not follow to another broker: it would take the credentials along.
  if (response.type === "opaqueredirect") throw new CallError(307, "Another broker of the cluster serves this.");
  const text = await response.text();
  let value = null;
  try {
    value = text ? JSON.parse(text) : null;
  } catch {
    value = null;
  }
  if (response.ok) return value;
  if (response.status === 401 && (authorization === null || !(value && value.reason))) onSignedOut();
  const reason = (value && value.reason) || (text && !text.startsWith("<") ? text.slice(0, 500) : response.statusText);
  throw new CallError(response.status, reason || "Error " + response.status);
}

export const get = (target) => call("GET", target);
export const post = (target, body) => call("POST", target, body);
export const put = (target, body) => call("PUT", target, body);
export const del = (target) => call("DELETE", target);

export const CONSOLE = "/admin/console";
export const ADMIN = "/admin/v2";

const known = new Map();

/** The actions that the caller has there, as a Set; asked once in ten seconds. */
export async function rights(values) {
  const key = query(values) + authorization;
  const found = known.get(key);
  if (found && Date.now() - found.at < 10000) return found.actions;
  const answer = await get(CONSOLE + "/rights" + query(values));
  const actions = new Set(answer.actions);
  if (known.size > 100) known.clear();
  known.set(key, { at: Date.now(), actions });
  return actions;
}
