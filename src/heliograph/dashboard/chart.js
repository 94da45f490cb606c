// Charts of the last hour: lines over time, drawn as SVG, with a reading under the pointer that all charts of a view share.

import { h } from "./tree.js";
import { changed } from "./store.js";
import { clock } from "./words.js";

const LEFT = 62;
const LETTER = 6.3; // the width of one in labels of 11 px, generously
const RIGHT = 10;
const TOP = 8;
const BOTTOM = 20;
let pointed = null; // a time that all charts read

/** `lines`: [{values, tone, name, area}]; `say` turns a value into words, `top` finds the top of the scale. */
export function chart({ title, times, lines, say, width, height = 150, step = 1000, top = niceMost, note }) {
  const shown = times.length > 1;
  const last = times.length - 1;
  const index = pointed === null ? last : nearest(times, pointed);
  const reading = pointed !== null && shown ? clock(times[index]) : "now";
  return h("figure", { class: "chart" },
    h("figcaption", null,
      h("span", { class: "chart-title" }, title),
      h("span", { class: "chart-now" }, lines.map((line) => h("span", { class: `key ${line.tone}` },
        h("i", null), line.name && h("span", { class: "muted" }, line.name), h("b", null, shown ? say(line.values[index]) : "–"))),
      h("span", { class: "muted at" }, reading))),
    shown ? plot({ title, times, lines, say, width, height, step, top, index }) : h("div", { class: "chart-empty", style: { height: `${height}px` } }, note ?? "The first minutes are being gathered."));
}

function plot({ title, times, lines, say, width, height, step, top, index }) {
  const end = times.at(-1);
  const start = Math.min(end - 300_000, Math.max(times[0], end - 3_600_000));
  const most = top(Math.max(...lines.flatMap((line) => line.values.filter((value) => value !== null)), 0), step);
  const labels = [0, 0.5, 1].map((share) => (share ? say(most * share).replace(/\.0+(?= |$)/, "") : "0"));
  const edge = Math.max(LEFT, Math.ceil(Math.max(...labels.map((label) => label.length)) * LETTER) + 12);
  const x = (time) => edge + ((time - start) / (end - start)) * (width - edge - RIGHT);
  const y = (value) => height - BOTTOM - (value / most) * (height - TOP - BOTTOM);
  const point = (event) => {
    const left = event.currentTarget.getBoundingClientRect().left;
    const at = start + ((event.clientX - left - edge) / (width - edge - RIGHT)) * (end - start);
    pointed = at > end ? null : at;
    changed();
  };
  const leave = () => {
    pointed = null;
    changed();
  };
  const summary = lines.map((line) => `${line.name || title}: now ${say(line.values.at(-1))}, at most ${say(Math.max(...line.values.map((value) => value ?? 0)))}`).join("; ");
  return h("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${title}, last hour. ${summary}`, onpointermove: point, onpointerleave: leave },
    [0, 0.5, 1].map((share, place) => h("g", { class: "grid" },
      h("line", { x1: edge, x2: width - RIGHT, y1: y(most * share), y2: y(most * share) }),
      h("text", { x: edge - 8, y: y(most * share) + 3.5, "text-anchor": "end" }, labels[place]))),
    marks(start, end, width).map((time) => h("text", { class: "tick", x: x(time), y: height - 5, "text-anchor": "middle" }, clock(time).slice(0, 5))),
    lines.map((line) => {
      const [at, values, gap] = thinned(times, line.values, Math.floor(width / 3), line.by);
      const text = pathThrough(at, values, x, y, start, gap);
      return h("g", { class: `series ${line.tone}` },
        line.area && text && h("path", { class: "area", d: areaUnder(text, y) }),
        h("path", { class: "line", d: text }));
    }),
    pointed !== null && h("line", { class: "cursor", x1: x(times[index]), x2: x(times[index]), y1: TOP, y2: height - BOTTOM }),
    lines.map((line) => line.values[index] !== null && line.values[index] !== undefined && times[index] >= start
      && h("circle", { class: `dot ${line.tone}`, cx: x(times[index]), cy: y(line.values[index]), r: 3 })));
}

/** As many points as can be told apart (of a rate their mean, of what must not be missed, `by` is "most", the largest), and what is a gap between them. */
function thinned(times, values, most, by) {
  const step = Math.ceil(times.length / most);
  const gap = Math.max(30_000, step * 7_500);
  if (step < 2) return [times, values, gap];
  const [at, found] = [[], []];
  // Groups end at the same points at every look, so that the line moves and does not flicker.
  for (let end = times.length - (Math.floor(times.at(-1) / 5_000) % step); end > 0; end -= step) {
    const piece = values.slice(Math.max(0, end - step), end).filter((value) => value !== null && value !== undefined);
    at.unshift(times[end - 1]);
    found.unshift(!piece.length ? null : by === "most" ? Math.max(...piece) : piece.reduce((sum, value) => sum + value, 0) / piece.length);
  }
  if (at.at(-1) !== times.at(-1)) {
    at.push(times.at(-1));
    found.push(values.at(-1));
  }
  return [at, found, gap];
}

/** Gaps stay gaps: where there was no value, or none for longer than `gap`, the line is broken. */
function pathThrough(times, values, x, y, start, gap) {
  let text = "";
  let pen = false;
  for (let place = 0; place < times.length; place += 1) {
    if (times[place] < start) continue;
    if (values[place] === null || values[place] === undefined || (pen && times[place] - times[place - 1] > gap)) pen = false;
    if (values[place] === null || values[place] === undefined) continue;
    text += `${pen ? "L" : "M"}${x(times[place]).toFixed(1)} ${y(values[place]).toFixed(1)}`;
    pen = true;
  }
  return text;
}

function areaUnder(path, y) {
  return path.split("M").filter(Boolean).map((piece) => {
    const points = piece.split("L");
    const from = points[0].split(" ")[0];
    const to = points.at(-1).split(" ")[0];
    return `M${piece}L${to} ${y(0).toFixed(1)}L${from} ${y(0).toFixed(1)}Z`;
  }).join("");
}

/** The top of the scale: 1, 2, 4, 5 or 10 of a power of ten, at least `least`. */
export function niceMost(most, least) {
  const wanted = Math.max(most * 1.08, least);
  const power = 10 ** Math.floor(Math.log10(wanted));
  for (const times of [1, 2, 4, 5, 10]) if (times * power >= wanted) return times * power;
  return 10 * power;
}

const MINUTE = 60_000;
const TIMES = [10_000, 20_000, 30_000, MINUTE, 2 * MINUTE, 4 * MINUTE, 10 * MINUTE, 20 * MINUTE, 30 * MINUTE, 60 * MINUTE, 120 * MINUTE, 240 * MINUTE, 720 * MINUTE, 1440 * MINUTE];

/** The same for milliseconds: above some seconds people count in minutes and hours, and so do the top and its half. */
export function niceTime(most, least) {
  const wanted = Math.max(most * 1.08, least);
  if (wanted <= 5_000) return niceMost(most, least);
  return TIMES.find((time) => time >= wanted) ?? Math.ceil(wanted / (2880 * MINUTE)) * 2880 * MINUTE;
}

function marks(start, end, width) {
  const minutes = [1, 5, 10, 15, 20, 30].find((step) => ((end - start) / 60_000 / step) * 64 < width - LEFT) ?? 60;
  const step = minutes * 60_000;
  const found = [];
  for (let time = Math.ceil(start / step) * step; time < end; time += step) found.push(time);
  return found.filter((time) => time - start > step * 0.15);
}

function nearest(times, time) {
  let best = times.length - 1;
  for (let place = 0; place < times.length; place += 1) if (Math.abs(times[place] - time) < Math.abs(times[best] - time)) best = place;
  return best;
}

/** A line of the last minutes without scale or words. */
export function spark(times, values, width = 96, height = 22) {
  const from = Math.max(0, times.length - 120);
  const shown = values.slice(from).map((value) => value ?? 0);
  if (shown.length < 2) return h("svg", { class: "spark", width, height, "aria-hidden": "true" });
  const most = Math.max(...shown, 1);
  const text = shown.map((value, place) => `${place ? "L" : "M"}${((place / (shown.length - 1)) * (width - 2) + 1).toFixed(1)} ${(height - 2 - (value / most) * (height - 4)).toFixed(1)}`).join("");
  return h("svg", { class: "spark", width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" }, h("path", { class: "under", d: `${text}L${width - 1} ${height}L1 ${height}Z` }), h("path", { d: text }));
}
