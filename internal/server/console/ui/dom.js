// Building nodes. Text is always a text node; nothing here parses markup.

export function h(tag, props, ...children) {
  return fill(document.createElement(tag), props, children);
}

export function svg(tag, props, ...children) {
  return fill(document.createElementNS('http://www.w3.org/2000/svg', tag), props, children);
}

function fill(node, props, children) {
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? '' : value);
  }
  node.append(...children.flat().filter((c) => c !== null && c !== undefined && c !== false));
  return node;
}

// setText changes the document only if the text differs, so that screen readers and
// layout are not disturbed.
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

const motion = matchMedia('(prefers-reduced-motion: reduce)');
export const still = () => motion.matches;

// list shows items as the children of parent: one row for each, made once and
// kept as long as items has it. make returns {node, update}. With slide, rows
// move to their places in an animation.
export function list(parent, items, keyOf, make, slide = false) {
  let rows = lists.get(parent);
  if (!rows) lists.set(parent, (rows = new Map()));
  const before = new Map();
  if (slide && !still()) for (const [k, row] of rows) before.set(k, row.node.offsetTop);
  const wanted = new Set();
  let next = parent.firstElementChild;
  for (const [i, item] of items.entries()) {
    const k = keyOf(item);
    if (wanted.has(k)) continue;
    wanted.add(k);
    let row = rows.get(k);
    if (!row) rows.set(k, (row = make(item)));
    row.update?.(item, i);
    if (row.node === next) next = next.nextElementSibling;
    else parent.insertBefore(row.node, next);
  }
  for (const [k, row] of rows) {
    if (wanted.has(k)) continue;
    row.node.remove();
    rows.delete(k);
  }
  for (const [k, top] of before) {
    const row = rows.get(k);
    const by = row ? top - row.node.offsetTop : 0;
    if (by) row.node.animate([{ transform: `translateY(${by}px)` }, { transform: 'none' }], { duration: 350, easing: 'ease-out' });
  }
}

const lists = new WeakMap();

// rowOf returns the row of the item with that key, or undefined.
export const rowOf = (parent, key) => lists.get(parent)?.get(key);

// Characters that could hide or reorder text: controls, format characters such as bidi
// overrides, lone surrogates, unassigned code points, other spaces, fillers.
const sly = /[\p{C}\p{Zl}\p{Zp}]|(?! )\p{Zs}|[\ufe00-\ufe0f\u115f\u1160\u3164\uffa0\u2800\u{e0100}-\u{e01ef}]/u;
const slyAll = new RegExp(sly, 'gu');

const escaped = (c) => {
  const hex = c.codePointAt(0).toString(16);
  return hex.length <= 2 ? `\\x${hex.padStart(2, '0')}` : hex.length <= 4 ? `\\u${hex.padStart(4, '0')}` : `\\u{${hex}}`;
};

// plain returns text with such characters escaped, where only a string is possible.
export const plain = (text, most = 300) => {
  const chars = [...String(text)];
  const cut = chars.length > most ? chars.slice(0, most).join('') + '…' : chars.join('');
  return cut.replace(slyAll, escaped);
};

// shown returns a node that shows one value, with such characters escaped and
// marked. A value longer than most is cut in its middle.
export function shown(text, most = 72) {
  const chars = [...String(text)];
  const node = h('bdi', { class: 'value' });
  if (chars.length > most) {
    const head = Math.ceil(most * 0.7);
    node.title = plain(text);
    node.append(...pieces(chars.slice(0, head)), h('span', { class: 'cut' }, `…${chars.length - most} more…`), ...pieces(chars.slice(head - most)));
  } else node.append(...pieces(chars));
  if (!chars.length) node.append(h('span', { class: 'sly' }, '(empty)'));
  return node;
}

function pieces(chars) {
  const out = [];
  let run = '';
  for (const c of chars) {
    if (!sly.test(c)) {
      run += c;
      continue;
    }
    if (run) out.push(run);
    run = '';
    out.push(h('span', { class: 'sly' }, escaped(c)));
  }
  if (run) out.push(run);
  return out;
}

// keyNode shows a key, as a link to its page if the fields are known. Bytes that are
// not UTF-8 are U+FFFD here, so a link would lead to another key.
export function keyNode(fields, values, most) {
  const parts = values.flatMap((v, i) => (i ? [h('span', { class: 'sep', 'aria-hidden': 'true' }, ' · '), shown(v, most)] : [shown(v, most)]));
  const title = values.some((v) => v.startsWith('proxy:')) && 'A trusted proxy that did not name the client of these requests: it must send X-Forwarded-For, unless they came from its own machine.';
  if (!fields || fields.length !== values.length || values.some((v) => v.includes('\ufffd'))) return h('span', { class: 'key', title }, parts);
  return h('a', { class: 'key', href: keyHref(fields, values), title }, parts);
}

export function keyHref(fields, values) {
  const q = new URLSearchParams();
  fields.forEach((f, i) => {
    q.append('field', f);
    q.append('value', values[i]);
  });
  return `#/key?${q}`;
}

// ruleHref is the address of a rule's card.
export const ruleHref = (rule) => `#/rules?${new URLSearchParams({ rule })}`;

// icon returns one of the few icons, drawn in the colour of the text.
export function icon(name) {
  return svg('svg', { class: 'icon', viewBox: '0 0 24 24', width: 20, height: 20, 'aria-hidden': 'true' }, svg('path', { d: paths[name] }));
}

const paths = {
  overview: 'M3 20h18M6 16v-5M11 16V6M16 16v-8M20.500 16v-3',
  keys: 'M4 6h16M4 12h11M4 18h6',
  bans: 'M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18ZM5.700 5.700l12.600 12.600',
  rules: 'M6 3h9l4 4v14H6ZM14.500 3v5H19M9 12h7M9 16h5',
  hot: 'M12 3c1 4 5 5.500 5 10.500A5 5 0 0 1 7 14c0-2 1-3.500 2-4.500 0 2 .8 3 2 3.500 1-3-.5-6 1-10Z',
  search: 'M10.500 4a6.500 6.500 0 1 0 0 13 6.500 6.500 0 0 0 0-13ZM15.500 15.500 21 21',
  pause: 'M8 5v14M16 5v14',
  play: 'M7 4.500v15l12-7.500Z',
  theme: 'M12 3a9 9 0 1 0 0 18ZM12 3a9 9 0 0 1 0 18',
  help: 'M9 9a3 3 0 1 1 4.500 2.600c-1 .6-1.500 1.200-1.500 2.400M12 17.500v.5',
  out: 'M10 4H4v16h6M9 12h12M17 8l4 4-4 4',
};
