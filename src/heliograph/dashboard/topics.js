// The topics of a flow, and one topic with both sides' configs.

import { h } from "./tree.js";
import { answer } from "./store.js";
import { flowHash, requery } from "./route.js";
import { answered, badge, button, empty, orderNote, pager, panel, search, sorted, table, topicName } from "./parts.js";
import { isHeld, steady } from "./steady.js";
import { brief, count, lasting, meant, sizePerSecond } from "./words.js";
import * as actions from "./actions.js";
import { lanesOfTopic } from "./lanes.js";

const LIMIT = 100;

const worst = (states) => ["parked", "draining", "paused", "attaching", "waiting", "following", "done"].find((name) => states?.[name]) ?? "waiting";

const COLUMNS = (flow) => [
  { name: "Topic", sort: "topic", class: "name", cell: (row) => h("a", { href: flowHash(flow.flow, "topics", row.topic), class: "topic" }, topicName(row.topic)) },
  { name: "Remote topic", sort: "remote_topic", hide: "small", class: "name", cell: (row) => h("span", { class: "muted" }, row.remote_topic) },
  { name: "State", sort: "state", value: (row) => worst(row.states), cell: (row) => badge(worst(row.states)), title: (row) => Object.entries(row.states ?? {}).map(([name, n]) => `${n} ${name}`).join(", ") },
  { name: "Partitions", sort: "partitions", num: true, hide: "small", cell: (row) => count(row.partitions) },
  { name: "Lag", sort: "lag", num: true, cell: (row) => h("span", { class: row.lag ? "" : "muted" }, count(row.lag)) },
  { name: "Behind", sort: "lag_ms", num: true, hide: "small", cell: (row) => (row.lag ? lasting(row.lag_ms) : "–") },
  { name: "Records/s", sort: "records_per_s", num: true, cell: (row) => brief(Math.round(row.records_per_s)) },
  { name: "Bytes/s", sort: "bytes_per_s", num: true, hide: "small", cell: (row) => sizePerSecond(Math.round(row.bytes_per_s)) },
  { name: "Limit", sort: "throttle_bytes_per_s", num: true, hide: "mid", cell: (row) => (row.throttle_bytes_per_s ? sizePerSecond(row.throttle_bytes_per_s) : "–") },
];

export function topicsView({ query }, flow) {
  const known = answer(["flows", flow.flow, "topics"], {}, 3_000);
  const name = `topics ${flow.flow}`;
  return panel(null, [search(query.search ?? "", "Search topics"), h("span", { class: "space" }), orderNote(isHeld(name), COLUMNS(flow), query.sort), button("Add topic", () => actions.addTopic(flow.flow))],
    answered(known, (all) => {
      if (!all.length) return empty("No topic yet", "None of the flow's topics exists on its source, or it is not planned yet.", button("Add topic", () => actions.addTopic(flow.flow), { tone: "main" }));
      const text = (query.search ?? "").toLowerCase();
      const columns = COLUMNS(flow);
      const found = sorted(all.filter((row) => `${row.topic} ${row.remote_topic}`.toLowerCase().includes(text)), columns, query.sort ?? "topic", query.order);
      const offset = Number(query.offset ?? 0);
      const keyOf = (row) => row.topic;
      const rows = steady({ name, as: `${query.sort} ${query.order} ${text}`, rows: found, keyOf }).slice(offset, offset + LIMIT);
      if (!found.length) return empty("No topic matches", "Esc clears the search.", button("Show all topics", () => requery({ search: "" })));
      return [pager(found.length, offset, LIMIT), table({
        columns, rows, keyOf, steadyAs: name, sort: query.sort ?? "topic", order: query.order ?? "asc", label: `Topics of ${flow.flow}`,
        open: (row) => { location.hash = flowHash(flow.flow, "topics", row.topic); },
      })];
    }));
}

export function topicView({ query }, flow, topic) {
  const known = answer(["flows", flow.flow, "topics", topic], {}, 15_000);
  return [
    h("div", { class: "subtitle", key: "subtitle" },
      h("h2", null, h("a", { href: flowHash(flow.flow, "topics") }, "Topics"), " / ", h("span", { class: "topic" }, topic), known.value && h("span", { class: "muted" }, ` → ${known.value.remote_topic}`)),
      h("span", { class: "space" }), buttons(flow, topic, known.value)),
    panel("Configs", h("label", { class: "check" }, h("input", { type: "checkbox", checked: query.all !== "1", onchange: (event) => requery({ all: event.target.checked ? "" : "1" }) }), "only what differs"),
      answered(known, (value) => configs(value.configs ?? [], flow, query.all !== "1"))),
    panel("Lanes", null, lanesOfTopic(flow, topic)),
  ];
}

function buttons(flow, topic, value) {
  const held = (flow.holds ?? []).some((hold) => hold.topic === topic && (hold.partition === null || hold.partition === undefined || hold.partition < 0));
  return h("div", { class: "buttons", role: "group", "aria-label": "Change this topic" },
    held ? button("Resume", () => actions.resume(flow.flow, topic), { tone: "main", key: "resume" }) : button("Pause", () => actions.pause(flow.flow, topic), { key: "pause" }),
    button("Throttle", () => actions.throttle(flow.flow, value?.throttle_bytes_per_s ?? 0, topic), { key: "throttle" }),
    button("Remove", () => actions.removeTopic(flow.flow, topic), { tone: "bad", key: "remove" }));
}

function configs(all, flow, onlyOther) {
  const rows = all.filter((row) => row.differs || !onlyOther);
  const other = all.filter((row) => row.differs).length;
  if (!all.length) return empty("Configs are not known yet", "They are read from both clusters when this view is opened.");
  if (!rows.length) return empty("Both sides are the same", `${count(all.length)} configs have the same value on ${flow.source} and ${flow.target}.`);
  const faint = (text) => h("span", { class: "muted" }, text);
  const value = (name, text) => (text === null || text === undefined ? faint("not set") : text === "" ? faint("empty") : [String(text), faint(meant(name, text))]);
  return [table({
    label: "Configs of both sides", stacked: true, rows, keyOf: (row) => row.name,
    columns: [
      { name: "Config", class: "name line", cell: (row) => row.name },
      { name: `On ${flow.source}`, class: "wrap mono named", cell: (row) => value(row.name, row.source) },
      { name: `On ${flow.target}`, class: "wrap mono named", cell: (row) => value(row.name, row.target) },
      { name: "", cell: (row) => (row.differs ? badge("differs", "warn") : h("span", { class: "muted" }, "same")) },
    ],
  }), h("p", { class: "note muted" }, `${count(other)} of ${count(all.length)} differ.`)];
}
