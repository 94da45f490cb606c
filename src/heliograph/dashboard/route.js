// The part of the address after #: which view, and how it is sorted and searched, so that a view can be linked. Pure but for `go`.

/** "#/flows/A->B/lanes?sort=lag" is {parts: ["flows", "A->B", "lanes"], query: {sort: "lag"}}. */
export function routeOf(hash) {
  const text = hash.replace(/^#/, "");
  const [path, query = ""] = text.split(/\?(.*)/s);
  const parts = path.split("/").filter(Boolean).map(decoded);
  return { parts, query: Object.fromEntries(new URLSearchParams(query)) };
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export function hashOf(parts, query = {}) {
  const path = parts.map((part) => encodeURIComponent(part).replaceAll("%3E", ">")).join("/");
  const given = Object.entries(query).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  const text = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return `#/${path}${text ? `?${text}` : ""}`;
}

export const flowHash = (flow, ...more) => hashOf(["flows", flow, ...more]);

/** The same view with another query; `replace` for what is typed, so that "back" does not go letter by letter. */
export function requery(changes, { replace = false } = {}) {
  const { parts, query } = routeOf(location.hash);
  const hash = hashOf(parts, { ...query, ...changes });
  if (hash === location.hash) return;
  if (replace) {
    history.replaceState(null, "", hash);
    dispatchEvent(new HashChangeEvent("hashchange"));
  } else location.hash = hash;
}
