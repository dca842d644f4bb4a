// The overview: the decisions of the last span, and the state of the server.

import { get } from './api.js';
import { Around } from './around.js';
import { SlotChart, spark } from './chart.js';
import { add } from './dialogs.js';
import { h, keyNode, list, plain, rowOf, ruleHref, setText } from './dom.js';
import { checkEvent, empty } from './commands.js';
import { ago, count, left, rate, share, span as spanText } from './format.js';
import { Health } from './health.js';
import { live, on, poll, slotsOf } from './live.js';
import { choice, none, panel, store, stored } from './parts.js';

const second = 1000;
// The number of parts of a span, and the interval between requests for them.
const spans = new Map([[second, [60, 2]], [10 * second, [60, 2]], [60 * second, [60, 2]], [900 * second, [15, 5]], [3600 * second, [60, 10]], [21600 * second, [120, 20]], [86400 * second, [144, 30]]]);

// The names of the marks of the chart.
const markNames = { start: 'start', reload: 'reload', failed: 'reload failed', ban: 'ban by hand', unban: 'unban' };
const markName = ({ type, bans }) => (bans > 1 ? `${count(bans)} ${type === 'ban' ? 'bans by hand' : 'unbans'}` : markNames[type] ?? type);

export const decisions = [
  { name: 'allowed', css: 'allowed', value: (s) => s.all.allowed },
  { name: 'refused', css: 'refused', value: (s) => s.all.refused },
  { name: 'banned', css: 'banned', value: (s) => s.all.banned },
  { name: 'unmatched', css: 'unmatched', value: (s) => s.all.unmatched },
];

export function overviewView(main, _, signal) {
  let span = Number(stored('span', 60 * second));
  if (!spans.has(span)) span = 60 * second;
  let rates = [];
  let marks = [];
  let bans = []; // how many rules began, by part of the span
  let timer = null;

  const figures = new Figures();
  const chart = new SlotChart({ label: 'Decisions per second', layers: decisions, offset: () => live.offset });
  signal.addEventListener('abort', () => chart.close());
  const pick = choice('Span', [...spans.keys()].map((ms) => [ms, spanText(ms)]), span, (ms) => {
    span = ms;
    store('span', ms);
    rates = [];
    ask();
    draw();
  });
  const byRule = new ByRule();
  const refused = new Refused();
  const ticker = new Ticker();
  const around = new Around();
  const health = new Health();
  const start = empty('No event was judged since the start.');
  main.append(
    health.node,
    h('section', { class: 'panel now', 'aria-labelledby': 'p-now' }, h('div', { class: 'head' }, h('h1', { id: 'p-now' }, 'Decisions'), pick), figures.node, chart.node, start.node),
    panel('Refusals by rule', 'byrule', byRule.node),
    panel('Most refused keys, last minute', 'refusedkeys', refused.node), panel('Latest bans', 'latest', ticker.node), ...around.nodes,
  );

  // Up to a minute, the chart shows the stream; above, the answer of /v1/rates.
  const streamed = () => span <= 60 * second;
  const slots = () => (streamed() ? live.seconds : rates);
  const draw = () => {
    const all = Math.max(span, 60 * second);
    const mark = { marked: span, markName: spanText(span) };
    chart.show(slots(), { span: all, lag: streamed() ? 1150 : 0, paused: live.paused, marks, bans, ...(streamed() ? mark : {}) });
    const part = slots().filter((s) => s.to > (live.seconds.at(-1)?.to ?? Date.now()) - span + 500);
    figures.show(part.length ? part : slots().slice(-1), span);
    const totals = live.totals ?? live.status?.totals;
    start.suggest(...checkEvent());
    start.show(Boolean(totals) && !['allowed', 'refused', 'banned', 'unmatched'].some((outcome) => totals[outcome]));
  };
  const state = () => live.status && health.show(live.status, around.show(live.status));
  on('status second', signal, state);
  poll(4 * second, signal, async () => {
    live.status = await get('status', {}, signal);
    state();
  });
  const ask = () => {
    signal.removeEventListener('abort', stop);
    timer?.abort();
    timer = new AbortController();
    signal.addEventListener('abort', stop);
    const mine = timer.signal;
    const [points, every] = spans.get(span);
    poll(every * second, mine, async () => {
      const answer = await get('rates', { span: `${Math.max(span, 60 * second) / second}s`, points, rules: 1 }, mine);
      rates = slotsOf(answer.rates ?? []);
      marks = (answer.marks ?? []).map((m) => ({ at: Date.parse(m.time) - live.offset, name: markName(m), css: m.bans ? 'byhand' : '' }));
      bans = rates.map((r) => ({ from: r.from, to: r.to, n: Object.values(r.rules ?? {}).reduce((n, rule) => n + rule.bans, 0) })).filter((b) => b.n > 0);
      byRule.show(rates, span);
      draw();
    });
  };
  const stop = () => timer.abort();
  ask();
  const again = poll(3 * second, signal, async () => refused.show((await get('refused', { n: 10, span: '1m' }, signal)).refused ?? [], again));
  on('seconds', signal, draw);
  on('ticker rules second', signal, () => ticker.show());
  draw();
  ticker.show();
}

// Figures are the large numbers.
class Figures {
  constructor() {
    this.now = h('b', { class: 'big' }, '–');
    this.over = h('dt', {}, 'Now');
    this.parts = decisions.map(({ name, css }) => ({ name, css, n: h('b', {}, '–'), p: h('span', {}, '') }));
    this.total = h('b', {}, '–');
    this.since = h('span', {}, '');
    this.node = h('dl', { class: 'figures' },
      h('div', { class: 'all' }, this.over, h('dd', {}, this.now, h('span', {}, 'per second'))),
      this.parts.map(({ name, css, n, p }) => h('div', { class: css }, h('dt', {}, name[0].toUpperCase() + name.slice(1)), h('dd', {}, n, p))),
      h('div', { class: 'total' }, h('dt', {}, 'In all'), h('dd', {}, this.total, this.since)));
  }

  show(slots, span) {
    const time = slots.reduce((t, s) => t + s.ms, 0) / 1000;
    const sum = decisions.map((d) => slots.reduce((n, s) => n + d.value(s), 0));
    const all = sum.reduce((a, b) => a + b, 0);
    if (time > 0) {
      setText(this.now, rate(all / time));
      sum.forEach((n, i) => {
        setText(this.parts[i].n, rate(n / time));
        setText(this.parts[i].p, share(n, all));
      });
    }
    setText(this.over, span === 1000 ? 'Now' : `In the last ${spanText(span)}`);
    const totals = live.totals ?? live.status?.totals;
    if (!totals) return;
    setText(this.total, count(totals.allowed + totals.refused + totals.banned + totals.unmatched));
    setText(this.since, totals.errors ? `and ${count(totals.errors)} errors` : `since the start`);
  }
}

// ByRule is a bar for each rule that refused, with its history.
class ByRule {
  constructor() {
    this.rows = h('ul', { class: 'rows' });
    this.none = none('No rule refused anything in this span.');
    this.node = h('div', {}, this.rows, this.none.node);
  }

  show(rates, span) {
    const end = rates.at(-1)?.to ?? 0;
    const part = rates.filter((r) => r.to > end - span + 500);
    const time = part.reduce((t, r) => t + r.ms, 0) / 1000 || 1;
    const names = new Set(rates.flatMap((r) => Object.keys(r.rules ?? {})));
    const rows = [...names].map((name) => {
      const of = (slots, what) => slots.reduce((n, r) => n + (r.rules?.[name]?.[what] ?? 0), 0);
      const course = rates.map((r) => (1000 * ['refused', 'banned', 'shadow'].reduce((n, what) => n + of([r], what), 0)) / r.ms);
      return { name, refused: (of(part, 'refused') + of(part, 'banned')) / time, shadow: of(part, 'shadow') / time, judged: of(part, 'allowed') / time, course };
    }).filter((r) => r.course.some((n) => n > 0)).sort((a, b) => b.refused + b.shadow - a.refused - a.shadow).slice(0, 12);
    const most = Math.max(...rows.map((r) => r.refused + r.shadow), 1e-9);
    this.none.show(!rows.length);
    list(this.rows, rows, (r) => r.name, (r) => this.#row(r), true);
    for (const r of rows) rowOf(this.rows, r.name).scale(r, most);
  }

  #row({ name }) {
    const n = h('b', { class: 'n' });
    const of = h('span', { class: 'dim of' });
    const bar = h('i', { class: 'bar refused' });
    const line = spark('refused');
    const node = h('li', { class: 'rulerow' }, h('a', { href: ruleHref(name), class: 'name' }, name), of, n, h('span', { class: 'track' }, bar), line.node);
    const update = (r) => {
      setText(n, `${rate(r.refused + r.shadow)}/s`);
      setText(of, `${r.shadow ? 'shadow, ' : ''}${share(r.refused + r.shadow, r.refused + r.shadow + r.judged)} of its events`);
      bar.classList.toggle('shadow', r.shadow > r.refused);
      line.show(r.course);
    };
    return { node, update, scale: (r, most) => (bar.style.width = `${Math.max(0.5, (100 * (r.refused + r.shadow)) / most)}%`) };
  }
}

// Refused is the keys that are refused most, each with a button that bans it.
class Refused {
  constructor() {
    this.rows = h('ul', { class: 'rows' });
    this.none = none('No key was refused in the last minute.');
    this.node = h('div', {}, this.rows, this.none.node);
  }

  show(keys, again) {
    this.none.show(!keys.length);
    list(this.rows, keys, (k) => JSON.stringify([k.rule, k.key, k.key_base64, Boolean(live.fieldsOf(k.rule))]), (k) => {
      const per = h('b', { class: 'n' });
      const button = h('button', { type: 'button', class: 'danger admin', 'aria-label': `Ban ${plain(k.key.join(' '), 60)}`, onclick: () => add({ rule: k.rule, values: k.key }, again) }, 'Ban…');
      const banned = h('span', { class: 'badge banned' }, 'banned');
      const node = h('li', { class: 'refusedrow' }, keyNode(live.fieldsOf(k.rule), k.key, 40), h('a', { class: 'tag', href: ruleHref(k.rule) }, k.rule), per, button, banned);
      return { node, update: (now) => {
        setText(per, `${rate(now.per_second)}/s`);
        banned.hidden = !now.banned_until;
        button.hidden = Boolean(now.banned_until) || Boolean(now.key_base64);
      } };
    }, true);
  }
}

// Ticker is the newest bans and unbans.
class Ticker {
  constructor() {
    this.rows = h('ol', { class: 'rows' });
    this.none = none('No key is banned.');
    this.node = h('div', {}, this.rows, this.none.node);
  }

  show() {
    const events = live.ticker.slice(0, 10);
    this.none.show(!events.length);
    list(this.rows, events, (e) => `${e.type} ${e.time} ${e.ban.rule} ${JSON.stringify(e.ban.key)} ${Boolean(live.fieldsOf(e.ban.rule))}`, (e) => {
      const when = h('span', { class: 'n dim' });
      const rest = h('span', { class: 'dim rest' });
      const node = h('li', { class: `tickrow ${e.type}` }, h('i', { class: 'dot' }), keyNode(live.fieldsOf(e.ban.rule), e.ban.key, 40), h('span', { class: 'tag' }, e.ban.rule), when, rest);
      return { node, update: () => {
        setText(when, ago(live.now() - e.time));
        const ms = e.type === 'unban' ? 0 : Date.parse(e.ban.until) - live.now();
        setText(rest, e.type === 'unban' ? 'unbanned' : ms > 0 ? `${left(ms)} left` : 'over');
      } };
    });
  }
}
