// Lists of keys: the busiest, the banned, the hot; and what is about the log itself.

import { h, plain, shown } from './dom.js';
import { left, share, span } from './format.js';
import { panel } from './parts.js';
import { folded, keyOf, longTable, sameKey, table } from './keys.js';
import { counted, exact, stamp } from './times.js';

// busiestPanel lists the busiest keys with their peaks. Each is a link to what else the report has about it.
export function busiestPanel(report) {
  if (!report.top.length) return null;
  const spans = Object.keys(report.top[0].peaks).sort((a, b) => parseInt(a, 10) - parseInt(b, 10));
  const refused = report.top[0].refused !== undefined;
  const fields = ['status', 'path', 'agent'].filter((name) => name !== report.key && report.traffic?.fields.some((f) => f.field === name));
  const sized = report.traffic?.bytes !== undefined;
  const columns = [[report.key], ['Events', 'n'], ['Share', 'n'], ...spans.map((s) => [`in ${span(1000 * parseInt(s, 10))}`, 'n']), ...(refused ? [['Refused', 'n']] : []), ...fields.map((f) => [`Most by ${f}`, 'most']), ...(sized ? [['Bytes', 'n']] : [])];
  const abouts = report.top.map((k, i) => aboutKey(k, `key-${i + 1}`, report));
  const link = (k, i) => h('a', { href: `#key-${i + 1}`, onclick: () => { abouts[i].open = true; } }, keyOf(k));
  const row = (k, i) => [link(k, i), exact(k.count), share(k.count, report.events), ...spans.map((s) => exact(k.peaks[s])), ...(refused ? [exact(k.refused)] : []), ...fields.map((f) => mostOf(k, f)), ...(sized ? [exact(k.traffic.bytes ?? 0)] : [])];
  return panel(`Busiest by ${report.key}`, 'busiest', h('p', { class: 'sentence' }, `${counted(report.top.length, 'key')} of ${exact(report.keys)}, with the most events that each had in any window of so long.`),
    longTable('Busiest keys with their peaks', columns, report.top, row), h('div', { class: 'abouts' }, abouts));
}

// aboutKey is what the report has about one of the busiest keys, which is shown when it is opened.
function aboutKey(k, id, { key: by, events, rules }) {
  const judging = rules.filter((r) => r.fields.join(',') === by);
  const all = (list, cells) => judging.flatMap((r) => (r[list] ?? []).filter((m) => sameKey(m, k)).map((m) => [shown(r.name, 40), ...cells(m)]));
  const some = (caption, columns, rows) => (rows.length ? table(caption, columns, rows) : null);
  const node = folded(keyOf(k), () => h('div', { class: 'about' },
    h('p', { class: 'sentence' }, `${counted(k.count, 'event')}, ${share(k.count, events)} of all${k.traffic?.bytes === undefined ? '' : `, and ${exact(k.traffic.bytes)} bytes`}.`),
    some('Its decisions by rule', [['Rule'], ['Allowed', 'n'], ['Refused', 'n']], all('busiest', (m) => [exact(m.allowed), exact(m.refused)])),
    some('Its bans', [['Banned by'], ['From'], ['To']], all('ban_list', (m) => [stamp(m.start), stamp(m.end)])),
    some('When it ran hot', [['Hot by'], ['First at']], all('first_hot', (m) => [stamp(m.t)])),
    (k.traffic?.fields ?? []).map((f) => table(`Its most frequent values of ${f.field}`, [[`${f.field} (${exact(f.values)})`], ['Events', 'n'], ['Share', 'n']], f.top.map((v) => [keyOf(v), exact(v.count), share(v.count, k.count)])))));
  node.id = id;
  return node;
}

// trafficPanel has a table of the most frequent values of each field.
export function trafficPanel({ traffic, events }) {
  if (!traffic?.fields.length) return null;
  const one = (f) => h('div', {}, h('h3', {}, `${f.field} (${f.more ? 'more than ' : ''}${exact(f.values)})`),
    longTable(`The most frequent values of ${f.field}`, [[f.field], ['Events', 'n'], ['Share', 'n'], ...(f.more ? [['At most too high by', 'n']] : [])], f.top, (v) => [keyOf(v), exact(v.count), share(v.count, events), ...(f.more ? [exact(v.over ?? 0)] : [])], 10));
  const bytes = traffic.bytes === undefined ? [] : [h('p', { class: 'sentence' }, `${exact(traffic.bytes)} bytes of responses.`)];
  return panel('Traffic', 'traffic', ...bytes, h('div', { class: 'about' }, traffic.fields.map(one)));
}

// most returns the most frequent value that a key has in a field, and its share.
function mostOf({ traffic, count }, field) {
  const value = traffic.fields.find((f) => f.field === field)?.top[0];
  return value ? h('span', {}, `${share(value.count, count)} `, keyOf(value, 40)) : '';
}

// bansPanel lists the bans of all rules, with a bar for each over the time of the log.
export function bansPanel(report) {
  const rules = report.rules.filter((r) => r.ban_list);
  if (!rules.length) return null;
  const bans = rules.flatMap((r) => r.ban_list.map((b) => ({ ...b, rule: r.name }))).sort((a, b) => a.start - b.start);
  const out = rules.reduce((sum, r) => sum + (r.bans_left_out ?? 0), 0);
  const note = out ? [h('p', { class: 'sentence' }, `${counted(out, 'ban')} more ${out === 1 ? 'is' : 'are'} not in this report, which has the first 1,000 of each rule.`)] : [];
  if (!bans.length) return panel('Bans', 'bans', h('p', { class: 'none' }, 'Nobody was banned.'));
  const row = (b) => [keyOf(b), shown(b.rule, 40), stamp(b.start), stamp(b.end), left(1000 * (b.end - b.start)), strip(b, report)];
  return panel(`Bans (${exact(bans.length + out)})`, 'bans', ...note,
    longTable('Bans', [['Key'], ['Rule'], ['From'], ['To'], ['Length', 'n'], ['In the log', 'stripcell']], bans, row));
}

// strip draws from when to when a ban lasted, in the time of the log.
function strip({ start, end }, { first, last }) {
  const whole = Math.max(last - first, 1e-9);
  const from = Math.min(1, Math.max(0, (start - first) / whole));
  const to = Math.min(1, Math.max(0, (end - first) / whole));
  const bar = h('span', { class: 'during' });
  bar.style.left = `${100 * from}%`;
  bar.style.width = `${Math.max(100 * (to - from), 0.5)}%`;
  return h('span', { class: `strip ${end > last ? 'longer' : ''}`, 'aria-hidden': 'true' }, bar);
}

// hotPanel lists the keys that ran hot, and when each did so first.
export function hotPanel(report) {
  const rules = report.rules.filter((r) => r.kind === 'hot');
  if (!rules.length) return null;
  const hot = rules.flatMap((r) => r.first_hot.map((m) => ({ ...m, rule: r.name }))).sort((a, b) => a.t - b.t);
  const out = rules.reduce((sum, r) => sum + r.hot_keys - r.first_hot.length, 0);
  if (!hot.length) return panel('Hot keys', 'hotkeys', h('p', { class: 'none' }, 'No key ran hot.'));
  const note = out ? [h('p', { class: 'sentence' }, `${counted(out, 'key')} more ${out === 1 ? 'is' : 'are'} not in this report, which has the first 100 of each rule.`)] : [];
  return panel(`Hot keys (${exact(hot.length + out)})`, 'hotkeys', ...note,
    longTable('Hot keys', [['Key'], ['Rule'], ['First hot at']], hot, (m) => [keyOf(m), shown(m.rule, 40), stamp(m.t)]));
}

// comparedPanel shows a limit under each algorithm.
export function comparedPanel({ compared, rules }) {
  if (!compared?.length) return null;
  const numbers = (c) => [c.allowed, c.refused, c.keys_refused, c.most_in_window, Math.round(c.bytes_per_key)].map(exact);
  const columns = [['Algorithm'], ['Allowed', 'n'], ['Refused', 'n'], ['Keys refused', 'n'], ['Most in any window', 'n'], ['Bytes per key', 'n']];
  return panel(plain(`${rules[0]?.name ?? 'The limit'} under each algorithm`), 'compared',
    table('The limit under each algorithm', columns, compared.filter((c) => !c.problem).map((c) => [c.algorithm, ...numbers(c)])),
    compared.filter((c) => c.problem).map((c) => h('p', { class: 'sentence' }, plain(`${c.algorithm}: ${c.problem}`))));
}

// logPanel is about the lines of the log.
export function logPanel(report) {
  const facts = [
    ['Lines', exact(report.lines)], ['Parsed', exact(report.parsed)], ['Skipped, of other kinds', exact(report.skipped)], ['Bad', exact(report.bad)],
    ['Format', report.format], ['Precision of the log', `${report.log_resolution_seconds} s`], ['Judged to', `${report.resolution_seconds} s`],
  ];
  return panel('The log', 'log', h('dl', { class: 'facts' }, facts.map(([name, value]) => h('div', {}, h('dt', {}, name), h('dd', {}, shown(value, 200))))),
    (report.jumps ?? []).map((j) => h('p', { class: 'sentence' }, `A jump in time from ${stamp(j.from)} to ${stamp(j.to)}.`)),
    (report.assumed_years ?? []).map((y) => h('p', { class: 'sentence' }, plain(`${y.file} has no years: the assumed year of its first line is ${y.year}.`))),
    report.years_by_clock ? h('p', { class: 'sentence' }, 'Some times have no year: each is read as the latest that is not more than a day ahead of the clock.') : null,
    report.zoneless ? h('p', { class: 'sentence' }, 'The times name no zone: they are read as UTC.') : null,
    report.bad_lines?.length ? folded('The first bad lines', () => table('Bad lines', [['Line'], ['Text']], report.bad_lines.map(badLine))) : null);
}

function badLine(b) {
  const text = b.text_base64 ? keyOf({ key_base64: [b.text_base64] }, 200) : h('span', { class: 'key' }, shown(b.text ?? '', 200));
  if (b.cut) text.append('…');
  return [shown(`${b.file}:${b.line}`, 60), text];
}
