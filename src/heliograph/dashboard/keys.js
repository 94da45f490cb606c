// The keyboard: everything that a pointer can do.

import { h } from "./tree.js";
import { isOpen, tell } from "./dialogs.js";
import { routeOf, requery } from "./route.js";
import { changed } from "./store.js";

const HELP = [
  ["/", "search in this view"],
  ["↑ ↓", "move along the rows of a table; Home and End to the first and last"],
  ["Enter", "open the row"],
  ["Esc", "close, clear the search, or go one step up"],
  ["[ ]", "previous and next page of a table"],
  ["1 … 5", "the parts of a flow"],
  ["o e p s", "overview, events, plan, settings"],
  ["t", "dark or light"],
  ["?", "these keys"],
];

export const help = () => tell("Keys", h("dl", { class: "keys" }, HELP.flatMap(([key, text]) => [h("dt", null, key.split(" ").map((one) => h("kbd", null, one))), h("dd", null, text)])));

const typing = (el) => el instanceof HTMLElement && (el.matches("input, textarea, select") || el.isContentEditable);

export function listen() {
  addEventListener("keydown", (event) => {
    if (isOpen() || event.ctrlKey || event.metaKey || event.altKey) return;
    if (typing(event.target)) return inField(event);
    const act = ACTS[event.key];
    if (act?.(event) !== false && act) event.preventDefault();
  });
}

function inField(event) {
  if (!event.target.matches("[data-search]")) return;
  if (event.key === "Escape") {
    if (event.target.value) requery({ search: "", offset: "" });
    event.target.value = "";
    event.target.blur();
    event.preventDefault();
  } else if (event.key === "ArrowDown" || event.key === "Enter") {
    rows()[0]?.focus();
    event.preventDefault();
  }
}

const rows = () => [...document.querySelectorAll("main table[data-rows] tbody tr")];

function move(step) {
  const all = rows();
  const at = all.indexOf(document.activeElement);
  if (!all.length) return false;
  if (at < 0) {
    if (typing(document.activeElement) || document.activeElement?.matches("a, button, summary")) return false;
    all[0].focus();
  } else all[Math.min(all.length - 1, Math.max(0, at + step))].focus();
  return true;
}

function up() {
  const { parts, query } = routeOf(location.hash);
  if (query.lane) requery({ lane: "" });
  else if (query.search) requery({ search: "", offset: "" });
  else if (parts.length > 2) location.hash = `#/${parts.slice(0, parts.length === 3 ? 2 : 3).map(encodeURIComponent).join("/")}`;
  else if (parts.length) location.hash = "#/";
  else return false;
  return true;
}

const page = (step) => () => {
  document.querySelectorAll(".pager button")[step]?.click();
};
const tab = (index) => () => {
  const link = document.querySelectorAll(".tabs a")[index];
  if (!link) return false;
  location.hash = link.getAttribute("href");
  return true;
};

const ACTS = {
  "/": () => {
    const field = document.querySelector("[data-search]");
    field?.focus();
    field?.select();
  },
  ArrowDown: () => move(1),
  ArrowUp: () => move(-1),
  Home: () => move(-1e6),
  End: () => move(1e6),
  Escape: up,
  "[": page(0),
  "]": page(1),
  1: tab(0), 2: tab(1), 3: tab(2), 4: tab(3), 5: tab(4),
  o: () => { location.hash = "#/"; },
  e: () => { location.hash = "#/events"; },
  p: () => { location.hash = "#/plan"; },
  s: () => { location.hash = "#/settings"; },
  t: () => { window.heliographTheme.turn(); changed(); },
  "?": help,
};
