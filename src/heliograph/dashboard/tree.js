// A description of elements, and the page made equal to it with as few changes as it takes: focus, scrolling and running
// animations stay where they are. Text is only ever set as text, never as HTML.

const SVG = "http://www.w3.org/2000/svg";
const AS_PROPERTY = new Set(["value", "checked", "disabled", "open", "indeterminate", "selected"]);

/** h("a", {href: "#/"}, "text", h("b", null, 5)): `key` keeps an element the same among its moving siblings. */
export function h(tag, props, ...kids) {
  return { tag, props: props ?? {}, kids: flat(kids, []), key: props?.key, el: null };
}

function flat(kids, into) {
  for (const kid of kids) {
    if (kid === null || kid === undefined || kid === false || kid === true) continue;
    if (Array.isArray(kid)) flat(kid, into);
    else into.push(typeof kid === "object" ? kid : { text: String(kid), el: null });
  }
  return into;
}

/** Make the children of `root` what `kids` say. */
export function show(root, ...kids) {
  const now = flat(kids, []);
  const focused = document.activeElement;
  patchKids(root, root.shownKids ?? [], now, root.namespaceURI === SVG);
  root.shownKids = now;
  // An element that was moved loses the focus: rows that change places must not take it away from who is reading them.
  if (focused && focused !== document.activeElement && focused.isConnected) focused.focus({ preventScroll: true });
}

function create(node, inSvg) {
  if (node.text !== undefined) return (node.el = document.createTextNode(node.text));
  const svg = inSvg || node.tag === "svg";
  const el = svg ? document.createElementNS(SVG, node.tag) : document.createElement(node.tag);
  node.el = el;
  for (const [name, value] of Object.entries(node.props)) setProp(el, name, undefined, value);
  for (const kid of node.kids) el.append(create(kid, svg && node.tag !== "foreignObject"));
  node.props.made?.(el);
  return el;
}

function setProp(el, name, old, value) {
  if (name === "key" || name === "made" || old === value) return;
  if (name.startsWith("on")) el[name.toLowerCase()] = value ?? null;
  else if (name === "style") {
    for (const [part, text] of Object.entries(value ?? {})) if (old?.[part] !== text) el.style.setProperty(part, text);
  } else if (AS_PROPERTY.has(name)) {
    // What a person is typing is theirs.
    if (!(name === "value" && document.activeElement === el)) el[name] = value ?? "";
  } else if (value === null || value === undefined || value === false) el.removeAttribute(name === "class" ? "class" : name);
  else el.setAttribute(name, value === true ? "" : value);
}

function patch(old, now, inSvg) {
  const el = (now.el = old.el);
  if (now.text !== undefined) {
    if (old.text !== now.text) el.data = now.text;
    return;
  }
  for (const name of Object.keys(old.props)) if (!(name in now.props)) setProp(el, name, old.props[name], undefined);
  for (const [name, value] of Object.entries(now.props)) setProp(el, name, old.props[name], value);
  patchKids(el, old.kids, now.kids, inSvg || now.tag === "svg");
}

const same = (a, b) => (a.text !== undefined) === (b.text !== undefined) && a.tag === b.tag && a.key === b.key;

function patchKids(parent, before, now, inSvg) {
  const keyed = new Map();
  for (const kid of before) if (kid.key !== undefined) keyed.set(kid.key, kid);
  const used = new Set();
  let plain = 0;
  let place = parent.firstChild;
  for (const kid of now) {
    let old;
    if (kid.key !== undefined) old = keyed.get(kid.key);
    else {
      while (plain < before.length && (before[plain].key !== undefined || used.has(before[plain]))) plain += 1;
      old = before[plain];
    }
    if (old && !used.has(old) && same(old, kid)) {
      used.add(old);
      patch(old, kid, inSvg);
      if (kid.el === place) place = place.nextSibling;
      else parent.insertBefore(kid.el, place);
    } else {
      if (old && kid.key === undefined) plain += 1;
      parent.insertBefore(create(kid, inSvg), place);
    }
  }
  for (const kid of before) if (!used.has(kid)) kid.el.remove();
}
