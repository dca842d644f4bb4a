// Why a key was refused lately: a panel of the page of one key.

import { get } from './api.js';
import { h, keyNode, list, ruleHref, setText, shown } from './dom.js';
import { ago, count, date, left } from './format.js';
import { live, poll } from './live.js';
import { none, panel } from './parts.js';

// refusalPanel asks every few seconds which keys with these values were refused.
export function refusalPanel(values, signal) {
  const rows = h('ul', { class: 'rows' });
  const empty = none('');
  const since = h('p', { class: 'dim foot' });
  poll(3000, signal, async () => {
    const answer = await get('explain', { key: values }, signal);
    const refusals = answer.refusals ?? [];
    empty.say(`Not refused since ${date(Date.parse(answer.since))}.`);
    empty.show(!refusals.length);
    setText(since, refusals.length ? `Keys that were last refused before ${date(Date.parse(answer.since))} may be missing.` : '');
    list(rows, refusals, (r) => JSON.stringify([r.rule, r.key, r.key_base64]), (r) => refusalRow(r, values));
  });
  return panel('Recent refusals', 'refusals', rows, empty.node, since);
}

function refusalRow({ rule, fields, key, key_base64: bytes }, values) {
  const times = h('b', { class: 'n' });
  const when = h('span', { class: 'dim when' });
  const event = h('span', { class: 'event' });
  const cause = h('span', { class: 'dim event' });
  const whole = key?.length !== values.length && !bytes && h('span', { class: 'whole' }, keyNode(fields, key, 60));
  const node = h('li', { class: 'refusalrow' }, h('span', { class: 'badge refused' }, 'refused'), h('a', { class: 'name', href: ruleHref(rule) }, rule), times, when, whole, event, cause);
  let drawn = '';
  return { node, update: (r) => {
    setText(times, r.count === 1 ? 'once' : `${count(r.count)} times`);
    const last = Date.parse(r.last);
    setText(when, r.count === 1 ? ago(live.now() - last) : `last ${ago(live.now() - last)}, first ${date(Date.parse(r.first))}`);
    if (drawn === r.example.time) return;
    drawn = r.example.time;
    event.replaceChildren(...request(r.example));
    setText(cause, reason(r.example.decision));
  } };
}

// request is what is known of an event.
function request({ method, host, path }) {
  return [method, host, path].filter(Boolean).flatMap((text) => [shown(text, 120), ' ']);
}

function reason(d) {
  if (d.banned_until_ms) return `refused by the ban until ${date(d.banned_until_ms)}`;
  if (d.missing) return `it had no ${d.missing}`;
  if (d.retry_after_ms === 0) return 'the store of limits was away, and on_store_failure is closed';
  if (d.retry_after_ms < 0) return `above the limit of ${count(d.limit)}: no waiting helps`;
  return `${count(d.remaining)} of ${count(d.limit)} were left: allowed ${left(d.retry_after_ms)} later, if no other came`;
}
