// The map of clusters and flows, drawn with live rates.

import { h } from "./tree.js";
import { layout, pathOf, placeLabels, portOf } from "./map_layout.js";
import { flowHash } from "./route.js";
import { brief, count, lasting, many, sizePerSecond } from "./words.js";
import { isQuiet, stateOfFlow, toneOfFlow } from "./tones.js";

const WIDE = { w: 172, h: 62, gapX: 230, gapY: 52 };
const NARROW = { w: 122, h: 66, gapX: 170, gapY: 44 };
const MARGIN = 12;

/** `room`: pixels that the map may take across. */
export function map(flows, clusters, room) {
  const wide = room >= 640;
  const ways = new Set(flows.map((flow) => flow.flow));
  const pairs = flows.some((flow) => ways.has(`${flow.target}->${flow.source}`));
  const box = roomFor(wide ? WIDE : NARROW, pairs);
  const names = [...new Set([...clusters.map((cluster) => cluster.alias), ...flows.flatMap((flow) => [flow.source, flow.target])])].sort();
  if (!names.length) return null;
  const place = layout(names, flows, box, wide);
  const lines = flows.map((flow) => {
    const both = ways.has(`${flow.target}->${flow.source}`);
    const [source, target] = [place.nodes.get(flow.source), place.nodes.get(flow.target)];
    const [from, to] = [portOf(source, target, box), portOf(target, source, box)];
    // Two lines of one pair keep as much apart as their labels need: more where they stand side by side.
    const steep = Math.abs(to.y - from.y) > Math.abs(to.x - from.x);
    const path = pathOf(from, to, box, both ? (steep ? (wide ? 40 : 30) : wide ? 28 : 46) : 0);
    return { flow, path, label: labelOf(flow, path, both ? 0.38 : 0.5, wide) };
  });
  const labels = placeLabels(lines.map(({ label }) => label), place.nodes);
  const drawn = lines.map((one, index) => ({ ...one, label: labels[index] }));
  const view = bounds(place, drawn);
  const scale = Math.min(1, room / view.width);
  return h("div", { class: "map" },
    h("svg", {
      viewBox: `${view.left} ${view.top} ${view.width} ${view.height}`, width: Math.round(view.width * scale), height: Math.round(view.height * scale),
      role: "group", "aria-label": `Map of ${many(names.length, "cluster")} and ${many(flows.length, "flow")}`,
    },
      drawn.map(({ flow, path }) => line(flow, path)),
      names.map((name) => node(name, place.nodes.get(name), box, flows, clusters.find((cluster) => cluster.alias === name))),
      drawn.map(({ flow, label }) => tag(flow, label))));
}

/** Where flows go both ways their labels need more room between the rows. */
const roomFor = (box, pairs) => (pairs ? { ...box, gapY: box.gapY + 26 } : box);

/** All that is drawn, labels too. */
function bounds(place, drawn) {
  const labels = drawn.map(({ label }) => label);
  const left = Math.min(0, ...labels.map((label) => label.x - label.width / 2)) - MARGIN;
  const top = Math.min(0, ...labels.map((label) => label.y - label.height / 2)) - MARGIN;
  const right = Math.max(place.width, ...labels.map((label) => label.x + label.width / 2)) + MARGIN;
  const bottom = Math.max(place.height, ...labels.map((label) => label.y + label.height / 2)) + MARGIN;
  return { left: Math.floor(left), top: Math.floor(top), width: Math.ceil(right - left), height: Math.ceil(bottom - top) };
}

function line(flow, path) {
  const tone = toneOfFlow(flow);
  const rate = flow.bytes_per_s ?? 0;
  const moving = rate > 0 && !isQuiet(flow.state);
  const thick = moving ? Math.min(5, 1.4 + Math.log10(1 + rate / 1000) * 0.75) : 1.4;
  // More bytes move faster, on a scale on which a kilobyte and a gigabyte can both be seen.
  const seconds = moving ? (2.6 - Math.min(2, Math.log10(1 + rate / 1000) * 0.36)).toFixed(1) : "0";
  return h("g", { key: `line ${flow.flow}`, class: `way ${tone}${moving ? " moving" : ""}` },
    h("path", { d: path.text, class: "track", "stroke-width": thick.toFixed(1) }),
    moving && h("path", { d: path.text, class: "pulse", "stroke-width": thick.toFixed(1), style: { "animation-duration": `${seconds}s` } }),
    h("path", { d: "M-7 -4.5L1.5 0L-7 4.5Z", class: "head", transform: `translate(${path.end.x.toFixed(1)} ${path.end.y.toFixed(1)}) rotate(${path.angle.toFixed(1)})` }));
}

/** Words, size and wanted place of a flow's label: near its source where the other direction has a label too. */
function labelOf(flow, path, along, wide) {
  const quiet = isQuiet(flow.state);
  const rate = quiet ? flow.state : sizePerSecond(flow.bytes_per_s);
  const lag = flow.lag_records ? `lag ${brief(flow.lag_records)}` : quiet ? "" : "no lag";
  const texts = (wide ? [rate, lag] : [rate]).filter(Boolean);
  const width = Math.max(...texts.map((text) => text.length)) * (wide ? 6.7 : 6.2) + 16;
  return { path, along, texts, width, height: texts.length * 14 + 8 };
}

function tag(flow, { x, y, texts, width, height }) {
  const said = `Flow ${flow.source} to ${flow.target}: ${stateOfFlow(flow)}, ${sizePerSecond(flow.bytes_per_s)}, ${count(flow.records_per_s)} records per second, `
    + (flow.lag_records === null ? "lag not known" : `lag ${count(flow.lag_records)} records, ${lasting(flow.lag_ms)}`);
  return h("a", { key: `label ${flow.flow}`, href: flowHash(flow.flow), class: `tag ${flow.lanes_by_state?.parked ? "bad" : toneOfFlow(flow)}`, "aria-label": said },
    h("title", null, said),
    h("rect", { x: (x - width / 2).toFixed(1), y: (y - height / 2).toFixed(1), width: width.toFixed(1), height, rx: 6 }),
    texts.map((text, index) => h("text", {
      x: x.toFixed(1), y: (y - height / 2 + 15.5 + index * 14).toFixed(1), class: index ? "small" : "rate", "text-anchor": "middle",
    }, text)),
    flow.lanes_by_state?.parked ? h("circle", { cx: (x + width / 2 - 2).toFixed(1), cy: (y - height / 2 + 2).toFixed(1), r: 4.5, class: "alarm" }) : null);
}

function node(name, at, box, flows, cluster) {
  const into = flows.filter((flow) => flow.target === name);
  const out = flows.filter((flow) => flow.source === name);
  const trouble = cluster?.trouble;
  const sum = (list) => list.reduce((total, flow) => total + (flow.bytes_per_s ?? 0), 0);
  const facts = [out.length ? `↗ ${sizePerSecond(sum(out))}` : "", into.length ? `↘ ${sizePerSecond(sum(into))}` : ""].filter(Boolean);
  const lines = box.w < 150 ? facts : [facts.join("   ")];
  const top = at.y - (lines.length > 1 ? 14 : 9);
  const left = at.x - box.w / 2;
  return h("g", { key: `node ${name}`, class: `node${trouble ? " bad" : ""}`, role: "img", "aria-label": `Cluster ${name}${trouble ? `: ${trouble}` : ""}` },
    h("title", null, [name, cluster?.bootstrap, trouble].filter(Boolean).join("\n")),
    h("rect", { x: (at.x - at.w / 2).toFixed(1), y: (at.y - at.h / 2).toFixed(1), width: at.w, height: at.h, rx: 9 }),
    h("circle", { cx: (left + 16).toFixed(1), cy: top.toFixed(1), r: 4 }),
    h("text", { x: (left + 27).toFixed(1), y: (top + 4.5).toFixed(1), class: "name" }, short(name, box.w < 150 ? 12 : 18)),
    lines.map((text, index) => h("text", { x: (left + 12).toFixed(1), y: (top + 25 + index * 15).toFixed(1), class: "small" }, text || "no flow")));
}

const short = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);
