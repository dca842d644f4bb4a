// The top keys of a counter.

import { get } from './api.js';
import { h, keyNode, list, plain, ruleHref, setText } from './dom.js';
import { countKey, empty } from './commands.js';
import { bytes, count, many, rate, sentenceOf, share, span as spanText } from './format.js';
import { on, poll } from './live.js';
import { find } from './dialogs.js';
import { prefix } from './search.js';
import { choice, none, page, store, stored } from './parts.js';

// filterOf returns the query for the keys that q selects: a network, or a prefix.
export function filterOf(q) {
  if (!q) return {};
  if (/^[0-9a-f.:]+\/\d{1,3}$/i.test(q)) return { network: q };
  return { pattern: prefix(q) };
}

// word is what the head of a column says, for screens without heads.
const word = (text) => h('span', { class: 'word' }, text);

export function keysView(main, params, signal) {
  page(main, 'Keys', h('button', { type: 'button', onclick: () => find() }, 'Search a key'));
  const sentence = h('p', { class: 'sentence' });
  const controls = h('div', { class: 'controls' });
  const rows = h('ol', { class: 'rows' });
  const heads = ['', 'Key', '', 'Count', '', 'Per second', 'Peak', 'Refused'].map((text) => h('span', {}, text));
  const box = h('div', { class: 'toplist', hidden: true }, h('div', { class: 'heads keyheads', 'aria-hidden': 'true' }, heads), rows);
  const nothing = none('');
  const noCounter = empty('There is no counter. Declare one in the rules file, as in “counters: {requests: {key: client, spans: [1m, 1h]}}”, or add to one.');
  const foot = h('p', { class: 'dim foot' }, 'A bar ends at lo, its light part at hi: the true count is between them. The peak is the rate in the busiest tenth of the span. Refusals are counted for spans of up to an hour, and named by the rule that refused most.');
  main.append(controls, sentence, box, nothing.node, noCounter.node, foot);

  let counters = [];
  let name = params.get('counter') ?? stored('counter', '');
  let ms = Number(stored('keyspan', 60e3));
  let n = Number(stored('keys', 20));
  let q = params.get('q') ?? '';
  let typing = 0;
  const search = h('input', { type: 'search', 'aria-label': 'Only keys with this prefix, or in this network', placeholder: 'Prefix, or network such as 192.0.2.0/24', value: q, maxlength: 1000, spellcheck: 'false', autocapitalize: 'off', autocomplete: 'off', oninput: () => {
    clearTimeout(typing);
    typing = setTimeout(() => {
      q = search.value.trim();
      again();
    }, 250);
  } });
  let built = '';
  let again = () => {};

  const counter = () => counters.find((c) => c.name === name) ?? counters[0];
  const build = () => {
    const c = counter();
    noCounter.suggest(...(c ? [] : countKey()));
    noCounter.show(!c);
    foot.hidden = !c;
    const is = JSON.stringify([counters.map((x) => x.name), c?.name, c?.spans_ms]);
    if (is === built) return;
    built = is;
    if (!c) {
      controls.replaceChildren();
      return;
    }
    const spans = c.spans_ms.length ? [...new Set(c.spans_ms)].sort((a, b) => a - b) : [60e3];
    if (!spans.includes(ms)) ms = spans.find((s) => s >= 60e3) ?? spans.at(-1);
    const pickCounter = h('select', { 'aria-label': 'Counter', onchange: (e) => {
      name = e.target.value;
      store('counter', name);
      build();
      again();
    } }, counters.map((x) => h('option', { selected: x.name === c.name }, x.name)));
    controls.replaceChildren(h('label', {}, h('span', { class: 'hide' }, 'Counter'), pickCounter),
      choice('Span', spans.map((s) => [s, spanText(s)]), ms, (s) => {
        ms = s;
        store('keyspan', s);
        again();
      }),
      choice('How many', [[20, 'Top 20'], [50, '50'], [200, '200']], n, (k) => {
        n = k;
        store('keys', k);
        again();
      }), search);
  };

  const show = (top) => {
    const c = counter();
    const most = Math.max(1, ...top.map((k) => k.hi));
    nothing.say(q ? 'No key like that was counted in this span.' : 'No key was counted in this span.');
    nothing.show(!top.length);
    box.hidden = !top.length;
    list(rows, top, (k) => JSON.stringify([c.name, k.key]), (k) => {
      const rank = h('span', { class: 'rank' });
      const bar = h('i', { class: 'bar allowed' });
      const tail = h('i', { class: 'bar tail' });
      const lo = h('b', { class: 'n' });
      const hi = h('span', { class: 'dim hi' });
      const per = h('span', { class: 'dim per' });
      const peak = h('span', { class: 'dim peak' });
      const refused = h('a', { class: 'refusedby' });
      const node = h('li', { class: 'toprow' }, rank, keyNode(c.fields, k.key, 64), h('span', { class: 'track' }, bar, tail), lo, hi, per, peak, refused);
      return { node, update: (now, i) => {
        setText(rank, String(i + 1));
        bar.style.width = `${(100 * now.lo) / most}%`;
        tail.style.width = `${(100 * (now.hi - now.lo)) / most}%`;
        setText(lo, count(now.lo));
        setText(hi, now.hi > now.lo ? `to ${count(now.hi)}` : '');
        setText(per, `${rate((1000 * now.lo) / ms)}/s`);
        peak.replaceChildren(...(now.peak_per_second ? [word('peak '), `${rate(now.peak_per_second)}/s`] : []));
        refused.hidden = !now.refused;
        if (!now.refused) return;
        const part = now.refused < now.hi ? share(now.refused, Math.max(now.estimate, now.refused)) : count(now.refused);
        refused.replaceChildren(`${part} `, word('refused '), `by ${plain(now.refused_by, 40)}`);
        refused.href = ruleHref(now.refused_by);
      } };
    }, true);
  };

  const read = async () => {
    counters = (await get('counters', {}, signal)).counters ?? [];
    build();
    const c = counter();
    setText(sentence, c ? `${sentenceOf(c)} ${many(c.keys, 'key')} in ${bytes(c.bytes)}.` : '');
  };
  const question = () => JSON.stringify([counter()?.name, ms, n, q]);
  again = poll(2000, signal, async () => {
    if (!counters.length) await read();
    const c = counter();
    if (!c) return;
    const asked = question();
    const { top } = await get(`counters/${encodeURIComponent(c.name)}/top`, { n, span: `${ms}ms`, ...filterOf(q) }, signal);
    if (asked === question()) show(top ?? []); // else the query has changed, and is sent next
  });
  poll(8000, signal, read);
  on('rules', signal, () => read().catch(() => {}));
}
