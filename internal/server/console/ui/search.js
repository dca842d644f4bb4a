// The keys that begin like what is typed: those of counters, and those that are banned.

import { get } from './api.js';
import { h, keyNode } from './dom.js';
import { count } from './format.js';
import { live } from './live.js';

const most = 8;

// complete shows in list the keys of these fields that begin like the text in input, the first field's value. show is
// called with the one that is chosen, with the mouse or with arrows and Enter.
export function complete(input, list, fields, show) {
  let timer = 0;
  let keys = [];
  let at = -1;
  for (const [name, value] of Object.entries({ role: 'combobox', 'aria-autocomplete': 'list', 'aria-controls': list.id })) input.setAttribute(name, value);
  const mark = (i) => {
    at = i;
    [...list.children].forEach((li, j) => li.setAttribute('aria-selected', String(i === j)));
    if (i < 0) input.removeAttribute('aria-activedescendant');
    else input.setAttribute('aria-activedescendant', `found-${i}`);
  };
  const draw = (found) => {
    keys = found;
    list.replaceChildren(...keys.map((k, i) => h('li', { role: 'option', id: `found-${i}`, 'aria-selected': 'false', onmousedown: () => show(fields, k.key) }, keyNode(null, k.key, 48), h('span', { class: 'dim' }, k.what))));
    list.hidden = !keys.length;
    input.setAttribute('aria-expanded', String(keys.length > 0));
    mark(-1);
  };
  draw([]);
  input.addEventListener('input', () => {
    clearTimeout(timer);
    timer = setTimeout(async () => {
      const text = input.value;
      const found = text ? await keysLike(text, fields).catch(() => []) : [];
      if (text === input.value && input.isConnected) draw(found);
    }, 150);
  });
  input.addEventListener('keydown', (e) => {
    if (e.key === 'Enter' && at >= 0) show(fields, keys[at].key);
    else if (e.key === 'ArrowDown' && keys.length) mark(at + 1 < keys.length ? at + 1 : -1);
    else if (e.key === 'ArrowUp' && keys.length) mark(at < 0 ? keys.length - 1 : at - 1);
    else return;
    e.preventDefault();
  });
}

// prefix is a pattern of the keys that begin with text.
export const prefix = (text) => `${text.replace(/[*?[\]\\]/g, '\\$&')}*`;

// keysLike asks for keys of these fields that begin with text, or for a client with it behind proxy:, and for bans that have it.
async function keysLike(text, fields) {
  const same = (of) => of?.join('\n') === fields.join('\n');
  const counters = (live.book?.counters ?? []).filter((c) => same(c.fields));
  const patterns = fields.includes('client') ? [prefix(text), prefix(`proxy:${text}`)] : [prefix(text)];
  const tops = counters.flatMap((c) => patterns.map((pattern) => get(`counters/${encodeURIComponent(c.name)}/top`, { n: most, pattern }).then(({ top }) => (top ?? []).map((k) => ({ ...k, what: `${count(k.hi)} counted` })), () => [])));
  const bans = get('bans', { q: text, limit: most }).then((page) => (page.bans ?? []).filter((b) => same(live.fieldsOf(b.rule))).map((b) => ({ ...b, what: `banned under ${b.rule}` })), () => []);
  const found = new Map();
  for (const k of (await Promise.all([...tops, bans])).flat()) {
    if (k.key_base64) continue; // a link cannot have it
    const before = found.get(k.key.join('\t'));
    if (before) before.what += before.what === k.what ? '' : `, ${k.what}`;
    else found.set(k.key.join('\t'), { ...k });
  }
  return [...found.values()].slice(0, most);
}
