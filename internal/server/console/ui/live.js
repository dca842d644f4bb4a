// The state of the server that all views share: its event stream, its status, its rules.
// Views listen to it and do not request it themselves.

import { calls, get, parse } from './api.js';

const keptSeconds = 130;
const keptTicker = 40;

class Live extends EventTarget {
  link = 'connecting'; // or live, waiting (for the server), login
  paused = false;
  status = null;
  rules = new Map(); // of /v1/rules, by name
  allow = []; // what the allow list has, as texts
  // {from, to, ms, all}: when it begins and ends in the chart, by this machine's clock,
  // its length, and the counts of all decisions.
  seconds = [];
  totals = null;
  ticker = []; // bans and unbans, the last first
  offset = 0; // the server's clock minus ours
  #source = null;
  #retry = 0;
  #wait = 0;
  #heard = 0;
  #gone = 0;

  get role() {
    return this.status?.role ?? 'none';
  }
  get admin() {
    return this.role === 'admin';
  }

  // now is the server's time.
  now() {
    return Date.now() + this.offset;
  }

  fieldsOf(rule) {
    return this.rules.get(rule)?.fields;
  }

  start() {
    document.addEventListener('visibilitychange', () => this.#visible());
    calls.addEventListener('login', () => this.#needLogin());
    calls.addEventListener('away', () => this.link === 'live' || this.#link('waiting'));
    setInterval(() => this.#watch(), 1000);
    this.connect();
  }

  // connect starts again: it reads the state, then the stream.
  async connect() {
    clearTimeout(this.#wait);
    this.#close();
    try {
      await this.refresh();
      await this.#seed();
    } catch (err) {
      if (!err.status) this.dispatchEvent(new CustomEvent('failure', { detail: err }));
      if (err.status === 403) this.#needLogin(); // with a role that may read
      else if (this.link !== 'login') this.#later();
      return;
    }
    this.#open();
  }

  // refresh requests the status and the rules.
  async refresh() {
    const status = await get('status');
    this.status = status;
    const theirs = Date.parse(status.started) + 1000 * status.uptime_s;
    const apart = theirs - Date.now();
    this.offset = Math.abs(apart) < 3000 ? 0 : apart; // uptime is in whole seconds
    this.#tell('status');
    await this.#readRules();
  }

  async #readRules() {
    const book = await get('rules');
    this.rules = new Map((book.rules ?? []).map((r) => [r.name, r]));
    const { clients = [], files = [] } = book.allow ?? {};
    this.allow = [...clients, ...files.map((f) => `every client in ${f.name} (prefixes: ${f.prefixes})`)];
    this.book = book;
    this.#tell('rules');
  }

  // #seed fills the last two minutes, and the ticker.
  async #seed() {
    const [{ rates }, { bans }] = await Promise.all([get('rates', { span: '2m', points: 120 }), get('bans', { limit: keptTicker })]);
    this.seconds = slotsOf(rates ?? []);
    this.totals = null;
    this.ticker = (bans ?? [])
      .map((ban) => ({ type: 'ban', time: Date.parse(ban.since), ban }))
      .sort((a, b) => b.time - a.time)
      .slice(0, keptTicker);
    this.#tell('seconds');
    this.#tell('ticker');
  }

  #open() {
    if (document.hidden) return;
    const source = new EventSource('v1/events');
    this.#source = source;
    this.#heard = performance.now();
    source.addEventListener('open', () => {
      this.#retry = 0;
      this.#heard = performance.now();
      this.#link('live');
    });
    source.addEventListener('error', () => this.#later()); // which reads what was missed; reconnecting by the browser would not
    source.addEventListener('resync', () => this.connect());
    source.addEventListener('rates', (e) => this.#rates(parse(e.data)));
    for (const type of ['ban', 'unban', 'hot', 'rules']) source.addEventListener(type, (e) => this.#event(type, parse(e.data)));
  }

  #close() {
    this.#source?.close();
    this.#source = null;
  }

  // #later connects again, after a wait that grows.
  #later() {
    this.#close();
    this.#link('waiting');
    clearTimeout(this.#wait);
    this.#wait = setTimeout(() => this.connect(), Math.min(15e3, 500 * 2 ** this.#retry++) * (0.8 + 0.4 * Math.random()));
  }

  #link(link) {
    if (this.link === link) return;
    this.link = link;
    this.#tell('link');
  }

  #needLogin() {
    this.#close();
    clearTimeout(this.#wait);
    this.#link('login');
  }

  // #watch detects a stream that is open but silent.
  #watch() {
    this.#tell('second');
    if (this.link === 'live' && this.#source && performance.now() - this.#heard > 6000) this.#later();
  }

  // A hidden page closes its connection: browsers have few of them for one server.
  #visible() {
    if (this.link === 'login') return;
    clearTimeout(this.#gone);
    if (document.hidden) this.#gone = setTimeout(() => this.#close(), 5000);
    else if (!this.#source) this.connect();
  }

  // #rates adds a second to the chart. Events come a little early or late, and a
  // bar must not jump: each begins where the last one ended, and the end is drawn
  // gradually to when the event came. The totals contain what was missed.
  #rates({ all, totals }) {
    this.#heard = performance.now();
    const came = Date.now();
    const last = this.seconds.at(-1);
    const due = last ? last.to + 1000 : came;
    const late = came - due;
    if (!last || late > 20e3 || late < -5000) this.seconds = [{ from: came - 1000, to: came, ms: 1000, all }];
    else if (late > 700 && this.totals) this.seconds.push({ from: last.to, to: came, ms: came - last.to, all: minus(totals, this.totals) });
    else this.seconds.push({ from: last.to, to: due + Math.max(-80, Math.min(80, late / 8)), ms: 1000, all });
    if (this.seconds.length > keptSeconds) this.seconds.shift();
    this.totals = totals;
    this.#tell('seconds');
  }

  #event(type, event) {
    this.#heard = performance.now();
    if (type === 'rules') this.refresh().catch(() => {});
    if (type === 'ban' || type === 'unban') {
      this.ticker.unshift({ type, time: Date.parse(event.time), ban: event.ban ?? { rule: event.rule, key: event.key } });
      this.ticker.length = Math.min(this.ticker.length, keptTicker);
      this.#tell('ticker');
    }
    this.dispatchEvent(new CustomEvent(type, { detail: event }));
  }

  pause(paused) {
    this.paused = paused;
    this.#tell('pause');
  }

  #tell(type) {
    this.dispatchEvent(new Event(type));
  }
}

const minus = (a, b) => Object.fromEntries(Object.entries(a).map(([k, v]) => [k, Math.max(0, v - (b[k] ?? 0))]));

export const live = new Live();

// slotsOf makes slots of the answer of /v1/rates.
export const slotsOf = (rates) => rates.map((r) => {
  const [from, to] = [Date.parse(r.from) - live.offset, Date.parse(r.to) - live.offset];
  return { ...r, from, to, ms: to - from };
});

// on calls f for each of types, until signal aborts. While paused it does not, but for
// the pause itself.
export function on(types, signal, f) {
  const g = (e) => (live.paused && e.type !== 'pause') || f(e);
  for (const type of types.split(' ')) live.addEventListener(type, g, { signal });
  live.addEventListener('pause', g, { signal });
}

// poll calls f now, and again ms after each call has ended, until signal aborts, while the
// page is visible and not paused. It returns a function that calls f at once, or after
// the call in progress. Errors of f are dispatched as failures.
export function poll(ms, signal, f) {
  let timer = 0;
  let busy = false;
  let asked = false; // while it was busy
  const run = async () => {
    clearTimeout(timer);
    if (busy) asked = true;
    if (busy || signal.aborted) return;
    if (!live.paused && !document.hidden && live.link !== 'login') {
      busy = true;
      try {
        await f();
      } catch (err) {
        if (!signal.aborted) live.dispatchEvent(new CustomEvent('failure', { detail: err }));
      }
      busy = false;
    }
    if (!signal.aborted) timer = setTimeout(run, asked ? 0 : ms);
    asked = false;
  };
  signal.addEventListener('abort', () => clearTimeout(timer));
  document.addEventListener('visibilitychange', run, { signal });
  live.addEventListener('pause', run, { signal });
  run();
  return run;
}
