// Numbers, sizes and times as people read them. Pure.

const whole = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
export const NONE = "–";

export const count = (n) => (n === null || n === undefined || Number.isNaN(n) ? NONE : whole.format(n));

/** 12,345 lanes; 1 lane. */
export const many = (n, noun) => `${count(n)} ${noun}${n === 1 ? "" : "s"}`;

/** Three digits that matter, with a unit: 1.24 M. Below ten thousand every digit is shown. */
export function brief(n) {
  if (n === null || n === undefined) return NONE;
  if (Math.abs(n) < 10_000) return count(n);
  return scaled(n, 1000, ["", "k", "M", "G", "T"], " ");
}

export function size(n) {
  if (n === null || n === undefined) return NONE;
  return n < 1000 ? `${count(n)} B` : scaled(n, 1000, ["B", "kB", "MB", "GB", "TB", "PB"], " ");
}

function scaled(n, step, units, gap) {
  let place = 0;
  let value = n;
  while (Math.abs(value) >= 999.5 && place < units.length - 1) {
    value /= step;
    place += 1;
  }
  const digits = Math.abs(value) >= 100 || place === 0 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  return `${value.toFixed(digits)}${units[place] ? gap + units[place] : ""}`;
}

export const sizePerSecond = (n) => (n ? `${size(n)}/s` : "0 B/s");

/** 24 ms, 3.2 s, 4 min 10 s, 2 h 5 min, 3 d 4 h. */
export function lasting(ms) {
  if (ms === null || ms === undefined) return NONE;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const s = ms / 1000;
  if (s < 9.95) return `${s.toFixed(1)} s`;
  if (s < 60) return `${Math.floor(s)} s`;
  for (const [unit, length, small, smallLength] of [["d", 86400, "h", 3600], ["h", 3600, "min", 60], ["min", 60, "s", 1]]) {
    if (s >= length) {
      const rest = Math.floor((s % length) / smallLength);
      return `${Math.floor(s / length)} ${unit}${rest ? ` ${rest} ${small}` : ""}`;
    }
  }
  return NONE;
}

/** How long something lasts already, to the second: "12 s". */
export function since(thenMs, nowMs) {
  const seconds = Math.max(1, Math.floor((nowMs - thenMs) / 1000));
  return seconds < 60 ? `${seconds} s` : lasting(seconds * 1000);
}

/** 604800000 of retention.ms is 7 d; nothing where the number says it itself. */
export function meant(name, text) {
  const n = /^\d+$/.test(text) ? Number(text) : 0;
  if (n > 9e15) return "";
  if (n >= 1000 && name.endsWith("ms")) return `  ${lasting(n)}`;
  if (n >= 60 && name.endsWith("seconds")) return `  ${lasting(n * 1000)}`;
  return n < 1000 ? "" : name.endsWith("bytes.per.second") ? `  ${size(n)}/s` : /bytes$/.test(name) ? `  ${size(n)}` : "";
}

const two = (n) => String(n).padStart(2, "0");
export function clock(ms) {
  const at = new Date(ms);
  return `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}
export function moment(ms) {
  const at = new Date(ms);
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${clock(ms)}`;
}
/** The time of today, the day too for what is older. */
export const when = (ms, nowMs) => (nowMs - ms < 12 * 3600_000 ? clock(ms) : moment(ms));

export const signed = (n) => (n === null || n === undefined ? NONE : n > 0 ? `+${count(n)}` : n < 0 ? `−${count(-n)}` : "0");
