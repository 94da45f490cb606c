// Consumer groups of the source, and where they would go on on the target.

import { h } from "./tree.js";
import { answer } from "./store.js";
import { requery } from "./route.js";
import { answered, badge, button, empty, pager, panel, search, sorted, table, topicName } from "./parts.js";
import { count } from "./words.js";

const LIMIT = 100;
const offset = (n) => (n === null || n === undefined || n < 0 ? h("span", { class: "muted" }, "–") : count(n));

const COLUMNS = (flow) => [
  { name: "Group", sort: "group", class: "name", cell: (row) => h("span", { class: "strong" }, row.group) },
  { name: "Partition", sort: "topic", value: (row) => `${row.topic} ${String(row.partition).padStart(6, "0")}`, class: "name", cell: (row) => (row.topic ? [topicName(row.topic), h("span", { class: "muted whole" }, `-${row.partition}`)] : "–") },
  { name: `On ${flow.source}`, sort: "committed", num: true, class: "named", cell: (row) => offset(row.committed), hint: "what the group committed on the source" },
  { name: `Is on ${flow.target}`, sort: "translated", num: true, class: "named", cell: (row) => offset(row.translated), hint: "the same place in the copy" },
  { name: `Set on ${flow.target}`, sort: "on_target", num: true, hide: "small", cell: (row) => offset(row.on_target), hint: "what is committed on the target" },
  { name: "State", sort: "state", cell: (row) => badge(row.state), title: (row) => row.reason },
  { name: "Reason", hide: "mid", class: "wrap reason", cell: (row) => h("span", { class: "muted" }, row.reason) },
];

export function groupsView({ query }, flow) {
  const known = answer(["flows", flow.flow, "groups"], {}, 15_000);
  return panel(null, [search(query.search ?? "", "Search groups, topics, states"), h("span", { class: "space" })],
    answered(known, (value) => {
      const all = Array.isArray(value) ? value : value.groups ?? [];
      const troubles = Array.isArray(value) ? [] : value.group_troubles ?? value.troubles ?? [];
      return [troubles.map((text) => h("p", { class: "notice warn", key: text }, text)), groups(all, flow, query)];
    }));
}

function groups(all, flow, query) {
  if (!all.length) {
    return empty("No group yet", `No consumer group has committed an offset on ${flow.source} for a topic of this flow, or groups are left out by groups.exclude.`,
      h("p", { class: "muted" }, "Groups appear here with the place where they would go on, as soon as one commits."));
  }
  const words = (query.search ?? "").toLowerCase().split(/\s+/).filter(Boolean);
  const columns = COLUMNS(flow);
  const found = sorted(all.filter((row) => words.every((word) => `${row.group} ${row.topic}-${row.partition} ${row.state}`.toLowerCase().includes(word))), columns, query.sort ?? "group", query.order);
  const from = Number(query.offset ?? 0);
  if (!found.length) return empty("No group matches", "Esc clears the search.", button("Show all groups", () => requery({ search: "" })));
  return [pager(found.length, from, LIMIT), table({ columns, rows: found.slice(from, from + LIMIT), keyOf: (row) => `${row.group}/${row.topic}/${row.partition}`, sort: query.sort ?? "group", order: query.order ?? "asc", label: `Groups of ${flow.flow}`, stacked: true })];
}
