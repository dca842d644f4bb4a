// Keys, and tables of them.

import { h, shown } from './dom.js';

// keyOf shows a key of the report: key, or key_base64 if it is not UTF-8.
export function keyOf({ key, key_base64: base64 }, most = 72) {
  const values = base64 ? base64.map((v) => bytesOf(v, most)) : key.map((v) => shown(v, most));
  return h('span', { class: 'key' }, values.flatMap((v, i) => (i ? [h('span', { class: 'sep', 'aria-hidden': 'true' }, ' · '), v] : [v])));
}

// sameKey reports whether two keys of the report are the same.
export const sameKey = (a, b) => JSON.stringify([a.key, a.key_base64]) === JSON.stringify([b.key, b.key_base64]);

// bytesOf shows bytes that are not UTF-8: ASCII as text, the others escaped.
function bytesOf(base64, most) {
  const bytes = atob(base64);
  const node = h('bdi', { class: 'value' });
  for (const [piece] of bytes.slice(0, most).matchAll(/[\x00-\x7f]+|[^\x00-\x7f]/g)) {
    if (piece <= '\x7f' || piece.length > 1) node.append(shown(piece, most));
    else node.append(h('span', { class: 'sly' }, `\\x${piece.charCodeAt(0).toString(16)}`));
  }
  if (bytes.length > most) node.append(h('span', { class: 'cut' }, `…${bytes.length - most} more bytes`));
  return node;
}

// table returns a table with a caption for screen readers. columns are [name, css class];
// the first names the row. It scrolls sideways where it is too wide.
export function table(caption, columns, rows) {
  const cell = (value, i) => (i ? h('td', { class: columns[i][1] }, value) : h('th', { scope: 'row' }, value));
  const body = h('tbody', {}, rows.map((row) => h('tr', {}, row.map(cell))));
  return h('div', { class: 'scroll', role: 'region', tabindex: 0, 'aria-label': caption },
    h('table', {}, h('caption', { class: 'hide' }, caption), h('thead', {}, h('tr', {}, columns.map(([name, css]) => h('th', { scope: 'col', class: css }, name)))), body));
}

// longTable is a table of the first rows, and a button for the others.
export function longTable(caption, columns, items, row, first = 20) {
  const node = h('div', {}, table(caption, columns, items.slice(0, first).map(row)));
  if (items.length > first) {
    const all = () => {
      node.replaceChildren(table(caption, columns, items.map(row)));
      node.firstChild.focus();
    };
    node.append(h('button', { class: 'more', type: 'button', onclick: all }, `Show all ${items.length}`));
  }
  return node;
}

// folded is a table that is made when it is opened.
export function folded(summary, make) {
  const node = h('details', { class: 'folded' }, h('summary', {}, summary));
  node.addEventListener('toggle', () => node.childElementCount < 2 && node.append(make()));
  return node;
}
