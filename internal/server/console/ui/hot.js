// The keys that are hot, and what each hot rule has counted and saved in the last day.

import { get, post } from './api.js';
import { SlotChart } from './chart.js';
import { empty, makeHot } from './commands.js';
import { addHot, ignoreHot, removeHot } from './dialogs.js';
import { h, keyNode, list, plain, setText } from './dom.js';
import { age, count, date, left, many, rate, sentenceOf, share, span as spanText } from './format.js';
import { live, on, poll, slotsOf } from './live.js';
import { choice, page, store, stored } from './parts.js';
import { toast } from './toast.js';

// The number of parts of each span that can be shown.
const spans = new Map([[900e3, 15], [3600e3, 60], [21600e3, 36], [86400e3, 48]]);

export function hotView(main, _, signal) {
  const total = h('span', { class: 'dim total' });
  let span = Number(stored('hotspan', 900e3));
  if (!spans.has(span)) span = 900e3;
  const pick = choice('Span', [...spans.keys()].map((ms) => [ms, spanText(ms)]), span, (ms) => {
    span = ms;
    store('hotspan', ms);
    course();
  });
  page(main, 'Hot', total, pick, h('button', { type: 'button', class: 'primary admin addhot', onclick: () => addHot(() => again()) }, 'Add a hot key…'));
  const rules = h('div', { class: 'windows hotrules' });
  const noRule = empty('There is no hot rule. Hot rules are in the rules file under “hot”.', ...makeHot());
  const rows = h('ul', { class: 'rows' });
  const heads = ['Key', 'Rule', 'Rate', 'Count', 'Reported by', 'Hot for', 'Left', ''].map((text) => h('span', {}, text));
  const box = h('div', { class: 'hotlist', hidden: true }, h('div', { class: 'heads hotheads', 'aria-hidden': 'true' }, heads), rows);
  const nothing = empty('No key is hot.');
  const ignored = h('ul', { class: 'rows hotlist ignoredlist' });
  const ignoring = h('h2', { hidden: true }, 'Ignored by hand');
  main.append(rules, noRule.node, box, nothing.node, ignoring, ignored);

  let hot = [];
  let stats = [];
  let minute = {};
  let rates = [];
  const cards = () => {
    const all = [...live.rules.values()].filter((r) => r.kind === 'hot');
    noRule.show(!all.length);
    pick.hidden = !all.length;
    nothing.suggest(...(all.length ? makeHot(all[0].name) : []));
    const slots = (name) => rates.map((r) => ({ ...r, uses: r.hot?.[name]?.events ?? 0 }));
    list(rules, all.map((r) => ({ ...r, span, slots: slots(r.name), minute: minute[r.name], stats: stats.find((s) => s.rule === r.name) })), (r) => `${r.name} ${r.sentence}`, (r) => card(r, signal));
  };
  const show = () => {
    const now = hot.filter((k) => !k.until || Date.parse(k.until) > live.now());
    setText(total, many(now.length, 'key'));
    nothing.show(!now.length && [...live.rules.values()].some((r) => r.kind === 'hot'));
    box.hidden = !now.length;
    for (const k of now) k.span_ms = stats.find((s) => s.rule === k.rule)?.span_ms;
    list(rows, now, (k) => JSON.stringify([k.rule, k.key_base64 ?? k.key, Boolean(live.fieldsOf(k.rule)), !k.until, k.hand]), (k) => row(k, () => again()), true);
  };
  const again = poll(4000, signal, async () => {
    const [keys, all, last] = await Promise.all([get('hot', {}, signal), get('hot/stats', {}, signal), get('rates', { span: '1m', points: 1, rules: 1 }, signal)]);
    hot = keys.hot ?? [];
    stats = all.rules ?? [];
    minute = last.rates?.at(-1)?.hot ?? {};
    const kept = stats.flatMap((s) => (s.ignored_keys ?? []).map((k) => ({ ...k, rule: s.rule })));
    ignoring.hidden = !kept.length;
    list(ignored, kept, (k) => JSON.stringify([k.rule, k.key_base64 ?? k.key]), (k) => ignoredRow(k, () => again()));
    show();
    cards();
  });
  const course = poll(10e3, signal, async () => {
    const asked = span;
    const answer = await get('rates', { span: `${asked / 1000}s`, points: spans.get(asked), rules: 1 }, signal);
    if (asked !== span) return; // the span has changed, and is sent next
    rates = slotsOf(answer.rates ?? []);
    cards();
  });
  on('hot', signal, () => again());
  on('second', signal, show);
  on('rules', signal, cards);
  cards();
}

// card shows one hot rule: its events in the last minute and in the span, and what caches saved.
function card({ name, sentence }, signal) {
  const per = h('b', {});
  const hot = h('span', { class: 'tag' });
  const saved = new Map([[60e3, 'minute'], [3600e3, 'hour'], [86400e3, 'day']].map(([ms, text]) => [ms, [text, h('dd', {})]]));
  const reports = h('p', { class: 'dim' }, 'No cache reports how many reads it saved.');
  const shares = h('dl', { class: 'saved', 'aria-label': 'Reads served from memory in the last minute, hour and day' }, [...saved.values()].map(([text, dd]) => h('div', {}, h('dt', {}, text), dd)));
  const chart = new SlotChart({ label: `Uses per second under ${plain(name, 80)}`, layers: [{ name: 'uses', css: 'allowed', value: (s) => s.uses }], offset: () => live.offset });
  signal.addEventListener('abort', () => chart.close());
  const memory = h('p', { class: 'dim' }, 'Served from memory');
  const node = h('section', { class: 'windowcard', 'aria-label': `Hot rule ${plain(name, 80)}` }, h('h2', {}, name, hot),
    h('p', { class: 'count' }, per, h('span', { class: 'dim' }, 'uses a second, last minute')), memory, shares, reports, chart.node, h('p', { class: 'dim sentence' }, sentenceOf({ name, sentence })));
  return { node, update: ({ minute, stats, slots, span }) => {
    setText(per, rate((minute?.events ?? 0) / 60));
    setText(hot, `${count(stats?.hot ?? 0)} hot`);
    const reads = (s) => s.hits + s.misses;
    const told = stats?.saved?.some((s) => reads(s) > 0) ?? false;
    shares.hidden = memory.hidden = !told;
    reports.hidden = told;
    for (const s of stats?.saved ?? []) {
      const dd = saved.get(s.span_ms)?.[1];
      if (!dd) continue;
      setText(dd, reads(s) ? share(s.hits, reads(s)) : '–');
      dd.title = `${count(s.hits)} of ${count(reads(s))} reads; ${count(s.loads)} loads, ${count(s.stale)} stale`;
    }
    chart.show(slots, { span, paused: live.paused });
  } };
}

function row(k, again) {
  const rest = h('span', { class: 'n' });
  const since = h('span', { class: 'dim since' });
  const per = h('b', { class: 'n per' });
  const bounds = h('span', { class: 'dim bounds' });
  const processes = h('span', { class: 'dim processes' });
  const bar = h('i', { class: 'bar refused' });
  const button = (text, f) => h('button', { type: 'button', class: 'admin', 'aria-label': `${text.replace('…', '')} ${plain(k.key.join(' '), 60)} under ${plain(k.rule, 60)}`, onclick: () => f(k, again) }, text);
  const node = h('li', { class: 'hotline' }, keyNode(live.fieldsOf(k.rule), k.key, 72),
    h('span', { class: 'tags' }, h('span', { class: 'tag' }, k.rule), k.hand && h('span', { class: 'tag' }, 'by hand')), per, h('span', { class: 'about' }, bounds, processes, since),
    h('span', { class: 'lefts' }, rest, h('span', { class: 'track thin' }, bar)),
    h('span', { class: 'acts' }, k.until && [button('Remove…', removeHot), button('Ignore…', ignoreHot)]));
  return { node, update: ({ since: from, until, rate: events, lo, hi, processes: n, span_ms: ms }) => {
    const [a, b] = [Date.parse(from), Date.parse(until)];
    setText(per, `${rate(events ?? 0)}/s`);
    setText(bounds, `${hi === lo ? count(lo) : hi ? `${count(lo)} to ${count(hi)}` : lo ? `${count(lo)} or more` : '0'}${ms ? ` in ${spanText(ms)}` : ''}`);
    setText(processes, n ? many(n, 'process', 'processes') : 'no reports');
    since.replaceChildren(h('span', { class: 'word' }, 'hot for '), age(live.now() - a));
    since.title = date(a);
    setText(rest, until ? `${left(b - live.now())} left` : 'always');
    bar.style.width = until ? `${Math.max(0, Math.min(100, (100 * (b - live.now())) / (b - a)))}%` : '100%';
  } };
}

function ignoredRow(k, again) {
  const end = async () => {
    try {
      await post('hot/ignore', { rule: k.rule, ...(k.key_base64 ? { key_base64: k.key_base64 } : { key: k.key }), off: true });
      toast('The key is counted again.');
      again();
    } catch (err) {
      toast(err.message, 'bad');
    }
  };
  return { node: h('li', { class: 'ignoredline' }, keyNode(live.fieldsOf(k.rule), k.key, 72), h('span', { class: 'tag' }, k.rule),
    h('button', { type: 'button', class: 'admin', 'aria-label': `Count ${plain(k.key.join(' '), 60)} again under ${plain(k.rule, 60)}`, onclick: end }, 'Count again')) };
}
