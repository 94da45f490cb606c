// Who carries a flow and who waits for it, and what to say where this run does not see its lanes.

import { h } from "./tree.js";
import { empty } from "./parts.js";
import { moment } from "./words.js";

/** Whether this run knows the lanes of a flow; if not, its sums are not zero but unknown. */
export const isSeen = (flow) => flow.lag_records !== null && flow.lag_records !== undefined;

const run = (one) => `${one.host}, process ${one.process}`;
const dated = (one) => (one.since_ms ? `${run(one)}, since ${moment(one.since_ms)}` : run(one));

const part = (name, text) => h("span", null, h("b", null, `${name} `), text);

/** One line, where there is more than one run. */
export function turns(flow) {
  const [waiting, by] = [flow.standbys ?? [], flow.carried_by];
  const others = (name) => waiting.length > 0 && part(name, waiting.map(dated).join("; "));
  if (flow.state !== "standby") {
    return waiting.length > 0 && h("p", { class: "notice turns", key: "turns" }, part("Carried by", by ? `this run (${run(by)})` : "this run"), others("Standing by"));
  }
  if (!by) return h("p", { class: "notice turns warn", key: "turns", role: "alert" }, part("Not carried here:", flow.reason), others("Also standing by"));
  return h("p", { class: "notice turns", key: "turns" }, part("Carried by", dated(by)), part("Standing by", "this run, which takes over when that one is gone"), others("Also standing by"));
}

/** In the place of lanes, topics and charts that are not known here. */
export function unseen(flow) {
  if (flow.state === "standby" && flow.carried_by) {
    return empty("Another run carries this flow", `Lag, rates and lanes are on the page of ${run(flow.carried_by)}, and in heliograph status. Changes are made there.`);
  }
  if (flow.state === "standby") return empty("Not known", "Whether anyone carries this flow is not known here until the target answers again.");
  if (flow.state === "trouble") return empty("Not known", "What is behind is not known until both clusters answer. It is tried again by itself.");
  return empty("Not known yet", "Both clusters are being read.");
}
