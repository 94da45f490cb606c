// Few colours, each with one meaning: good, busy, warn, bad, still.

const TONES = {
  running: "good", following: "good", "in step": "good", done: "good", recovered: "good",
  opening: "busy", attaching: "busy", "to be set": "busy", "waits for the copy": "busy",
  draining: "warn", waiting: "busy", "ahead on the target": "warn", "live on the target": "still",
  paused: "still", standby: "still", "not synced": "still", "not known": "warn",
  trouble: "bad", parked: "bad", refused: "bad",
};
const EVENTS = {
  "data-loss": "bad", "target-loss": "bad", "source-reset": "bad", parked: "bad", trouble: "bad", "foreign-writer": "bad", ledger: "bad",
  "bad-record": "warn", "batch-again": "warn", file: "warn", certificate: "warn", malformed: "warn", "events-dropped": "warn", "topic-gone": "warn",
  "topic-deleted": "warn", "taken-over": "warn", recovered: "good",
};

export const toneOf = (state) => TONES[state] ?? "still";
/** A flow of which somebody paused a part runs, and is not simply well; neither is one that perhaps nobody carries. */
export const toneOfFlow = (flow) => ((flow.state === "running" && flow.reason) || (flow.state === "standby" && !flow.carried_by) ? "warn" : toneOf(flow.state));
/** "running, 1 topic paused". */
export const stateOfFlow = (flow) => (flow.state === "running" && flow.reason ? `running, ${flow.reason}` : flow.state);
export const toneOfEvent = (kind) => EVENTS[kind] ?? "still";
/** Nothing is meant to move. */
export const isQuiet = (state) => ["paused", "trouble", "opening", "standby"].includes(state);
