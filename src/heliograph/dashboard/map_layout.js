// Where clusters stand on the map and how flows bend between them. Pure: names in, numbers out.
//
// What has a direction is drawn in columns (active/standby, chains, fan-out, collecting hubs); a hub that talks both ways stands between its
// spokes; what goes round stands in a ring. Groups of clusters that no flow joins stand below each other.

/** {width, height, nodes: Map name -> {x, y, w, h}}; x and y are the middle of a node; most are as large as `box` {w, h, gapX, gapY}. */
export function layout(names, edges, box, wide) {
  const groups = components(names, edges).map((group) => placed(group, edges, box, wide));
  const width = Math.max(...groups.map((group) => group.width), box.w);
  const nodes = new Map();
  let top = 0;
  for (const group of groups) {
    for (const [name, at] of group.nodes) nodes.set(name, { w: box.w, h: box.h, ...at, x: at.x + (width - group.width) / 2, y: at.y + top });
    top += group.height + box.gapY;
  }
  return { width, height: Math.max(top - box.gapY, box.h), nodes };
}

export function components(names, edges) {
  const left = new Set(names);
  const found = [];
  for (const name of names) {
    if (!left.has(name)) continue;
    const group = [];
    const queue = [name];
    left.delete(name);
    while (queue.length) {
      const here = queue.shift();
      group.push(here);
      for (const next of neighbours(here, edges)) {
        if (left.delete(next)) queue.push(next);
      }
    }
    found.push(group);
  }
  return found;
}

const neighbours = (name, edges) => [
  ...new Set(edges.flatMap(({ source, target }) => (source === name ? [target] : target === name ? [source] : []))),
];

function placed(group, all, box, wide) {
  const edges = all.filter(({ source, target }) => group.includes(source) && group.includes(target));
  const columns = columnsOf(group, edges);
  if (columns) return inColumns(columns, box, wide);
  return inRing(group, box, wide);
}

/** Columns of names, or null where only a ring is honest. */
export function columnsOf(group, edges) {
  if (group.length === 1) return [group];
  const pairs = pairsOf(edges);
  const levels = levelsOf(group, edges);
  if (levels && edges.every(({ source, target }) => levels.get(target) - levels.get(source) === 1)) return ordered(levels, edges);
  if (pairs.length !== group.length - 1) return null;
  const hub = group.find((name) => neighbours(name, edges).length === group.length - 1);
  if (hub !== undefined && group.length > 2) return aroundHub(hub, group, edges);
  return ordered(fromOneEnd(group, edges), edges);
}

const pairsOf = (edges) => [...new Set(edges.map(({ source, target }) => JSON.stringify([source, target].sort())))];

/** The longest way to each cluster; null if flows go round. */
function levelsOf(group, edges) {
  const levels = new Map(group.map((name) => [name, 0]));
  for (let round = 0; round <= group.length; round += 1) {
    let moved = false;
    for (const { source, target } of edges) {
      if (levels.get(target) <= levels.get(source)) {
        levels.set(target, levels.get(source) + 1);
        moved = true;
      }
    }
    if (!moved) return levels;
  }
  return null;
}

function aroundHub(hub, group, edges) {
  const spokes = group.filter((name) => name !== hub);
  const half = Math.ceil(spokes.length / 2);
  // Spokes that only feed the hub stand left of it, those that are only fed right; the others where there is room.
  const lean = (name) =>
    edges.some((edge) => edge.target === name) - edges.some((edge) => edge.source === name);
  const sorted = [...spokes].sort((a, b) => lean(a) - lean(b));
  return [sorted.slice(0, half), [hub], sorted.slice(half)].filter((column) => column.length);
}

function fromOneEnd(group, edges) {
  const ends = group.filter((name) => neighbours(name, edges).length === 1);
  const levels = new Map([[ends[0] ?? group[0], 0]]);
  const queue = [...levels.keys()];
  while (queue.length) {
    const here = queue.shift();
    for (const next of neighbours(here, edges)) {
      if (levels.has(next)) continue;
      levels.set(next, levels.get(here) + 1);
      queue.push(next);
    }
  }
  return levels;
}

/** Columns by level; within a column near those that they are joined to. */
function ordered(levels, edges) {
  const columns = [];
  for (const [name, level] of levels) (columns[level] ??= []).push(name);
  for (let place = 1; place < columns.length; place += 1) {
    const before = columns[place - 1];
    const middle = (name) => {
      const at = neighbours(name, edges).map((other) => before.indexOf(other)).filter((index) => index >= 0);
      return at.length ? at.reduce((sum, index) => sum + index, 0) / at.length : before.length;
    };
    columns[place].sort((a, b) => middle(a) - middle(b));
  }
  return columns;
}

function inColumns(columns, box, wide) {
  const most = Math.max(...columns.map((column) => column.length));
  const nodes = new Map();
  const [stepX, stepY] = wide ? [box.w + box.gapX, box.h + box.gapY] : [box.w + box.gapY / 2, box.h + box.gapX * 0.62];
  columns.forEach((column, place) => {
    column.forEach((name, index) => {
      const across = index + (most - column.length) / 2;
      // One that stands before many is as long as they are: its flows run beside each other instead of through one point.
      const beside = Math.max(1, columns[place - 1]?.length ?? 0, columns[place + 1]?.length ?? 0);
      const longer = column.length === 1 ? beside - 1 : 0;
      nodes.set(name, wide
        ? { x: place * stepX + box.w / 2, y: across * stepY + box.h / 2, w: box.w, h: box.h + longer * stepY }
        : { x: across * stepX + box.w / 2, y: place * stepY + box.h / 2, w: box.w + longer * stepX, h: box.h });
    });
  });
  const along = columns.length - 1;
  return wide
    ? { nodes, width: along * stepX + box.w, height: (most - 1) * stepY + box.h }
    : { nodes, width: (most - 1) * stepX + box.w, height: along * stepY + box.h };
}

function inRing(group, box, wide) {
  const count = group.length;
  const turn = count % 2 ? -Math.PI / 2 : -Math.PI / 2 - Math.PI / count;
  const room = Math.max(1, count / 4);
  const radiusX = (wide ? (box.w + box.gapX) * 0.85 : box.w) * room;
  const radiusY = (wide ? box.h * 2.5 : box.h * 2.6) * room;
  const raw = group.map((name, index) => {
    const angle = turn + (2 * Math.PI * index) / count;
    return [name, radiusX * Math.cos(angle), radiusY * Math.sin(angle)];
  });
  const left = Math.min(...raw.map(([, x]) => x)) - box.w / 2;
  const top = Math.min(...raw.map(([, , y]) => y)) - box.h / 2;
  return {
    nodes: new Map(raw.map(([name, x, y]) => [name, { x: x - left, y: y - top }])),
    width: Math.max(...raw.map(([, x]) => x)) + box.w / 2 - left,
    height: Math.max(...raw.map(([, , y]) => y)) + box.h / 2 - top,
  };
}

const PLACES = [0, -0.08, 0.08, -0.16, 0.16, -0.22, 0.22, 0.3, 0.38];

/** Labels {width, height, along, path} get x and y: on their line, where they hide no node and no label before them, as near to `along` as can be. */
export function placeLabels(labels, nodes) {
  const taken = [...nodes.values()].map((at) => ({ x: at.x, y: at.y, width: at.w + 6, height: at.h + 6 }));
  return labels.map((label) => {
    const tries = PLACES.map((by) => ({ ...label, ...label.path.at(Math.min(0.88, Math.max(0.12, label.along + by))) }));
    const found = tries.find((one) => taken.every((other) => !overlap(one, other))) ?? tries[0];
    taken.push({ ...found, width: found.width + 4, height: found.height + 4 });
    return found;
  });
}

const overlap = (one, two) =>
  Math.abs(one.x - two.x) * 2 < one.width + two.width && Math.abs(one.y - two.y) * 2 < one.height + two.height;

/** Where a flow between two nodes meets the first: beside the other, as far as the first is long. */
export function portOf(node, other, box) {
  const near = (at, middle, room) => Math.min(middle + room / 2, Math.max(middle - room / 2, at));
  return { x: near(other.x, node.x, node.w - box.w), y: near(other.y, node.y, node.h - box.h) };
}

/** The way of a flow: a bent line from the edge of one node to that of the other; `bend` in pixels, to the left of its direction. */
export function pathOf(from, to, box, bend) {
  const dx = to.x - from.x;
  const dy = to.y - from.y;
  const far = Math.hypot(dx, dy) || 1;
  const normal = { x: dy / far, y: -dx / far };
  const control = { x: (from.x + to.x) / 2 + normal.x * bend * 2, y: (from.y + to.y) / 2 + normal.y * bend * 2 };
  const start = edgeOf(from, control, box, 2);
  const end = edgeOf(to, control, box, 9);
  const at = (t) => ({
    x: (1 - t) ** 2 * start.x + 2 * t * (1 - t) * control.x + t ** 2 * end.x,
    y: (1 - t) ** 2 * start.y + 2 * t * (1 - t) * control.y + t ** 2 * end.y,
  });
  const angle = (Math.atan2(end.y - control.y, end.x - control.x) * 180) / Math.PI;
  const text = `M${round(start.x)} ${round(start.y)}Q${round(control.x)} ${round(control.y)} ${round(end.x)} ${round(end.y)}`;
  return { text, at, end, angle, normal };
}

const round = (n) => Math.round(n * 10) / 10;

/** Where the line from a node's middle towards `to` leaves its box, `gap` pixels outside. */
function edgeOf(node, to, box, gap) {
  const dx = to.x - node.x;
  const dy = to.y - node.y;
  const share = Math.min((box.w / 2 + gap) / Math.abs(dx || 1e-9), (box.h / 2 + gap) / Math.abs(dy || 1e-9));
  return { x: node.x + dx * share, y: node.y + dy * share };
}
