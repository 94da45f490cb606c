// Rows that stay where they are: a table sorted by what changes is sorted anew every few seconds, and not at all while somebody is in it.

export const EVERY_MS = 5_000;
const kept = new Map(); // by the table's name: {as, at, rows}, rows by their keys in the order that is shown
const MOST_KEPT = 20;
let finger = false; // leaves its last touch behind as "hover"
addEventListener("pointerover", (event) => { finger = event.pointerType === "touch"; }, true);

/** Whether the pointer or the keyboard is in the rows of this table. */
export function isHeld(name) {
  const places = [!finger && "tbody[data-steady]:hover", "tbody[data-steady]:has(:focus-visible)"].filter(Boolean).join(", ");
  return [...document.querySelectorAll(places)].some((body) => body.dataset.steady === name);
}

/** The keys of the rows that must not move now. */
export const heldKeys = (name, as) => (kept.get(name)?.as === as && isHeld(name) ? [...kept.get(name).rows.keys()] : []);

/**
 * `rows` in the order in which they stand already. `as` says how they are sorted and searched: with another `as` all is new.
 * While held a row that has left is shown as it was; with `everyMs` 0 somebody else keeps the order for a while.
 */
export function steady({ name, as, rows, keyOf, everyMs = EVERY_MS }) {
  const before = kept.get(name);
  const held = before?.as === as && isHeld(name);
  const now = Date.now();
  if (!held && !(before?.as === as && now - before.at < everyMs)) {
    remember(name, { as, at: now, rows: new Map(rows.map((row) => [keyOf(row), row])) });
    return rows;
  }
  const fresh = new Map(rows.map((row) => [keyOf(row), row]));
  const shown = new Map();
  for (const [key, row] of before.rows) if (held || fresh.has(key)) shown.set(key, fresh.get(key) ?? row);
  if (!held) for (const [key, row] of fresh) if (!shown.has(key)) shown.set(key, row);
  before.rows = shown;
  return [...shown.values()];
}

function remember(name, what) {
  kept.delete(name);
  kept.set(name, what);
  if (kept.size > MOST_KEPT) kept.delete(kept.keys().next().value);
}
