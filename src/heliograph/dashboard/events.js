// What a person must know, newest first.

import { h } from "./tree.js";
import { answer, joined, state } from "./store.js";
import { flowHash, requery } from "./route.js";
import { badge, button, empty, panel, search, topicName } from "./parts.js";
import { count, moment, since, when } from "./words.js";
import { toneOfEvent } from "./tones.js";

const MOST = 300;

export const eventsOf = (flow) => state.events.filter((event) => event.flow === flow);

export function eventRows(events, { flow }) {
  if (!events.length) return empty("Nothing to tell", "Whatever needs a look appears here by itself: a parked lane, a cluster that does not answer, records that were lost.");
  const now = Date.now();
  return h("ol", { class: "events" }, events.map((event) => h("li", { key: `${event.time_ms} ${event.flow} ${event.subject} ${event.kind} ${event.reason}`, class: toneOfEvent(event.kind) },
    h("time", { datetime: new Date(event.time_ms).toISOString(), title: `${moment(event.time_ms)}, ${since(event.time_ms, now)} ago` }, when(event.time_ms, now)),
    badge(event.kind, toneOfEvent(event.kind)),
    h("div", null,
      h("p", null, flow && h("a", { href: flowHash(event.flow), class: "strong" }, event.flow), flow && " ", event.subject !== event.flow && [topicName(event.subject), " "], event.reason),
      event.what_to_do && h("p", { class: "muted" }, `→ ${event.what_to_do}`)))));
}

export function eventsView({ query }) {
  const words = (query.search ?? "").toLowerCase().split(/\s+/).filter(Boolean);
  const events = joined(answer(["events"], { limit: 1000 }, 60_000).value ?? [], state.events);
  const kinds = [...new Set(events.map((event) => event.kind))].sort();
  const found = events.filter((event) => (!query.kind || event.kind === query.kind) && (!query.flow || event.flow === query.flow)
    && words.every((word) => `${event.flow} ${event.subject} ${event.kind} ${event.reason} ${event.what_to_do}`.toLowerCase().includes(word)));
  const pick = (name, label, values) => values.length > 1 && h("select", { "aria-label": label, value: query[name] ?? "", onchange: (event) => requery({ [name]: event.target.value }) },
    h("option", { value: "" }, label), values.map((value) => h("option", { value, key: value, selected: value === query[name] }, value)));
  return [
    h("h1", { key: "h" }, "Events"),
    panel(null, [search(query.search ?? "", "Search events"), pick("kind", "every kind", kinds), pick("flow", "every flow", [...state.flows.keys()]), h("span", { class: "space" }),
      events.length > 0 && h("span", { class: "muted found" }, `${count(found.length)} of the newest ${count(events.length)}`)],
      found.length || !events.length ? eventRows(found.slice(-MOST).reverse(), { flow: true }) : empty("No event matches", "Esc clears the search.", button("Show all events", () => requery({ search: "", kind: "", flow: "" })))),
  ];
}
