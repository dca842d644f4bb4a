// What the server depends on: who enforces its bans, and the logs that it follows.

import { h, list, plain, setText, shown } from './dom.js';
import { ago, bytes, count, left, many } from './format.js';
import { live } from './live.js';
import { panel } from './parts.js';

// How many milliseconds a log or a target may be late before the console shows it as behind.
const tooLate = 10e3;

// Around is two panels, which are hidden from a server that has nothing for them.
export class Around {
  constructor() {
    this.networks = h('p', { class: 'dim' });
    this.targets = h('ul', { class: 'rows' });
    this.logs = h('ul', { class: 'rows' });
    this.enforcement = panel('Enforcement', 'enforcement', this.networks, this.targets);
    this.followed = panel('Followed logs', 'followed', this.logs);
    this.nodes = [this.enforcement, this.followed];
  }

  // show returns what is wrong: what, and why.
  show({ enforcement, logs }) {
    this.enforcement.hidden = !enforcement;
    this.followed.hidden = !logs?.length;
    if (enforcement) {
      const skipped = Object.values(enforcement.skipped ?? {}).reduce((a, b) => a + b, 0);
      setText(this.networks, `${many(enforcement.networks, 'address or network', 'addresses and networks')}${skipped ? `; ${skipped === 1 ? '1 ban is' : `${count(skipped)} bans are`} not enforced` : ''}`);
    }
    const [targets, files] = [(enforcement?.targets ?? []).map(stateOfTarget), (logs ?? []).map(stateOfLog)];
    list(this.targets, targets, (s) => s.name, row);
    list(this.logs, files, (s) => s.name, row);
    return [...targets, ...files].filter((s) => s.bad).map((s) => ({ what: `${plain(s.name, 40)}: ${s.state[0].toLowerCase()}${s.state.slice(1)}`, why: plain(s.error ?? '') }));
  }
}

function stateOfTarget({ name, lag_ms: lag, error, failures, repairs }) {
  const state = error ? 'Fails' : lag > tooLate ? `${left(lag)} behind` : 'Has all bans';
  const rest = [failures && many(failures, 'failed attempt'), repairs && many(repairs, 'repair')].filter(Boolean).join(', ');
  return { name, state, bad: Boolean(error) || lag > tooLate, error, rest };
}

function stateOfLog(log) {
  const behind = log.lag_ms > tooLate;
  const state = log.problem ? 'Cannot be read' : behind ? `${left(log.lag_ms)} behind` : log.silent ? 'Silent' : 'Up to date';
  const rest = [`last line ${ago(live.now() - Date.parse(log.last_line))}`, many(log.lines, 'line'), log.bad && `${count(log.bad)} bad`, log.late && `${count(log.late)} late`,
    log.gaps && many(log.gaps, 'gap'), log.unread_bytes && `${bytes(log.unread_bytes)} to read`].filter(Boolean).join(', ');
  return { name: log.file, state, bad: Boolean(log.problem) || behind || log.silent, error: log.problem, rest };
}

function row({ name }) {
  const state = h('span', {});
  const error = h('p', { class: 'why' });
  const rest = h('p', { class: 'dim rest' });
  const node = h('li', { class: 'staterow' }, h('span', { class: 'key' }, shown(name, 48)), state, error, rest);
  return { node, update: (s) => {
    setText(state, s.state);
    state.className = `state ${s.bad ? 'bad' : 'good'}`;
    error.hidden = !s.error;
    error.replaceChildren(...(s.error ? [shown(s.error, 300)] : []));
    setText(rest, s.rest);
  } };
}
