// What can be changed from this page, each with its question.

import { confirm } from "./dialogs.js";
import { sizePerSecond } from "./words.js";

const subject = (flow, topic, partition) =>
  topic === undefined ? `flow ${flow}` : partition === undefined ? `topic ${topic} of ${flow}` : `partition ${topic}-${partition} of ${flow}`;

const about = (topic, partition, reason) => ({ ...(topic === undefined ? {} : { topic }), ...(partition === undefined ? {} : { partition }), reason });

export function pause(flow, topic, partition) {
  const what = subject(flow, topic, partition);
  confirm({
    title: `Pause ${what}?`,
    text: "Nothing more is copied until somebody resumes it. Positions are kept; the source's retention goes on.",
    action: "Pause", tone: "warn",
    send: ({ reason }) => ["POST", ["flows", flow, "pause"], about(topic, partition, reason)],
    done: () => `Paused ${what}.`,
  });
}

export function resume(flow, topic, partition) {
  const what = subject(flow, topic, partition);
  confirm({
    title: `Resume ${what}?`,
    text: "It goes on where it stopped: no record is left out, none is copied twice.",
    action: "Resume",
    send: ({ reason }) => ["POST", ["flows", flow, "resume"], about(topic, partition, reason)],
    done: () => `Resumed ${what}.`,
  });
}

export function drain(flow, topic, partition) {
  const what = subject(flow, topic, partition);
  confirm({
    title: `Drain ${what}?`,
    text: "What the source holds now is copied to its end, then it pauses: for a hand-over without a gap.",
    action: "Drain", tone: "warn",
    send: ({ reason }) => ["POST", ["flows", flow, "drain"], about(topic, partition, reason)],
    done: () => `Draining ${what}.`,
  });
}

export function addTopic(flow) {
  confirm({
    title: `Add a topic to ${flow}`,
    text: "Its remote topic is made if it is missing, and its records are copied from where the flow's settings say.",
    fields: [{ name: "topic", label: "Topic on the source", placeholder: "orders" }],
    action: "Add topic",
    send: ({ topic, reason }) => ["POST", ["flows", flow, "topics"], { topic: topic.trim(), reason }],
    done: ({ topic }) => `Added ${topic}: its lanes appear as soon as they are planned.`,
  });
}

export function removeTopic(flow, topic) {
  confirm({
    title: `Remove ${topic} from ${flow}?`,
    text: "It is copied no more. The remote topic and its records stay.",
    action: "Remove topic", tone: "bad",
    send: ({ reason }) => ["DELETE", ["flows", flow, "topics", topic], undefined, { reason }],
    done: () => `Removed ${topic} from ${flow}.`,
  });
}

const UNITS = { "kB/s": 1e3, "MB/s": 1e6, "GB/s": 1e9 };

export function throttle(flow, now, topic) {
  const unit = now >= 1e9 ? "GB/s" : now >= 1e6 || !now ? "MB/s" : "kB/s";
  const what = subject(flow, topic);
  confirm({
    title: `Throttle ${what}`,
    text: now ? `It may read ${sizePerSecond(now)} now.` : "It reads as fast as it can now.",
    fields: [
      { name: "amount", label: "Read at most", kind: "number", min: 0, step: "any", value: now ? String(now / UNITS[unit]) : "", hint: "0 takes the limit away." },
      { name: "unit", label: "Unit", kind: "select", value: unit, options: Object.keys(UNITS).map((name) => [name, name]) },
    ],
    action: "Set the limit",
    send: ({ amount, unit: chosen, reason }) => ["PUT", ["flows", flow, "throttle"],
      { bytes_per_second: Math.round(Number(amount) * UNITS[chosen]), ...(topic === undefined ? {} : { topic }), reason }],
    done: ({ amount, unit: chosen }) => (Number(amount) ? `${what}: at most ${amount} ${chosen}.` : `${what}: no limit.`),
  });
}
