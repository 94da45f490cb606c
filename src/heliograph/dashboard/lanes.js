// The lanes of a flow: sorted, searched and cut into pages by the server, kept up to date by the stream.

import { h } from "./tree.js";
import { state } from "./store.js";
import { flowHash, requery } from "./route.js";
import { badge, button, empty, orderNote, pager, search, table, topicName, waiting } from "./parts.js";
import { heldKeys, isHeld, steady } from "./steady.js";
import { brief, count, lasting, many, moment, signed, since, size, sizePerSecond } from "./words.js";
import * as actions from "./actions.js";

const LIMIT = 50;
const STATES = ["parked", "attaching", "waiting", "draining", "paused", "following", "done"];

/** What the stream has to bring for this address; null if no lanes are shown. */
export function lanesQuery({ parts, query }) {
  const [first, flow, part, topic] = parts;
  if (first !== "flows" || flow === undefined) return null;
  if (part === "topics" && topic !== undefined) return { flow, topic, sort: "partition", limit: 100 };
  if (part === undefined) return { flow, sort: "lag", order: "desc", limit: 5 };
  if (part !== "lanes") return null;
  return { flow, search: query.search, state: query.state, sort: query.sort ?? "lag", order: query.order ?? (query.sort ? "asc" : "desc"), offset: query.offset, limit: LIMIT };
}

const tableOf = (flow, part) => `${part ?? "worst"} ${flow}`;

/** Lanes that the stream has to bring although they may have left the page: the open one, and those that must not move now. */
export function lanesAlso(route) {
  const [first, flow, part] = route.parts;
  if (first !== "flows" || flow === undefined || !["lanes", undefined].includes(part)) return [];
  const { lanes } = state;
  const held = heldKeys(tableOf(flow, part), JSON.stringify(lanesQuery(route)));
  const left = held.some((key) => lanes?.also.has(key) || !lanes?.rows.has(key));
  const open = part && route.query.lane ? [route.query.lane] : [];
  return [...new Set([...open, ...(left ? held.map((key) => key.slice(flow.length + 1)) : [])])];
}

/** The page's lanes in the order that is shown; the server sorts them every few seconds. */
function shown(flow, part, ask) {
  const { lanes } = state;
  const page = lanes.order.map((key) => lanes.rows.get(key)).filter(Boolean);
  if (lanes.stale) return page;
  const found = steady({ name: tableOf(flow, part), as: JSON.stringify(ask), rows: page, keyOf: (row) => row.lane, everyMs: 0 });
  return found.map((row) => lanes.rows.get(row.lane) ?? row);
}

const COLUMNS = [
  { name: "Lane", sort: "lane", class: "name", cell: (row) => [topicName(row.topic), h("span", { class: "muted whole" }, `-${row.partition}`)], title: (row) => `${row.topic}-${row.partition} to ${row.remote_topic}-${row.partition}` },
  { name: "State", sort: "state", cell: (row) => badge(row.state) },
  { name: "Lag", sort: "lag", num: true, cell: (row) => h("span", { class: row.lag ? "" : "muted" }, count(row.lag)), hint: "records that the source has and the target has not" },
  { name: "Behind", sort: "lag_ms", num: true, cell: (row) => (row.lag ? lasting(row.lag_ms) : h("span", { class: "muted" }, "–")) },
  { name: "Records/s", sort: "records_per_s", num: true, hide: "small", cell: (row) => (row.records_per_s ? brief(row.records_per_s) : h("span", { class: "muted" }, "0")) },
  { name: "Bytes/s", sort: "bytes_per_s", num: true, hide: "small", cell: (row) => (row.bytes_per_s ? sizePerSecond(row.bytes_per_s) : h("span", { class: "muted" }, "0")) },
  { name: "Position", sort: "position", num: true, hide: "small", cell: (row) => (row.position < 0 ? "–" : count(row.position)), hint: "the source offset before which everything is on the target" },
  { name: "Source end", sort: "source_end", num: true, hide: "mid", class: "aside-hides", cell: (row) => (row.source_end < 0 ? "–" : count(row.source_end)) },
  { name: "Target end", sort: "remote_end", num: true, hide: "mid", cell: (row) => (row.remote_end < 0 ? "–" : count(row.remote_end)) },
  { name: "Delta", sort: "delta", num: true, hide: "mid", cell: (row) => signed(row.delta), hint: "target offset minus source offset" },
  { name: "Reason", hide: "mid", class: "wrap reason", cell: (row) => row.reason && h("span", { class: row.state === "parked" ? "bad-text" : "muted" }, row.reason), title: (row) => row.reason },
];

export function lanesView({ query }, flow) {
  const lanes = state.lanes;
  const ask = lanesQuery({ parts: ["flows", flow.flow, "lanes"], query });
  const open = (row) => requery({ lane: `${row.topic}/${row.partition}` });
  const picked = lanes?.rows.get(`${flow.flow}/${query.lane}`);
  return h("section", { class: "panel lanes", key: "lanes" },
    h("header", null, search(query.search ?? "", "Search lanes by topic, state or reason"), filters(flow, query), h("span", { class: "space" }),
      lanes?.known && lanes.matched > 1 && orderNote(isHeld(tableOf(flow.flow, "lanes")), COLUMNS, ask.sort),
      lanes?.known && h("span", { class: "muted found" }, lanes.matched === lanes.total ? many(lanes.total, "lane") : `${count(lanes.matched)} of ${many(lanes.total, "lane")}`),
      lanes?.known && pager(lanes.matched, Number(query.offset ?? 0), LIMIT)),
    h("div", { class: picked ? "beside" : "" },
      rows(lanes, ask, query, flow, open),
      picked && detail(flow, picked)));
}

function rows(lanes, ask, query, flow, open) {
  if (!lanes?.known) return waiting();
  if (!lanes.total) return empty("No lane yet", "The flow is being planned, or none of its topics exists on the source.", button("Add topic", () => actions.addTopic(flow.flow)));
  if (!lanes.matched) return empty("No lane matches", "Search looks at topic and partition (orders-3), remote topic, state and reason.", button("Show all lanes", () => requery({ search: "", state: "", offset: "" })));
  return table({
    columns: COLUMNS, rows: shown(flow.flow, "lanes", ask), keyOf: (row) => row.lane, sort: ask.sort, order: ask.order,
    steadyAs: tableOf(flow.flow, "lanes"), open, label: `Lanes of ${flow.flow}`, stale: lanes.stale, picked: `${flow.flow}/${query.lane}`,
  });
}

function filters(flow, query) {
  const now = query.state ?? "";
  const known = STATES.filter((name) => flow.lanes_by_state?.[name] || name === now);
  if (known.length < 2 && !now) return null;
  return h("div", { class: "chips", role: "group", "aria-label": "States" }, ["", ...known].map((name) => h("button", {
    type: "button", key: name || "all", class: "chip", "aria-pressed": String(name === now), onclick: () => requery({ state: name, offset: "" }),
  }, name || "all", name && h("span", null, count(flow.lanes_by_state?.[name] ?? 0)))));
}

/** Everything about one lane. */
function detail(flow, row) {
  const held = (flow.holds ?? []).find((hold) => hold.topic === row.topic && hold.partition === row.partition);
  const fact = (name, value) => [h("dt", null, name), h("dd", null, value)];
  const counts = (found) => Object.entries(found ?? {}).filter(([, n]) => n).map(([why, n]) => `${count(n)} ${why}`).join(", ") || "none";
  return h("aside", { class: "detail", "aria-label": `Lane ${row.topic}-${row.partition}`, key: "detail" },
    h("header", null, h("h2", null, `${row.topic}-${row.partition}`), h("button", { type: "button", class: "icon", "aria-label": "Close", title: "Close  Esc", onclick: () => requery({ lane: "" }) }, "×")),
    h("p", null, badge(row.state), row.since_ms && row.state !== "following" ? h("span", { class: "muted" }, ` for ${since(row.since_ms, Date.now())}`) : null),
    row.reason && h("p", { class: `notice ${row.state === "parked" ? "bad" : ""}` }, row.reason),
    h("dl", { class: "facts" },
      fact("Remote topic", topicName(row.remote_topic)), fact("Position", count(row.position)), fact("Source end", count(row.source_end)), fact("Target end", count(row.remote_end)),
      fact("Lag", `${count(row.lag)}${row.lag ? `, ${lasting(row.lag_ms)}` : ""}`), fact("Delta", signed(row.delta)),
      fact("Rate", `${count(row.records_per_s)}/s, ${sizePerSecond(row.bytes_per_s)}`), fact("Copied", `${count(row.records)} records, ${size(row.bytes)}`),
      fact("Batches as they are", count(row.raw_batches)), fact("Rebuilt", `${count(row.rebuilt_batches)}${row.rebuilt_batches ? ` (${counts(row.rebuilt)})` : ""}`),
      fact("Dropped", counts(row.dropped)), fact("Guard", row.guard), fact("Generation", count(row.generation)), row.since_ms && row.state !== "following" ? fact("In this state since", moment(row.since_ms)) : null),
    h("div", { class: "buttons" }, held || row.state === "paused"
      ? button("Resume partition", () => actions.resume(flow.flow, row.topic, row.partition), { tone: "main" })
      : button("Pause partition", () => actions.pause(flow.flow, row.topic, row.partition))));
}

/** The lanes that are furthest behind, for the flow's own view. */
export function worstLanes(flow) {
  const lanes = state.lanes;
  if (!lanes?.known) return waiting();
  if (!lanes.total) return rows(lanes, {}, {}, flow);
  if (!flow.lag_records && !flow.lanes_by_state?.parked) return empty("No lane is behind", "All that the source has is on the target.");
  const columns = COLUMNS.map((column) => ({ ...column, sort: undefined }));
  const open = (row) => { location.hash = `${flowHash(flow.flow, "lanes")}?lane=${encodeURIComponent(`${row.topic}/${row.partition}`)}`; };
  return table({ columns, rows: shown(flow.flow, undefined, lanesQuery({ parts: ["flows", flow.flow], query: {} })), steadyAs: tableOf(flow.flow), keyOf: (row) => row.lane, open, label: "Lanes that are furthest behind", stale: lanes.stale });
}

/** The lanes of one topic, for its own view. */
export function lanesOfTopic(flow, topic) {
  const lanes = state.lanes;
  if (!lanes?.known) return waiting();
  const mine = lanes.order.map((key) => lanes.rows.get(key)).filter((row) => row?.topic === topic);
  if (!mine.length) return empty("No lane yet", "Its partitions are being planned.");
  const columns = COLUMNS.map((column) => ({ ...column, sort: undefined }));
  const more = lanes.matched - mine.length;
  return [table({ columns, rows: mine, keyOf: (row) => row.lane, label: `Lanes of ${topic}`, stale: lanes.stale, open: (row) => { location.hash = `#/flows/${encodeURIComponent(flow.flow)}/lanes?search=${encodeURIComponent(topic)}&lane=${encodeURIComponent(`${topic}/${row.partition}`)}`; } }),
    more > 0 && h("p", { class: "note muted" }, h("a", { href: `${flowHash(flow.flow, "lanes")}?search=${encodeURIComponent(topic)}` }, `and ${many(more, "lane")} more`))];
}
