// The keys that are hot.

import { get } from './api.js';
import { h, keyNode, list, setText } from './dom.js';
import { age, count, date, left } from './format.js';
import { live, on, poll } from './live.js';
import { none, page } from './parts.js';

export function hotView(main, _, signal) {
  const total = h('span', { class: 'dim total' });
  page(main, 'Hot', total);
  const rules = h('div', { class: 'sentences' });
  const rows = h('ul', { class: 'rows hotlist' });
  const nothing = none('No key is hot.');
  main.append(rules, rows, nothing.node);

  let hot = [];
  const sentences = () => {
    const all = [...live.rules.values()].filter((r) => r.kind === 'hot');
    rules.replaceChildren(...(all.length ? all.map((r) => h('p', { class: 'sentence' }, r.sentence)) : [h('p', { class: 'sentence' }, 'There is no hot rule. Hot rules are in the rules file under “hot”.')]));
  };
  const show = () => {
    const now = hot.filter((k) => !k.until || Date.parse(k.until) > live.now());
    setText(total, now.length === 1 ? '1 key' : `${count(now.length)} keys`);
    nothing.show(!now.length);
    list(rows, now, (k) => JSON.stringify([k.rule, k.key, Boolean(live.fieldsOf(k.rule))]), row, true);
  };
  const again = poll(4000, signal, async () => {
    hot = (await get('hot', {}, signal)).hot ?? [];
    show();
  });
  on('hot', signal, () => again());
  on('second', signal, show);
  on('rules', signal, sentences);
  sentences();
}

function row(k) {
  const rest = h('b', { class: 'n' });
  const since = h('span', { class: 'dim' });
  const bar = h('i', { class: 'bar refused' });
  const node = h('li', { class: 'hotline' }, keyNode(live.fieldsOf(k.rule), k.key, 72), h('span', { class: 'tag' }, k.rule), since, h('span', { class: 'track' }, bar), rest);
  return { node, update: ({ since: from, until }) => {
    const [a, b] = [Date.parse(from), Date.parse(until)];
    setText(since, `hot for ${age(live.now() - a)}`);
    since.title = date(a);
    setText(rest, until ? `${left(b - live.now())} left` : 'always');
    bar.style.width = until ? `${Math.max(0, Math.min(100, (100 * (b - live.now())) / (b - a)))}%` : '100%';
  } };
}
