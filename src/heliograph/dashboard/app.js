// The frame of the page: heading, news of the connection, the view that the address names.

import { h, show } from "./tree.js";
import { ageMs, changed, follow, state, watch } from "./store.js";
import { flowHash, routeOf } from "./route.js";
import { lasting, many, since } from "./words.js";
import { help, listen } from "./keys.js";
import { overview } from "./overview.js";
import { flowView } from "./flow.js";
import { lanesAlso, lanesQuery } from "./lanes.js";
import { eventsView } from "./events.js";
import { planView } from "./plan.js";
import { settingsView } from "./settings.js";
import { empty } from "./parts.js";

const OLD_MS = 5_000;
const VIEWS = { events: eventsView, plan: planView, settings: settingsView };
const root = document.getElementById("page");
let shownHash = "";
let shownTab;

function draw() {
  const route = routeOf(location.hash);
  follow(lanesQuery(route), lanesAlso(route));
  document.title = [...route.parts.slice(route.parts[0] === "flows" ? 1 : 0), "Heliograph"].join(" · ");
  show(root,
    h("a", { class: "skip", href: location.hash || "#/", onclick: skip }, "Skip to the content"),
    heading(route),
    banner(),
    h("main", { id: "main", tabindex: -1, key: "main" }, view(route)),
    foot());
  bringTab();
}

/** Where tabs do not fit, the one that is shown is scrolled to, once. */
function bringTab() {
  const tab = document.querySelector(".tabs [aria-current]");
  if (tab?.href !== shownTab) tab?.scrollIntoView({ block: "nearest", inline: "nearest" });
  shownTab = tab?.href;
}

function skip(event) {
  event.preventDefault();
  document.getElementById("main").focus();
}

function view(route) {
  if (!state.known) return h("p", { class: "waiting", role: "status" }, state.link.reason ? "Trying to reach the server …" : "Connecting …");
  const [first, flow] = route.parts;
  if (first === "flows" && flow !== undefined) return flowView(route, flow);
  if (Object.hasOwn(VIEWS, first)) return VIEWS[first](route);
  if (first === undefined || first === "flows") return overview(route);
  return empty("There is no such view", "The address may be an old one.", h("a", { class: "button", href: "#/" }, "Overview"));
}

function heading(route) {
  const theme = window.heliographTheme.now();
  const flows = [...state.flows.values()];
  const trouble = flows.filter((flow) => flow.state === "trouble").length;
  const parked = flows.reduce((total, flow) => total + (flow.lanes_by_state?.parked ?? 0), 0);
  return h("header", { class: "top" },
    h("a", { class: "brand", href: "#/", "aria-label": "Heliograph, overview" }, logo(), h("span", null, "Heliograph")),
    h("nav", { "aria-label": "Views" },
      h("a", { href: "#/", "aria-current": !route.parts.length || (route.parts[0] === "flows" && !route.parts[1]) ? "page" : null }, "Overview"),
      Object.keys(VIEWS).map((name) => h("a", { key: name, href: `#/${name}`, "aria-current": route.parts[0] === name ? "page" : null }, name[0].toUpperCase() + name.slice(1)))),
    state.flows.size > 1 && h("select", {
      class: "flows", "aria-label": "Go to a flow", value: route.parts[0] === "flows" ? route.parts[1] ?? "" : "",
      onchange: (event) => { if (event.target.value) location.hash = flowHash(event.target.value); event.target.blur(); },
    },
      h("option", { value: "" }, `${many(state.flows.size, "flow")} …`),
      [...state.flows.values()].map((flow) => h("option", { value: flow.flow, key: flow.flow, selected: flow.flow === route.parts[1] }, flow.flow))),
    h("span", { class: "space" }),
    trouble + parked > 0 && h("a", { class: "badge bad", href: "#/" }, h("i", null), trouble ? `${many(trouble, "flow")} in trouble` : `${many(parked, "lane")} parked`),
    link(),
    h("button", { class: "icon", type: "button", "aria-label": `Switch to ${theme === "dark" ? "light" : "dark"} colours`, title: "Dark or light  t", onclick: () => { window.heliographTheme.turn(); changed(); } }, theme === "dark" ? sun() : moon()),
    h("button", { class: "icon help", type: "button", "aria-label": "Keys", title: "Keys  ?", onclick: help }, "?"));
}

function link() {
  const age = ageMs();
  const old = age !== null && age > OLD_MS;
  const tone = state.link.live ? (old ? "warn" : "good") : "bad";
  const text = state.link.live ? (old ? `${lasting(age)} old` : "live") : "offline";
  return h("span", { class: `badge link ${tone}`, title: age === null ? "nothing heard yet" : `last heard ${lasting(age)} ago` }, h("i", null), text);
}

/** What is on the page is not what is: say so, and since when. */
function banner() {
  const { link: now } = state;
  const age = ageMs();
  if (!now.live && now.reason) {
    const data = age === null ? "Nothing was heard yet." : `What is shown is ${since(Date.now() - age, Date.now())} old.`;
    return h("p", { class: "banner bad", role: "alert", key: "banner" }, h("b", null, "Connection lost"), `: ${now.reason}. ${data} Trying again by itself.`);
  }
  if (now.live && age > OLD_MS) {
    return h("p", { class: "banner warn", role: "alert", key: "banner" }, h("b", null, "Old data"),
      `: the server answers, but has heard nothing from the mirror for ${lasting(age)}. Records may still be copied; if the run ended, start it again.`);
  }
  return null;
}

function foot() {
  const { run } = state;
  if (!run.version) return null;
  const parts = [`Heliograph ${run.version}`, run.host, run.process && `process ${run.process}`, run.since_ms && `up ${since(run.since_ms, Date.now())}`, run.epoch !== undefined && run.epoch !== null && `epoch ${run.epoch}`];
  return h("footer", { class: "foot" }, parts.filter(Boolean).map((part) => h("span", null, part)), h("a", { href: "./api/v1/openapi.json" }, "API"));
}

const logo = () => h("svg", { viewBox: "0 0 32 32", width: 22, height: 22, "aria-hidden": "true", class: "logo" },
  h("path", { d: "M5.5 7.5 16 21.5 26.5 7.5", class: "ray" }), h("circle", { cx: 5.5, cy: 7.5, r: 3.6, class: "sun" }), h("path", { d: "M6.5 25.5h19", class: "mirror" }));
const sun = () => h("svg", { viewBox: "0 0 20 20", width: 16, height: 16, "aria-hidden": "true" }, h("circle", { cx: 10, cy: 10, r: 3.6 }), h("path", { d: "M10 1.8v2.4M10 15.8v2.4M1.8 10h2.4M15.8 10h2.4M4.2 4.2l1.7 1.7M14.1 14.1l1.7 1.7M4.2 15.8l1.7-1.7M14.1 5.9l1.7-1.7" }));
const moon = () => h("svg", { viewBox: "0 0 20 20", width: 16, height: 16, "aria-hidden": "true" }, h("path", { d: "M16.8 11.9A7.2 7.2 0 0 1 8.1 3.2a7.2 7.2 0 1 0 8.7 8.7Z" }));

addEventListener("hashchange", () => {
  const path = location.hash.split("?")[0];
  if (path !== shownHash) scrollTo(0, 0);
  shownHash = path;
  draw();
});
addEventListener("resize", changed);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", changed);
watch(draw);
listen();
draw();
