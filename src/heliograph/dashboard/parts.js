// The small pieces that views are made of.

import { h } from "./tree.js";
import { requery, hashOf } from "./route.js";
import { toneOf } from "./tones.js";
import { count } from "./words.js";

export const badge = (state, tone = toneOf(state)) => h("span", { class: `badge ${tone}` }, h("i", { "aria-hidden": "true" }), state);

/** A name that may be broken after its dots, and not before a partition's number; nothing is added to what is copied from the page. */
export const breakable = (name) => name.split(/(?<=[._-])(?!\d+$)/).flatMap((part, index) => [index > 0 && h("wbr"), /^.{0,24}-\d+$/.test(part) ? h("span", { class: "whole" }, part) : part]);
export const topicName = (topic) => h("span", { class: "topic" }, breakable(topic));

export const stat = (name, value, note, tone = "") =>
  h("div", { class: `stat ${tone}` }, h("dt", null, name), h("dd", null, value), note && h("p", null, note));

export const button = (text, onclick, { tone = "", title, disabled = false, key } = {}) =>
  h("button", { type: "button", class: `button ${tone}`, onclick, title, disabled, key }, text);

/** Nothing to show, why, and what to do next. */
export const empty = (title, text, ...more) => h("div", { class: "empty" }, h("h3", null, title), h("p", null, text), more);

export const panel = (title, aside, ...body) =>
  h("section", { class: "panel" }, (title || aside) && h("header", null, title && h("h2", null, title), aside), body);

/** A field that writes what is typed into the address. */
export function search(value, label, name = "search") {
  return h("input", {
    type: "search", class: "search", value, placeholder: label, "aria-label": label, "data-search": true, autocomplete: "off", spellcheck: "false",
    oninput: (event) => requery({ [name]: event.target.value, offset: "" }, { replace: true }),
  });
}

/** `columns`: [{id, name, num, sort, cell(row), title, hide}]; rows are focusable and open with Enter if `open` is given; `stacked`: a phone shows cells below each other. */
export function table({ columns, rows, keyOf, sort, order, open, label, stale, picked, steadyAs, stacked }) {
  return h("div", { class: `scroll${stale ? " stale" : ""}` },
    h("table", { class: stacked ? "stacked" : null, "aria-label": label, "data-rows": open ? true : null },
      h("thead", null, h("tr", null, columns.map((column) => head(column, sort, order)))),
      h("tbody", { "data-steady": steadyAs }, rows.map((row) => h("tr", {
        key: keyOf(row), tabindex: open ? 0 : null, class: [open ? "opens" : "", picked === keyOf(row) ? "picked" : ""].join(" ").trim(),
        onclick: open && ((event) => { if (!event.target.closest("a, button, input")) open(row); }),
        onkeydown: open && ((event) => { if (event.key === "Enter" && event.target === event.currentTarget) open(row); }),
      }, columns.map((column) => h("td", { class: classOf(column), title: column.title?.(row), "data-name": column.name }, column.cell(row))))))));
}

const classOf = (column) => [column.num ? "num" : "", column.hide ? `hide-${column.hide}` : "", column.class ?? ""].join(" ").trim() || null;

function head(column, sort, order) {
  const mine = column.sort && column.sort === sort;
  return h("th", { scope: "col", class: classOf(column), "aria-sort": mine ? (order === "desc" ? "descending" : "ascending") : column.sort ? "none" : null, title: column.hint },
    column.sort
      ? h("button", { type: "button", onclick: () => bySort(column, mine, order) }, column.name, h("span", { class: "arrow", "aria-hidden": "true" }, mine ? (order === "desc" ? "▼" : "▲") : ""))
      : column.name);
}

function bySort(column, mine, order) {
  // Numbers are looked at from the largest on, names from A on.
  const first = column.num ? "desc" : "asc";
  requery({ sort: column.sort, order: mine ? (order === "desc" ? "asc" : "desc") : first, offset: "" });
}

/** Says quietly how long the order of a table stands; nothing where it is by something that does not change by itself. */
export function orderNote(held, columns, sort) {
  if (!columns.some((column) => column.sort === sort && column.num)) return null;
  return h("span", { class: `order ${held ? "held" : ""}`, title: "Rows change places every 5 s, and not while the pointer or the keyboard is among them." }, held ? "order held" : "sorted every 5 s");
}

/** Sorted here, for tables that come whole. */
export function sorted(rows, columns, sort, order) {
  const column = columns.find((one) => one.sort === sort) ?? columns[0];
  const value = column.value ?? ((row) => row[column.sort]);
  const sign = order === "desc" ? -1 : 1;
  return [...rows].sort((a, b) => {
    const [left, right] = [value(a), value(b)];
    return (left === right ? 0 : left === null || left === undefined || left < right ? -1 : 1) * sign;
  });
}

export function pager(matched, offset, limit) {
  if (matched <= limit) return null;
  const from = Math.min(offset, Math.max(0, matched - 1));
  const go = (to) => requery({ offset: Math.max(0, to) || "" });
  return h("nav", { class: "pager", "aria-label": "Pages" },
    button("‹", () => go(from - limit), { disabled: from === 0, title: "Previous page  [" }),
    h("span", null, `${count(from + 1)}–${count(Math.min(matched, from + limit))} of ${count(matched)}`),
    button("›", () => go(from + limit), { disabled: from + limit >= matched, title: "Next page  ]" }));
}

export function tabs(items, now, base) {
  return h("nav", { class: "tabs", "aria-label": "Parts of this flow", onkeydown: sideways },
    items.map(([id, name, note]) => h("a", { key: id, href: hashOf([...base, ...(id ? [id] : [])]), "aria-current": id === now ? "page" : null }, name,
      note !== undefined && note !== null && h("span", { class: "pill" }, note))));
}

function sideways(event) {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  const links = [...event.currentTarget.querySelectorAll("a")];
  const at = links.indexOf(document.activeElement);
  if (step && at >= 0) links[(at + step + links.length) % links.length].focus();
}

export const waiting = (text = "Loading …") => h("p", { class: "waiting", role: "status" }, text);
export const failed = (error) => h("p", { class: "notice bad", role: "alert" }, error.message);

/** An answer that is asked for: waiting, failed, or what `make` makes of it. */
export function answered(known, make) {
  if (known.value === undefined || known.value === null) return known.error ? failed(known.error) : waiting();
  return [known.error && h("p", { class: "notice warn", key: "old" }, `Not up to date: ${known.error.message}`), make(known.value)];
}
