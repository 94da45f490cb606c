// All clusters and flows at a glance.

import { h } from "./tree.js";
import { answer, hour, state } from "./store.js";
import { flowHash } from "./route.js";
import { map } from "./map.js";
import { spark } from "./chart.js";
import { badge, empty, orderNote, panel, search, sorted, stat, table } from "./parts.js";
import { isHeld, steady } from "./steady.js";
import { brief, count, lasting, many, sizePerSecond } from "./words.js";
import { eventRows } from "./events.js";
import { stateOfFlow, toneOf, toneOfFlow } from "./tones.js";
import { isSeen } from "./turns.js";

export function overview({ query }) {
  const flows = [...state.flows.values()];
  const clusters = answer(["clusters"], {}, 10_000).value ?? [];
  if (!flows.length) {
    return empty("No flow yet", "This run mirrors nothing so far. A flow comes from the file it was started with, or from a request:",
      h("pre", null, "# in the file\nA->B.enabled = true\nA->B.topics = orders, payments"),
      h("p", null, "then ", h("code", null, "heliograph reload FILE"), ", or POST /connectors with the JSON of a MirrorSourceConnector."));
  }
  const room = Math.min(document.documentElement.clientWidth, 1440) - (document.documentElement.clientWidth < 720 ? 34 : 74);
  return [
    h("h1", { class: "hidden" }, "Overview"),
    totals(flows),
    h("section", { class: "panel map-panel", key: "map" }, map(flows, clusters, room)),
    flowsPanel(flows, query),
    panel("Latest events", h("a", { href: "#/events" }, "all events"), eventRows(state.events.slice(-6).reverse(), { flow: true })),
  ];
}

function totals(flows) {
  const sum = (name) => flows.reduce((total, flow) => total + (flow[name] ?? 0), 0);
  const lanes = {};
  for (const flow of flows) for (const [name, n] of Object.entries(flow.lanes_by_state ?? {})) lanes[name] = (lanes[name] ?? 0) + n;
  const p99 = flows.map((flow) => flow.latency_ms?.p99).filter((value) => value !== null && value !== undefined);
  const parked = lanes.parked ?? 0;
  const lagMs = Math.max(...flows.map((flow) => flow.lag_ms ?? 0));
  const seen = flows.filter(isSeen).length;
  const note = (text) => (seen === flows.length ? text : `${text}; ${many(flows.length - seen, "flow")} not known`);
  return h("dl", { class: "stats", key: "stats" },
    stat("Throughput", sizePerSecond(sum("bytes_per_s")), `${brief(sum("records_per_s"))} records/s`),
    stat("Lag", seen ? brief(sum("lag_records")) : "–", seen ? note(`records, the oldest ${lasting(lagMs)}`) : "not known here"),
    stat("Latency p99", p99.length ? lasting(Math.max(...p99)) : "–", "of the slowest flow"),
    stat("Lanes", seen ? count(sum("lanes")) : "–", others(lanes) || (seen ? "none" : "not known here")),
    stat("Parked", count(parked), parked ? `need${parked === 1 ? "s" : ""} a look` : "none", parked ? "bad" : ""),
    flows.some((flow) => (flow.at_risk_records ?? flow.lag_records) !== flow.lag_records) && stat("At risk", brief(sum("at_risk_records")), "records, if sources died now"));
}

const others = (lanes) => Object.entries(lanes).filter(([name, n]) => n && name !== "parked").sort((a, b) => b[1] - a[1]).slice(0, 2).map(([name, n]) => `${count(n)} ${name}`).join(", ");

export const lanesBar = (byState, total) => h("span", { class: "lanes-bar", title: Object.entries(byState ?? {}).map(([name, n]) => `${count(n)} ${name}`).join(", ") },
  Object.entries(byState ?? {}).filter(([, n]) => n).map(([name, n]) => h("i", { class: toneOf(name), style: { "flex-grow": String(Math.max(n, total / 40)) } })));

const COLUMNS = [
  { name: "Flow", sort: "flow", cell: (row) => h("a", { href: flowHash(row.flow), class: "strong" }, row.flow) },
  { name: "State", sort: "state", cell: (row) => badge(stateOfFlow(row), toneOfFlow(row)), title: (row) => row.reason },
  { name: "Last 10 min", hide: "small", cell: (row) => isSeen(row) && spark(hour(row.flow).time_ms, hour(row.flow).bytes_per_s) },
  { name: "Bytes/s", sort: "bytes_per_s", num: true, cell: (row) => (isSeen(row) ? sizePerSecond(row.bytes_per_s) : "–") },
  { name: "Records/s", sort: "records_per_s", num: true, hide: "small", cell: (row) => brief(isSeen(row) ? row.records_per_s : null) },
  { name: "Lag", sort: "lag_records", num: true, cell: (row) => brief(row.lag_records), title: (row) => count(row.lag_records), hint: "records that the source has and the target has not" },
  { name: "Behind", sort: "lag_ms", num: true, hide: "small", cell: (row) => lasting(row.lag_ms), hint: "how long ago the first record that is not copied yet was written" },
  { name: "p50", num: true, hide: "mid", sort: "p50", value: (row) => row.latency_ms?.p50, cell: (row) => lasting(row.latency_ms?.p50) },
  { name: "p99", num: true, hide: "mid", sort: "p99", value: (row) => row.latency_ms?.p99, cell: (row) => lasting(row.latency_ms?.p99) },
  { name: "Topics", sort: "topics", num: true, hide: "mid", cell: (row) => count(isSeen(row) ? row.topics : null) },
  { name: "Lanes", sort: "lanes", num: true, hide: "small", cell: (row) => (isSeen(row) ? [lanesBar(row.lanes_by_state, row.lanes), count(row.lanes)] : "–") },
  { name: "Bottleneck", hide: "mid", class: "wrap", cell: (row) => h("span", { class: "muted" }, ["trouble", "standby"].includes(row.state) ? row.reason : row.bottleneck || "–"), hint: "what keeps it from being faster" },
];

function flowsPanel(flows, query) {
  const text = (query.search ?? "").toLowerCase();
  const found = flows.filter((flow) => `${flow.flow} ${stateOfFlow(flow)}`.toLowerCase().includes(text));
  const columns = COLUMNS.filter((column) => column.name !== "Bottleneck" || flows.some((flow) => flow.bottleneck || ["trouble", "standby"].includes(flow.state)));
  const rows = steady({ name: "flows", as: `${query.sort} ${query.order} ${text}`, rows: sorted(found, columns, query.sort ?? "flow", query.order), keyOf: (row) => row.flow });
  return panel(many(flows.length, "flow"), [rows.length > 1 && orderNote(isHeld("flows"), columns, query.sort), flows.length > 6 && search(query.search ?? "", "Search flows")],
    rows.length ? table({ columns, rows, steadyAs: "flows", keyOf: (row) => row.flow, sort: query.sort ?? "flow", order: query.order ?? "asc", label: "Flows", open: (row) => { location.hash = flowHash(row.flow); } })
      : empty("No flow matches", "Esc clears the search."));
}
