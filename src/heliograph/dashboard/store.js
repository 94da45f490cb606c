// What the page knows: fed by the stream of views, asked by the views. One object, changed here alone.

import { address, get } from "./api.js";

const SILENT_MS = 6_000;
const RETRY_MS = [500, 1_000, 2_000, 4_000, 8_000];
const EVENTS_KEPT = 1_000;
const AFTER_FAILURE_MS = 10_000;
const POINTS_KEPT = 720;

export const state = {
  run: {},
  flows: new Map(),
  events: [],
  lanes: null,
  link: { live: false, since: Date.now(), heard: 0, age: 0, tries: 0, reason: "" },
  known: false,
};

const watchers = new Set();
/** `watcher` is called once per frame in which something changed. */
export const watch = (watcher) => watchers.add(watcher);
let due = false;
export function changed() {
  if (due) return;
  due = true;
  // Not by animation frames: a page that nobody sees still has to be right when it is looked at by a program.
  setTimeout(() => {
    due = false;
    for (const watcher of watchers) watcher();
  }, 16);
}

/** Milliseconds since the driver last said something, as far as can be told from here. */
export const ageMs = () => (state.link.heard ? Date.now() - state.link.heard + state.link.age : null);

// -- the stream ---------------------------------------------------------------------------------------------------------

let source = null;
let wanted = "";
let page = "";
let timer = 0;

/** Which lanes the stream brings along: an object of query parameters, or null; `also` are lanes that are wanted beside the page. */
export function follow(query, also = []) {
  const given = query ?? {};
  const url = String(address(["stream"], { ...given, also: also.join(",") }));
  if (url === wanted) return;
  wanted = url;
  const asked = JSON.stringify(given);
  if (state.lanes && asked !== page) state.lanes.stale = true;
  page = asked;
  if (!query) state.lanes = null;
  else if (state.lanes?.flow !== query.flow) state.lanes = { flow: query.flow, total: 0, matched: 0, order: [], rows: new Map(), also: new Set(), stale: true, known: false };
  if (state.lanes) state.lanes.also = new Set(also.map((lane) => `${query.flow}/${lane}`));
  open();
}

function open() {
  clearTimeout(timer);
  source?.close();
  source = null;
  if (!wanted || document.hidden) return;
  const mine = (source = new EventSource(wanted));
  let first = true;
  mine.addEventListener("view", (message) => {
    if (mine !== source) return;
    take(JSON.parse(message.data), first);
    first = false;
  });
  // A refusal ends an EventSource for good, and its own retries do not grow: it is closed and opened anew here.
  mine.onerror = () => mine === source && lost("the server does not answer");
}

function lost(reason) {
  source?.close();
  source = null;
  const { link } = state;
  if (link.live || !link.reason) link.since = Date.now();
  link.live = false;
  link.reason = reason;
  clearTimeout(timer);
  timer = setTimeout(open, RETRY_MS[Math.min(link.tries, RETRY_MS.length - 1)]);
  link.tries += 1;
  changed();
}

document.addEventListener("visibilitychange", () => {
  // Browsers allow six connections to a host: pages that nobody looks at must not hold one each.
  if (document.hidden) {
    source?.close();
    source = null;
    clearTimeout(timer);
  } else open();
});

setInterval(() => {
  const { link } = state;
  if (source && link.live && Date.now() - link.heard > SILENT_MS) lost("nothing was heard from the server");
  else if (!document.hidden) changed(); // ages grow
}, 1_000);

function take(view, first) {
  const { link } = state;
  if (first && Date.now() - link.heard > 10_000) for (const chart of charts.values()) chart.asked = false; // the gap is known there
  Object.assign(link, { live: true, heard: Date.now(), age: view.age_ms ?? 0, tries: 0, reason: "" });
  state.known = true;
  if (first) {
    state.flows = new Map();
    state.run = {};
  }
  Object.assign(state.run, view.run ?? {});
  for (const row of view.flows ?? []) state.flows.set(row.flow, Object.assign(state.flows.get(row.flow) ?? {}, row));
  for (const name of view.gone ?? []) state.flows.delete(name);
  if (view.flows?.length || view.gone?.length) state.flows = new Map([...state.flows].sort(([a], [b]) => (a < b ? -1 : 1)));
  if (view.events?.length) state.events = joined(state.events, view.events);
  if (view.lanes && state.lanes) takeLanes(view.lanes, first);
  for (const row of state.flows.values()) chartOn(row, view.time_ms);
  changed();
}

const told = (event) => `${event.time_ms} ${event.flow} ${event.subject} ${event.kind} ${event.reason}`;

/** Both lists of events in one, each event once, oldest first. */
export function joined(some, more) {
  const found = new Map();
  for (const event of [...some, ...more]) found.set(told(event), event);
  return [...found.values()].sort((a, b) => a.time_ms - b.time_ms).slice(-EVENTS_KEPT);
}

function takeLanes(news, first) {
  const { lanes } = state;
  const rows = first ? new Map() : lanes.rows;
  for (const [key, fields] of Object.entries(news.rows ?? {})) rows.set(key, { ...rows.get(key), ...fields });
  const order = news.order ?? lanes.order;
  const wantedKeys = new Set([...order, ...lanes.also]);
  for (const key of [...rows.keys()]) if (!wantedKeys.has(key)) rows.delete(key);
  Object.assign(lanes, { rows, order, stale: false, known: true, total: news.total ?? lanes.total, matched: news.matched ?? lanes.matched });
}

// -- answers that are asked for while a view shows them -------------------------------------------------------------------

const answers = new Map();

/** {value, error, at} of a GET; asked again when older than `everyMs` each time a view asks for it, and sooner after a failure. */
export function answer(parts, query = {}, everyMs = 5_000) {
  const key = String(address(parts, query));
  const known = answers.get(key) ?? { value: undefined, error: null, at: 0, asking: false };
  answers.set(key, known);
  if (!known.asking && Date.now() - known.at > (known.error ? Math.min(everyMs, AFTER_FAILURE_MS) : everyMs)) ask(known, parts, query);
  return known;
}

async function ask(known, parts, query) {
  known.asking = true;
  try {
    known.value = await get(parts, query);
    known.error = null;
  } catch (error) {
    known.error = error;
  } finally {
    Object.assign(known, { asking: false, at: Date.now() });
    changed();
  }
}

/** Something was written: what is shown may be old. */
export function askAgain() {
  for (const known of answers.values()) known.at = 0;
  changed();
}

// -- the last hour --------------------------------------------------------------------------------------------------------

const charts = new Map();
const SERIES = ["records_per_s", "bytes_per_s", "lag_records", "lag_ms", "latency_p50_ms", "latency_p99_ms"];

/** Series of a flow: what the server kept of the last hour, and what came since. */
export function hour(flow) {
  let chart = charts.get(flow);
  if (!chart) {
    chart = { time_ms: [], asked: false, failed: 0 };
    for (const name of SERIES) chart[name] = [];
    charts.set(flow, chart);
  }
  if (!chart.asked && Date.now() - chart.failed > 5_000) load(flow, chart);
  return chart;
}

async function load(flow, chart) {
  chart.asked = true;
  try {
    const kept = await get(["history"], { flow, seconds: 3600 });
    for (const name of ["time_ms", ...SERIES]) chart[name] = [...(kept[name] ?? [])];
    changed();
  } catch {
    Object.assign(chart, { asked: false, failed: Date.now() });
  }
}

function chartOn(row, timeMs) {
  const chart = charts.get(row.flow);
  if (!chart || !timeMs || timeMs - (chart.time_ms.at(-1) ?? 0) < 5_000) return;
  const now = { ...row, latency_p50_ms: row.latency_ms?.p50 ?? null, latency_p99_ms: row.latency_ms?.p99 ?? null };
  chart.time_ms.push(timeMs);
  for (const name of SERIES) chart[name].push(now[name] ?? null);
  if (chart.time_ms.length > POINTS_KEPT) for (const name of ["time_ms", ...SERIES]) chart[name].shift();
}
