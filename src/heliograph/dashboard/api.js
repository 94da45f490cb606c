// Questions to the server, all of them to the one that served this page.

const BASE = new URL("./api/v1/", document.baseURI);
const TOKEN = "heliograph-token";

export class Refused extends Error {
  constructor(status, message, field) {
    super(message);
    this.status = status;
    this.field = field;
  }
}

export const token = {
  get: () => sessionStorage.getItem(TOKEN) ?? "",
  set: (text) => (text ? sessionStorage.setItem(TOKEN, text) : sessionStorage.removeItem(TOKEN)),
};

/** The address of a path's parts below /api/v1, each encoded. */
export function address(parts, query = {}) {
  const url = new URL(parts.map(encodeURIComponent).join("/"), BASE);
  for (const [name, value] of Object.entries(query)) if (value !== "" && value !== undefined && value !== null) url.searchParams.set(name, value);
  return url;
}

export const get = (parts, query) => send("GET", address(parts, query));
export const write = (method, parts, body, query) => send(method, address(parts, query), body);

async function send(method, url, body) {
  const headers = { Accept: "application/json" };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (method !== "GET" && token.get()) headers.Authorization = `Bearer ${token.get()}`;
  let answer;
  try {
    answer = await fetch(url, { method, headers, body: body === undefined ? undefined : JSON.stringify(body), cache: "no-store" });
  } catch {
    throw new Refused(0, "The server does not answer.");
  }
  const text = await answer.text();
  const json = parsed(text);
  if (!answer.ok) {
    const error = json?.error ?? {};
    const allowed = error.allowed?.length ? ` Allowed: ${error.allowed.join(", ")}.` : "";
    throw new Refused(answer.status, (error.message ?? json?.message ?? `The server answered ${answer.status}.`) + allowed, error.field);
  }
  return json;
}

function parsed(text) {
  try {
    return text ? JSON.parse(text) : null;
  } catch {
    return null;
  }
}
