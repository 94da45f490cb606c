// One flow: its state, its charts, and the parts behind its tabs.

import { h } from "./tree.js";
import { hour, state } from "./store.js";
import { flowHash } from "./route.js";
import { chart, niceTime } from "./chart.js";
import { badge, button, empty, panel, stat, tabs } from "./parts.js";
import { brief, count, lasting, many, moment, since, size, sizePerSecond } from "./words.js";
import * as actions from "./actions.js";
import { lanesView, worstLanes } from "./lanes.js";
import { topicsView, topicView } from "./topics.js";
import { groupsView } from "./groups.js";
import { eventRows, eventsOf } from "./events.js";
import { lanesBar } from "./overview.js";
import { stateOfFlow, toneOfFlow } from "./tones.js";
import { isSeen, turns, unseen } from "./turns.js";

export function flowView(route, name) {
  const flow = state.flows.get(name);
  if (!flow) return empty(`There is no flow ${name}`, "It may have been removed, or the run has not planned it yet.", h("a", { class: "button", href: "#/" }, "Overview"));
  const part = route.parts[2] ?? "";
  return [
    head(flow),
    holds(flow),
    tabs([["", "Overview"], ["lanes", "Lanes", isSeen(flow) ? count(flow.lanes) : null], ["topics", "Topics", isSeen(flow) ? count(flow.topics) : null], ["groups", "Groups"], ["events", "Events"]], part, ["flows", name]),
    body(route, flow, part),
  ];
}

function body(route, flow, part) {
  if (!isSeen(flow) && ["lanes", "topics", "groups"].includes(part)) return panel(null, null, unseen(flow));
  if (part === "lanes") return lanesView(route, flow);
  if (part === "topics") return route.parts[3] === undefined ? topicsView(route, flow) : topicView(route, flow, route.parts[3]);
  if (part === "groups") return groupsView(route, flow);
  if (part === "events") return panel(null, null, eventRows(eventsOf(flow.flow).slice(-200).reverse(), { flow: false }));
  return flowOverview(flow);
}

function head(flow) {
  const held = (flow.holds ?? []).some((hold) => hold.topic === null || hold.topic === undefined || hold.topic === "");
  return h("div", { class: "title", key: "title" },
    h("h1", null, h("span", null, flow.source), h("span", { class: "to", "aria-label": "to" }, "→"), h("span", null, flow.target)),
    badge(stateOfFlow(flow), toneOfFlow(flow)),
    flow.throttle_bytes_per_s > 0 && h("span", { class: "badge warn" }, h("i", null), `at most ${sizePerSecond(flow.throttle_bytes_per_s)}`),
    flow.origin === "rest" && h("span", { class: "badge still", title: "made by a request, not by the file" }, "by REST"),
    h("span", { class: "space" }),
    flow.state !== "standby" && h("div", { class: "buttons", role: "group", "aria-label": "Change this flow" },
      held ? button("Resume", () => actions.resume(flow.flow), { tone: "main", key: "resume" }) : button("Pause", () => actions.pause(flow.flow), { key: "pause" }),
      !held && button("Drain", () => actions.drain(flow.flow), { key: "drain" }),
      button("Throttle", () => actions.throttle(flow.flow, flow.throttle_bytes_per_s ?? 0), { key: "throttle" }),
      button("Add topic", () => actions.addTopic(flow.flow), { key: "add" })));
}

/** Who stopped what, and why: the first thing to read. */
function holds(flow) {
  const now = Date.now();
  return [
    flow.state === "trouble" && h("p", { class: "notice bad", key: "trouble", role: "alert" }, h("b", null, "In trouble"), flow.since_ms ? ` for ${since(flow.since_ms, now)}: ` : ": ", flow.reason),
    turns(flow),
    ...(flow.holds ?? []).slice(0, 5).map((hold) => h("p", { class: "notice warn", key: `hold ${hold.subject}` },
      h("b", null, hold.kind === "drain" ? "Draining " : "Paused ", hold.subject),
      hold.since_ms ? ` since ${moment(hold.since_ms)}` : "", hold.who ? ` by ${hold.who}` : "", hold.reason ? `: ${hold.reason}` : "",
      (hold.topic ?? "") !== "" && h("button", { type: "button", class: "inline", onclick: () => actions.resume(flow.flow, hold.topic, hold.partition ?? undefined) }, "Resume"))),
  ];
}

function flowOverview(flow) {
  const kept = hour(flow.flow);
  const room = document.documentElement.clientWidth;
  const columns = room >= 1180 ? 3 : 1;
  const width = Math.floor((Math.min(room, 1440) - (room < 720 ? 24 : 40) - (columns - 1) * 14) / columns - 30);
  const latency = (value) => (value === null || value === undefined ? "–" : lasting(value));
  const events = panel("Latest events", h("a", { href: flowHash(flow.flow, "events") }, "all of this flow"), eventRows(eventsOf(flow.flow).slice(-5).reverse(), { flow: false }));
  if (!isSeen(flow)) return [panel(null, null, unseen(flow)), events];
  return [
    facts(flow),
    h("section", { class: "charts", key: "charts", "aria-label": "The last hour" },
      chart({ title: "Rate", times: kept.time_ms, width, say: sizePerSecond, lines: [{ values: kept.bytes_per_s, tone: "one", area: true }] }),
      chart({ title: "Lag", times: kept.time_ms, width, say: brief, step: 10, lines: [{ values: kept.lag_records, tone: "two", area: true, by: "most" }] }),
      chart({ title: "Latency", times: kept.time_ms, width, say: latency, step: 10, top: niceTime, lines: [{ values: kept.latency_p50_ms, tone: "one", name: "p50" }, { values: kept.latency_p99_ms, tone: "three", name: "p99", by: "most" }] })),
    panel("Furthest behind", h("a", { href: flowHash(flow.flow, "lanes") }, "all lanes"), worstLanes(flow)),
    events,
  ];
}

function facts(flow) {
  const parked = flow.lanes_by_state?.parked ?? 0;
  const batches = flow.raw_batches + flow.rebuilt_batches;
  const raw = batches ? `${((100 * flow.raw_batches) / batches).toFixed(flow.rebuilt_batches && flow.raw_batches ? 1 : 0)} % as they are` : "none yet";
  return h("dl", { class: "stats", key: "facts" },
    stat("Throughput", sizePerSecond(flow.bytes_per_s), `${brief(flow.records_per_s)} records/s`),
    stat("Lag", count(flow.lag_records), `records, ${lasting(flow.lag_ms)} behind`),
    stat("Latency", flow.latency_ms?.p50 === null || flow.latency_ms?.p50 === undefined ? "–" : lasting(flow.latency_ms.p50), `p50, p99 ${lasting(flow.latency_ms?.p99)}`),
    stat("Lanes", count(flow.lanes), parked ? h("a", { href: `${flowHash(flow.flow, "lanes")}?state=parked` }, `${many(parked, "lane")} parked`) : lanesBar(flow.lanes_by_state, flow.lanes), parked ? "bad" : ""),
    stat("Copied", brief(flow.records), `records, ${size(flow.bytes)}`),
    stat("Batches", brief(batches), `${raw}${flow.dropped_batches ? `, ${brief(flow.dropped_batches)} dropped` : ""}`),
    (flow.at_risk_records ?? flow.lag_records) !== flow.lag_records && stat("At risk", brief(flow.at_risk_records), `records, ${lasting((flow.at_risk_seconds ?? 0) * 1000)}, if ${flow.source} died now`),
    flow.bottleneck && stat("Bottleneck", h("span", { class: "words", title: flow.bottleneck }, flow.bottleneck), "what keeps it from being faster"));
}
