// What a draft of the rules would have changed for the events that the server keeps.

import { post } from './api.js';
import { h, keyNode, plain } from './dom.js';
import { count, date, left, many, share } from './format.js';
import { none } from './parts.js';

// A trial may take longer than other requests.
const longest = 65e3;

// tryDraft asks the server and returns the nodes that show its answer.
export async function tryDraft(text) {
  const trial = await post('rules/try', { rules: text }, longest);
  return { errors: trial.errors ?? [], nodes: trial.changes ? shown(trial) : [] };
}

function shown({ events, since, first, last, unknown, changes: d }) {
  const same = none('The draft decides each of these events as the rules in force do, and bans the same keys for the same time.');
  same.show(!d.newly_refused && !d.newly_allowed && !d.bans.length);
  return [
    figures(
      figure('refused', 'Newly refused', count(d.newly_refused), `${share(d.new.refused, events)} refused, was ${share(d.old.refused, events)}`),
      figure('allowed', 'Newly allowed', count(d.newly_allowed), `${count(d.new.allowed)} allowed, was ${count(d.old.allowed)}`),
      figure('banned', 'Bans', count(d.new.bans), `was ${count(d.old.bans)}`)),
    h('p', { class: 'sentence' }, events
      ? `${many(events, 'event')}, from ${date(Date.parse(first))} to ${date(Date.parse(last))}, were judged under both. The server has all since ${date(Date.parse(since))}.`
      : `The server has kept no event since ${date(Date.parse(since))}.`),
    same.node,
    rows(`Decided differently, by ${plain(d.field, 60)}`, d.keys, d.keys_left_out, (k) => [keyNode([d.field], k.key, 60),
      h('b', { class: 'n' }, [k.newly_refused && `${count(k.newly_refused)} newly refused`, k.newly_allowed && `${count(k.newly_allowed)} newly allowed`].filter(Boolean).join(', ')),
      h('span', { class: 'dim rest' }, `${count(k.new_refused)} of ${count(k.events)} events refused, was ${count(k.old_refused)}`)]),
    rows('Bans of another length', d.bans, d.bans_left_out, (b) => [keyNode(b.fields, b.key, 60),
      h('b', { class: 'n' }, b.new_seconds ? `banned for ${left(1000 * b.new_seconds)}` : 'not banned'),
      h('span', { class: 'dim rest' }, `by ${plain(b.fields.join(', '), 60)}; was ${b.old_seconds ? `banned for ${left(1000 * b.old_seconds)}` : 'not banned'}`)]),
    h('details', { open: true }, h('summary', {}, 'Not included'), h('ul', { class: 'unknown' }, unknown.map((u) => h('li', {}, plain(u, 500))))),
  ];
}

// emptyTrial is the figures before a trial.
export const emptyTrial = () => [
  figures(figure('refused', 'Newly refused', '–', ''), figure('allowed', 'Newly allowed', '–', ''), figure('banned', 'Bans', '–', '')),
  h('p', { class: 'dim' }, 'Change the copy, then try it on the events that the server keeps.'),
];

const figures = (...three) => h('dl', { class: 'figures trial' }, three);
const figure = (css, name, n, rest) => h('div', { class: css }, h('dt', {}, name), h('dd', {}, h('b', {}, n), h('span', {}, rest)));

function rows(heading, items, more, cells) {
  if (!items.length) return null;
  return h('div', {}, h('h3', {}, heading), h('ul', { class: 'rows' }, items.map((item) => h('li', { class: 'changerow' }, cells(item)))),
    more ? h('p', { class: 'dim' }, `and ${count(more)} more`) : null);
}
