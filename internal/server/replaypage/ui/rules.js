// What each rule did.

import { h, shown } from './dom.js';
import { share, span } from './format.js';
import { panel } from './parts.js';
import { folded, keyOf, table } from './keys.js';
import { counted, exact } from './times.js';

export function rulesPanel(report) {
  if (!report.rules.length) return panel('Rules', 'effects', h('p', { class: 'none' }, 'No rule was judged. Give some with --limit, --ban, --hot or --rules.'));
  return panel('Rules and their effect', 'effects', ...about(report).map((text) => h('p', { class: 'sentence' }, text)), h('ul', { class: 'rows' }, report.rules.map(ruleRow)));
}

// about returns the sentences about all rules.
function about({ rules, all, events, resolution_seconds: judged, log_resolution_seconds: logged }) {
  const sentences = [];
  if (all && rules.filter((r) => r.kind !== 'hot').length > 1) sentences.push(`All rules together refuse ${exact(all.refused)} of ${exact(events)} events (${share(all.refused, events)}). Below are the refusals of each rule alone.`);
  if (judged === logged && judged > 1e-9) sentences.push(`The times of the log are precise to ${judged} s. A live server also has the fractions, and may refuse more or fewer events near a limit.`);
  return sentences;
}

const limitText = ({ n, span_seconds: seconds, period, burst }) => `${exact(n)} per ${period || span(1000 * seconds)}${burst ? `, burst ${exact(burst)}` : ''}`;

// ruleSentence says what a rule counts.
function ruleSentence(r) {
  const limits = r.limits?.length ? r.limits.map(limitText).join(' and ') : limitText(r);
  const what = {
    limit: `At most ${limits}`,
    ban: `More than ${limits} start a ban${r.ban_seconds ? ` of ${span(1000 * r.ban_seconds)}` : ''}`,
    hot: `Hot from ${limits}`,
  }[r.kind];
  return `${what}, by ${r.fields.join(', ')} (${r.algorithm}${r.zone ? `, ${r.zone}` : ''}${r.adapts ? ', adapts' : ''})`;
}

function ruleRow(r) {
  const head = h('h3', {}, shown(r.name), h('span', { class: 'tag' }, r.kind), r.mode ? h('span', { class: 'tag' }, r.mode) : null);
  const row = h('li', { class: 'effect' }, head, h('p', { class: 'sentence' }, ruleSentence(r)));
  if (r.kind === 'hot') {
    row.append(h('p', { class: 'did' }, h('b', {}, exact(r.hot_keys)), ` ${r.hot_keys === 1 ? 'key' : 'keys'} ran hot`));
    return row;
  }
  const all = r.allowed + r.refused;
  const banned = (r.timeline?.banned ?? []).reduce((a, b) => a + b, 0);
  const part = (css, n) => {
    const bar = h('span', { class: `bar ${css}` });
    bar.style.width = `${(100 * n) / Math.max(1, all)}%`;
    return bar;
  };
  row.append(h('div', { class: 'track', 'aria-hidden': 'true' }, part('banned dotted', banned), part('refused hatched', r.refused - banned), part('allowed', r.allowed)));
  row.append(h('p', { class: 'did' }, h('b', {}, exact(r.refused)), ` of ${exact(all)} events ${r.mode ? 'would have been ' : ''}refused (${share(r.refused, all)}), of ${counted(r.keys_refused, 'key')}`));
  if (r.lacking_sentence) row.append(h('p', { class: 'sentence' }, `${r.lacking_sentence}.`));
  if (r.bans !== undefined) row.append(h('p', { class: 'sentence' }, `${counted(r.bans, 'ban')} of ${counted(r.banned_keys, 'key')}.`));
  if (r.busiest?.length) row.append(folded(`Its busiest keys`, () => table(`Busiest keys of ${r.name}`, [[r.fields.join(', ')], ['Allowed', 'n'], ['Refused', 'n']], r.busiest.map((k) => [keyOf(k), exact(k.allowed), exact(k.refused)]))));
  return row;
}
