// The page of one key: its windows, the decisions of rules about it now, its bans.

import { get } from './api.js';
import { windowBars } from './chart.js';
import { add, unban } from './dialogs.js';
import { h, keyNode, list, plain, ruleHref, setText, shown } from './dom.js';
import { count, date, left, rate, sentenceOf, span as spanText } from './format.js';
import { live, on, poll } from './live.js';
import { none, page, panel } from './parts.js';
import { refusalPanel } from './refusals.js';

export function keyView(main, params, signal) {
  const fields = params.getAll('field');
  const values = params.getAll('value');
  const ban = h('button', { type: 'button', class: 'danger admin', onclick: () => add({ values: report?.key ?? values, rule: sameFields(fields)[0]?.name }, again) }, 'Ban this key…');
  page(main, 'Key', ban);
  main.append(h('dl', { class: 'subject' }, fields.map((f, i) => h('div', {}, h('dt', {}, shown(f)), h('dd', {}, shown(values[i] ?? '', 4096))))));
  document.title = `${plain(values.join(' '), 40)} · Lately`;

  const windows = h('div', { class: 'windows' });
  const noWindow = none('No counter has these fields.');
  const rules = h('ul', { class: 'rows' });
  const noRule = none('No rule has these fields.');
  const bans = h('ul', { class: 'rows' });
  const noBan = none('This key is not banned.');
  const days = h('div', { class: 'windows' });
  const states = h('ul', { class: 'rows' });
  const hot = panel('Hot keys', 'keyhot', states, days);
  hot.hidden = true;
  const note = h('p', { class: 'notice note', hidden: true });
  const legend = h('p', { class: 'windowlegend' }, [['slot', 'counted'], ['current', 'the current slot'], ['cutslot', 'the oldest slot, partly in the window: in hi, not in lo'], ['edge', 'the window']]
    .map(([css, text]) => h('span', {}, h('i', { class: css }), text)));
  main.append(note, panel('Windows', 'windowspanel', windows, legend, noWindow.node), hot,
    panel('Current decision of each rule', 'verdicts', rules, noRule.node), refusalPanel(values, signal), panel('Bans', 'keybans', bans, noBan.node));

  let report = null;
  const again = poll(1000, signal, async () => {
    report = await get('key', { field: fields, value: values }, signal);
    report.at = live.now();
    show();
  });

  const show = () => {
    const counters = report.counters ?? [];
    noWindow.show(!counters.length);
    legend.hidden = !counters.length;
    list(windows, counters.map((c) => ({ ...c, at: report.at })), (c) => `${c.counter} ${c.span_ms}`, windowCard);
    const verdicts = report.rules ?? [];
    noRule.show(!verdicts.length);
    list(rules, verdicts, (r) => r.rule, verdict);
    hot.hidden = !report.hot?.length;
    list(states, report.hot ?? [], (k) => k.rule, hotState);
    list(days, (report.hot ?? []).map((k) => dayOf(k, report.at)), (c) => c.counter, windowCard);
    noBan.show(!report.bans?.length);
    list(bans, report.bans ?? [], (b) => b.rule, (b) => banRow(b, again));
  };
  on('ban unban', signal, () => again());
  on('second', signal, () => report && show());
  proxyNote(note, fields, values, signal).catch(() => {}); // the poll reports errors
}

// proxyNote explains a client such as proxy:127.0.0.1, and leads to it from the address.
async function proxyNote(note, fields, values, signal) {
  const proxy = values.find((v) => v.startsWith('proxy:'));
  if (proxy) {
    note.hidden = false;
    note.append(`The trusted proxy ${plain(proxy.slice(6), 60)} sent these requests without naming the client: it must send X-Forwarded-For. Until then, all its clients are one key.`);
    return;
  }
  const i = fields.indexOf('client');
  if (i < 0 || !/^[\da-f]*[.:][\da-f:.]*$/i.test(values[i])) return;
  const as = values.with(i, `proxy:${values[i]}`);
  const { counters, bans } = await get('key', { field: fields, value: as }, signal);
  if (!bans?.length && !counters?.some((c) => c.hi > 0)) return;
  note.hidden = false;
  note.append('This address is also a trusted proxy. Requests that it sent without naming the client are counted as ', keyNode(fields, as, 60), bans?.length ? ', which is banned.' : '.');
}

const sameFields = (fields) => [...live.rules.values()].filter((r) => r.kind !== 'hot' && r.fields.join('\n') === fields.join('\n'));

function windowCard({ counter, span_ms: ms, title = `last ${spanText(ms)}` }) {
  const lo = h('b', {});
  const hi = h('span', { class: 'dim' });
  const per = h('span', { class: 'dim per' });
  const place = h('div', { class: 'bars' });
  let drawn = 0;
  const node = h('section', { class: 'windowcard', 'aria-label': `${counter}, ${title}` },
    h('h3', {}, title, h('span', { class: 'tag' }, counter)), h('p', { class: 'count' }, lo, ' ', hi, per), place,
    h('p', { class: 'ends dim' }, h('span', {}, `${spanText(ms)} ago`), h('span', {}, 'now')));
  return { node, update: (c) => {
    setText(lo, count(c.lo));
    setText(hi, c.hi > c.lo ? `to ${count(c.hi)}` : '');
    setText(per, `${rate((1000 * c.lo) / ms)}/s`);
    if (c.at !== drawn) place.replaceChildren(windowBars(c, ms, c.at));
    drawn = c.at;
  } };
}

// dayOf is the last day of a key under a hot rule in the form of a window: its uses while
// it was hot.
function dayOf({ rule, day }, at) {
  const sum = day.reduce((n, s) => n + s.count, 0);
  return { counter: rule, title: 'last 24 h, while it was hot', span_ms: 86400e3, lo: sum, hi: sum, slots: day, at };
}

function hotState({ rule }) {
  const badge = h('span', { class: 'badge' });
  const bounds = h('span', {});
  const when = h('span', { class: 'dim' });
  const processes = h('ul', { class: 'some processes' });
  const node = h('li', { class: 'hotstate' }, badge, h('a', { class: 'name', href: ruleHref(rule) }, rule), bounds, when, processes);
  return { node, update: (k) => {
    setText(badge, k.hot ? 'hot' : 'not hot');
    badge.className = `badge ${k.hot ? 'refused' : 'unmatched'}`;
    setText(bounds, `${count(k.lo)}${k.hi > k.lo ? ` to ${count(k.hi)}` : ''} in ${spanText(k.span_ms)}`);
    setText(when, !k.hot ? '' : `since ${date(Date.parse(k.hot.since))}, ${k.hot.until ? `${left(Date.parse(k.hot.until) - live.now())} left` : 'always'}`);
    list(processes, k.processes.slice(0, 20), (p) => p.name, processRow);
  } };
}

function processRow({ name }) {
  const per = h('span', { class: 'dim' });
  return { node: h('li', {}, shown(name), ' ', per), update: (p) => setText(per, `${rate(p.events / 60)}/s`) };
}

function verdict({ rule }) {
  const badge = h('span', { class: 'badge' });
  const bar = h('i', { class: 'bar' });
  const remaining = h('span', { class: 'n' });
  const then = h('span', { class: 'dim rest' });
  const sentence = h('span', { class: 'dim sentence' }, sentenceOf(live.rules.get(rule) ?? {}));
  const node = h('li', { class: 'verdictrow' }, badge, h('a', { class: 'name', href: ruleHref(rule) }, rule), h('span', { class: 'track' }, bar), remaining, then, sentence);
  return { node, update: ({ decision: d }) => {
    const banned = d.banned_until_ms > live.now();
    setText(badge, d.allowed ? 'would allow' : banned ? 'banned' : 'would refuse');
    badge.className = `badge ${d.allowed ? 'allowed' : banned ? 'banned' : 'refused'}`;
    const used = d.limit ? Math.max(0, d.limit - d.remaining) / d.limit : 0;
    bar.style.width = `${100 * (banned ? 1 : used)}%`;
    bar.className = `bar ${d.allowed ? 'allowed' : banned ? 'banned' : 'refused'}`;
    setText(remaining, d.limit && !banned ? `${count(d.remaining)} of ${count(d.limit)} left` : '');
    const wait = d.retry_after_ms;
    setText(then, banned ? `until ${date(d.banned_until_ms)}, ${left(d.banned_until_ms - live.now())} left` : wait < 0 ? 'never' : wait > 0 ? `again in ${left(wait)}` : d.delay_ms > 0 ? `after a wait of ${left(d.delay_ms)}` : d.reset_after_ms > 0 ? `full limit in ${left(d.reset_after_ms)}` : '');
  } };
}

function banRow(ban, again) {
  const rest = h('span', { class: 'n' });
  const node = h('li', { class: 'keybanrow' }, h('span', { class: 'badge banned' }, ban.rule), h('span', { class: 'dim began' }, `since ${date(Date.parse(ban.since))}`, ban.count > 1 ? `, ban number ${ban.count} of this key` : ''),
    h('span', { class: 'reason' }, ban.reason ? shown(ban.reason, 120) : ''), h('span', { class: 'dim' }, `by ${plain(ban.source || 'hand')}`), rest,
    h('button', { type: 'button', class: 'admin', 'aria-label': `Unban ${plain(ban.key.join(' '), 60)} under ${ban.rule}`, onclick: () => unban(ban, again) }, 'Unban'));
  return { node, update: (b) => setText(rest, `${left(Date.parse(b.until) - live.now())} left`) };
}
