// Draws the report that is in the page, and nothing else.

import { h, plain, shown } from './dom.js';
import { left, share, span } from './format.js';
import { keyOf } from './keys.js';
import { limitsPanel } from './limits.js';
import { bansPanel, busiestPanel, comparedPanel, hotPanel, logPanel, trafficPanel } from './lists.js';
import { rulesPanel } from './rules.js';
import { hatches, timelinePanel } from './timeline.js';
import { counted, exact, stamp, zoneName } from './times.js';

// happened says in one sentence what stands out, as summary of the report does, with times in the zone of the page.
function happened({ events, top, timeline, rules }) {
  const parts = [];
  if (top.length) parts.push([keyOf(top[0]), ` made ${share(top[0].count, events)} of the events`]);
  if (timeline?.events.length > 1) {
    const most = Math.max(...timeline.events);
    parts.push([`the busiest ${span(1000 * timeline.bar_seconds)} began at ${stamp(timeline.start + timeline.events.indexOf(most) * timeline.bar_seconds)} with ${exact(most)} of them`]);
  }
  if (timeline?.refused) {
    const refused = timeline.refused.reduce((a, b) => a + b, 0);
    const rule = rules.filter((r) => r.refused).sort((a, b) => b.refused - a.refused)[0];
    parts.push([refused ? `${counted(refused, 'event')} (${share(refused, events)}) ${refused === 1 ? 'was' : 'were'} refused` : 'no event was refused', refused && rule ? [', most by ', shown(rule.name, 40)] : '']);
  }
  return [parts.map((part, i) => [i ? (i + 1 < parts.length ? '; ' : '; and ') : '', part]), '.'].flat(Infinity).filter((part) => part !== '');
}

// heading says which events the report is about.
function heading(report) {
  const title = report.files.length === 1 ? report.files[0] : counted(report.files.length, 'file');
  document.title = plain(`Lately replay: ${title}`);
  const node = h('div', { class: 'reporthead' }, h('h1', {}, 'Replay of ', shown(title, 120)));
  if (report.first === undefined) node.append(h('p', { class: 'sentence' }, 'There is no event.'));
  else {
    node.append(h('p', { class: 'lead' }, happened(report)));
    node.append(h('p', { class: 'sentence' }, h('b', {}, exact(report.events)), ` events by `, h('b', {}, exact(report.keys)), ` distinct values of ${report.key}, from ${stamp(report.first)} to ${stamp(report.last)} ${zoneName} (${left(1000 * (report.last - report.first))})`));
  }
  const { cut, late } = report;
  if (cut) {
    const parts = [cut.since === undefined ? '' : `since ${stamp(cut.since)}`, cut.until === undefined ? '' : `until ${stamp(cut.until)}`, ...(cut.where ?? [])].filter(Boolean);
    node.append(h('p', { class: 'sentence' }, plain(`Only a part of the log: ${parts.join(', ')}; ${counted(cut.left_out, 'event')} left out`, 2000)));
  }
  if (late?.events) node.append(h('p', { class: 'sentence' }, `${counted(late.events, 'late event')} left out, by up to ${late.most_seconds} s`));
  return node;
}

// problems are what could not be read or judged.
const problems = (report) => (report.problems ?? []).map((text) => h('p', { class: 'notice', role: 'alert' }, plain(text, 2000)));

function draw(report) {
  document.getElementById('main').append(...[
    hatches(), heading(report), ...problems(report), report.timeline && timelinePanel(report), rulesPanel(report), limitsPanel(report),
    comparedPanel(report), busiestPanel(report), trafficPanel(report), bansPanel(report), hotPanel(report), logPanel(report),
  ].filter(Boolean));
}

draw(JSON.parse(document.getElementById('report').textContent));

// A link to a key opens what is about it.
const linked = document.getElementById(location.hash.slice(1));
if (linked?.open === false) {
  linked.open = true;
  linked.scrollIntoView();
}
