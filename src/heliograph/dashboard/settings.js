// Every option of the run: its value, where that came from, and what it means.

import { h } from "./tree.js";
import { answer } from "./store.js";
import { requery } from "./route.js";
import { answered, breakable, button, empty, pager, panel, search, sorted, table } from "./parts.js";
import { count, meant } from "./words.js";

const LIMIT = 100;
const SECRET = "***";
const isSet = (row) => row.origin !== "default";
const CHOICES = [
  ["", "all", () => true],
  ["set", "set", isSet],
  ["rest", "by REST", (row) => row.origin === "REST"],
  ["unserved", "not served", (row) => !row.served],
];

/** What was set stands first, what has no effect here last; within each as the manual has it. */
const rank = (row) => (isSet(row) ? 0 : row.served ? 1 : 2);

function value(row) {
  const faint = (text) => h("span", { class: "muted" }, text);
  if (row.value === SECRET) return h("span", { class: "muted", title: "A secret is never shown, and never leaves the run." }, "hidden");
  if (row.value === "" || row.value === null) return faint("–");
  return [row.value, faint(meant(row.name, row.value))];
}

/** The flow or alias before an option's name is another thing than its name. */
function name(row) {
  const [whole, before, bare] = row.name.match(/^(.+->[^.]+\.)(.+)$/) ?? [null, "", row.name];
  return h("span", { class: isSet(row) ? "strong" : "" }, whole && h("span", { class: "muted whole" }, before), whole && h("wbr"), breakable(bare));
}

const COLUMNS = [
  { name: "Option", sort: "name", class: "name option", cell: name },
  { name: "Value", sort: "value", class: "wrap mono value", cell: value },
  { name: "From", sort: "origin", cell: (row) => h("span", { class: isSet(row) ? "" : "muted" }, row.origin) },
  { name: "Meaning", class: "wrap meaning", cell: (row) => [h("span", { class: row.served ? "" : "muted" }, row.doc.split("`").map((part, index) => (index % 2 ? h("code", null, part) : part))), isSet(row) && row.default !== null && row.default !== "" && row.default !== row.value && h("span", { class: "muted" }, ` Default: ${row.default}.`)] },
];

export function settingsView({ query }) {
  return [
    h("h1", { key: "h" }, "Settings"),
    answered(answer(["settings"], {}, 60_000), ({ options }) => shown(options, query)),
  ];
}

function choices(options, query) {
  const now = query.only ?? "";
  const found = CHOICES.map(([id, label, chosen]) => [id, label, options.filter(chosen).length]).filter(([id, , n]) => n || id === now || id === "");
  return h("div", { class: "chips", role: "group", "aria-label": "Which options" }, found.map(([id, label, n]) => h("button", {
    type: "button", key: label, class: "chip", "aria-pressed": String(id === now), onclick: () => requery({ only: id, offset: "" }),
  }, label, h("span", null, count(n)))));
}

function shown(options, query) {
  const words = (query.search ?? "").toLowerCase().split(/\s+/).filter(Boolean);
  const chosen = (CHOICES.find(([id]) => id === query.only) ?? CHOICES[0])[2];
  const matching = options.filter((row) => chosen(row) && words.every((word) => `${row.name} ${row.value} ${row.origin} ${row.doc}`.toLowerCase().includes(word)));
  const found = query.sort ? sorted(matching, COLUMNS, query.sort, query.order) : [...matching].sort((a, b) => rank(a) - rank(b));
  const from = Number(query.offset ?? 0);
  return panel(null, [search(query.search ?? "", "Search names, values, meanings"), choices(options, query), h("span", { class: "space" }), pager(found.length, from, LIMIT)],
    found.length ? rows(found.slice(from, from + LIMIT), query) : empty("No option matches", "Esc clears the search.", button("Show all options", () => requery({ search: "", only: "", offset: "" }))));
}

const rows = (page, query) => table({ columns: COLUMNS, rows: page, keyOf: (row) => row.name, sort: query.sort, order: query.order ?? "asc", label: "Options", stacked: true });
