// What the run would change on the clusters besides copying records, and why.

import { h } from "./tree.js";
import { answer, askAgain } from "./store.js";
import { flowHash } from "./route.js";
import { answered, button, empty, panel, table } from "./parts.js";
import { clock, many } from "./words.js";

const EVERY_MS = 60_000; // a look at every cluster costs them something

const COLUMNS = [
  { name: "Job", cell: (row) => h("span", { class: "pill" }, row.job) },
  { name: "Subject", class: "wrap", cell: (row) => h("span", { class: "strong" }, row.subject) },
  { name: "Change", class: "wrap line", cell: (row) => row.what },
  { name: "Why", class: "wrap line", cell: (row) => h("span", { class: "muted" }, row.why) },
];

export function planView() {
  const known = answer(["plan"], {}, EVERY_MS);
  const looked = known.asking ? "looking at the clusters …" : known.at && !known.error ? `looked at ${clock(known.at)}` : "";
  return [
    h("div", { class: "subtitle", key: "h" }, h("h1", null, "Plan"), h("span", { class: "muted", role: "status" }, looked), h("span", { class: "space" }),
      button("Look again", askAgain, { disabled: known.asking, key: "again" })),
    h("p", { class: "muted", key: "what" }, "What the run is about to make, grow or change on its clusters, besides copying records. It does so by itself."),
    answered(known, ({ flows }) => plans(flows)),
  ];
}

function plans(flows) {
  if (!flows.length) return panel(null, null, empty("No flow yet", "Where nothing is mirrored nothing is pending."));
  const busy = flows.filter((flow) => flow.actions.length || flow.troubles.length || flow.left_out.length);
  const still = flows.filter((flow) => !busy.includes(flow));
  if (!busy.length) return panel(null, null, empty("Nothing pending", `Both sides of ${flows.length === 1 ? flows[0].flow : `all ${flows.length} flows`} are as they are wanted.`));
  return [
    busy.map((flow) => h("section", { class: "panel", key: flow.flow },
      h("header", null, h("h2", null, h("a", { href: flowHash(flow.flow) }, flow.flow)), h("span", { class: "muted" }, headline(flow))),
      flow.troubles.map((text) => h("p", { class: "notice bad", key: `trouble ${text}` }, h("b", null, flow.unseen ? "Could not be looked at: " : "Not looked at: "), text)),
      flow.left_out.map((text) => h("p", { class: "notice warn", key: `out ${text}` }, h("b", null, "Left out: "), text)),
      flow.actions.length > 0 && table({ columns: COLUMNS, rows: flow.actions, keyOf: (row) => `${row.job} ${row.subject} ${row.what}`, label: `Pending for ${flow.flow}`, stacked: true }))),
    still.length > 0 && panel("Nothing pending", null, h("p", { class: "note" }, still.map((flow, index) => [index > 0 && ", ", h("a", { href: flowHash(flow.flow), key: flow.flow }, flow.flow)]))),
  ];
}

function headline(flow) {
  if (flow.actions.length) return `${many(flow.actions.length, "change")} pending`;
  return flow.unseen ? "could not be looked at" : "nothing pending";
}
