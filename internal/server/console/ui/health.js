// The health of the server: a dot and a sentence, and what they are made of.

import { h, setText } from './dom.js';
import { age, bytes, count, left, many, share } from './format.js';
import { live } from './live.js';
import { facts } from './parts.js';

// Health is one line, which opens. While something is wrong, it says what.
export class Health {
  constructor() {
    this.text = h('span', {});
    this.why = h('ul', { class: 'why' });
    this.gauge = h('i', { class: 'bar' });
    this.meter = h('div', { class: 'track', role: 'meter', 'aria-label': 'Memory of limits and bans', 'aria-valuemin': 0, 'aria-valuemax': 100, 'aria-valuenow': 0 }, this.gauge);
    this.memory = facts({ used: 'Limits and bans', counters: 'Counters', heap: 'Heap' });
    this.rules = facts({ file: 'Rules file', since: 'In force for', reloads: 'Reloads', store: 'Limits shared by' });
    this.bans = facts({ held: 'Bans in force', remembered: 'Bans remembered', full: 'Bans refused for memory', subscribers: 'Subscribers' });
    this.server = facts({ up: 'Up for', version: 'Version' });
    this.node = h('details', { class: 'panel health' }, h('summary', {}, h('i', { class: 'dot' }), this.text), this.why,
      h('div', { class: 'columns' }, h('div', {}, this.meter, this.memory.node), this.rules.node, this.bans.node, this.server.node));
  }

  // show shows a status. others is what is wrong around the server.
  show(s, others) {
    const full = s.memory.budget ? Math.min(100, (100 * s.memory.bytes) / s.memory.budget) : 0;
    this.gauge.style.width = `${full}%`;
    this.gauge.className = `bar ${full > 95 ? 'banned' : full > 80 ? 'refused' : 'allowed'}`;
    this.meter.setAttribute('aria-valuenow', full.toFixed(0));
    const wrong = [...troubles(s), ...others];
    const bad = wrong.length > 0;
    if (bad && !this.node.classList.contains('bad')) this.node.open = true;
    this.node.classList.toggle('bad', bad);
    const { held } = s.bans;
    setText(this.text, bad ? `${wrong[0].what}${wrong.length > 1 ? `, and ${wrong.length - 1} more` : ''}`
      : `Healthy: ${live.book ? `${live.rules.size ? many(live.rules.size, 'rule') : 'no rules'}, ` : ''}${many(held, 'ban')}, ${bytes(s.memory.bytes)} of ${bytes(s.memory.budget)}, up for ${left(live.now() - Date.parse(s.started))}`);
    const lines = JSON.stringify(wrong);
    if (lines !== this.lines) this.why.replaceChildren(...wrong.map((w) => h('li', {}, h('b', {}, `${w.what}. `), w.why ?? '')));
    this.lines = lines;
    this.#facts(s);
  }

  #facts(s) {
    this.memory.set('used', `${bytes(s.memory.bytes)} of ${bytes(s.memory.budget)} (${share(s.memory.bytes, s.memory.budget)})`);
    this.memory.set('counters', bytes(s.memory.counter_bytes));
    this.memory.set('heap', bytes(s.memory.heap));
    this.rules.set('file', s.rules.file || 'none');
    this.rules.set('since', age(live.now() - Date.parse(s.rules.since)));
    this.rules.set('reloads', count(s.rules.reloads));
    this.rules.set('store', s.store ? many(s.store.nodes, 'server') : 'this server only');
    this.bans.set('held', count(s.bans.held));
    this.bans.set('remembered', count(s.bans.remembered));
    this.bans.set('full', count(s.bans.refused));
    this.bans.set('subscribers', count(s.subscribers));
    this.server.set('up', left(live.now() - Date.parse(s.started)));
    this.server.set('version', s.version);
  }
}

// troubles returns what is wrong with the server, the most important first: what, and why.
function troubles({ rules, storage, store, memory }) {
  const found = [];
  const add = (is, what, why) => is && found.push({ what, why });
  const lost = (error) => `${error}. Decisions continue; changes may not survive a restart.`;
  add(storage?.journal_error, 'Bans are not written to disk', lost(storage?.journal_error));
  add(storage?.snapshot_error, 'Snapshots are not written to disk', lost(storage?.snapshot_error));
  add(store && !store.up, 'The store is down', `${store?.error ?? ''} on_store_failure of each rule decides.`);
  add(rules.error, 'The last reload failed', `${rules.error} The previous rules stay in force.`);
  add(store?.up && store.other_rules, 'Servers enforce different rules', `${count(store?.other_rules ?? 0)} of ${count(store?.nodes ?? 0)} have other rules than this one.`);
  add(memory.budget && memory.bytes > 0.95 * memory.budget, 'The memory for limits and bans is full', 'Raise memory, or keys are evicted early.');
  return found;
}
