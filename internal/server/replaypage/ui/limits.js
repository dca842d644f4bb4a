// A slider over N: which keys a limit of N would have refused.

import { h, setText, svg } from './dom.js';
import { share, span } from './format.js';
import { choice, panel } from './parts.js';
import { folded, table } from './keys.js';
import { counted, exact } from './times.js';

const most = 200; // steps that a report has for a span

const millisOf = (name) => 1000 * parseInt(name, 10); // "60s"

// stepsOf returns [n, keys] from the least N on. Below the first peak every key is refused.
function stepsOf({ keys_above: steps }, keys) {
  return steps[0][0] > 1 ? [[steps[0][0] - 1, keys], ...steps] : steps;
}

export function limitsPanel(report) {
  const spans = (report.suggested_limits ?? []).filter((s) => s.keys_above?.length);
  if (!spans.length) return null;
  const slider = new Slider(report, spans);
  return panel('What would a limit of N refuse?', 'whatif',
    choice('Span of the limit', spans.map((s, i) => [i, `per ${span(millisOf(s.span))}`]), slider.chosen, (i) => slider.choose(i)),
    slider.node,
    h('p', { class: 'sentence' }, `These numbers are exact for the algorithm exact, at the times of the log: a key is refused at least once if it has more than N events in some window. For the number of refused events, replay with --limit.`),
    folded('The same as a table', () => slider.table()),
    fitting(report.suggested_limits));
}

class Slider {
  constructor(report, spans) {
    this.keys = report.keys;
    this.field = report.key;
    this.spans = spans;
    this.chosen = Math.max(0, spans.findIndex((s) => s.span === '60s'));
    this.limit = h('b', { class: 'big' });
    this.effect = h('b', { class: 'big' });
    this.rest = h('p', { class: 'sentence' });
    this.range = h('input', { type: 'range', min: 0, id: 'limit', 'aria-label': 'N, the limit', oninput: () => this.#show() });
    this.area = svg('path', { class: 'area' });
    this.line = svg('path', { class: 'line' });
    this.mark = svg('line', { class: 'markline', y1: 0, y2: 100 });
    this.ends = h('div', { class: 'ends dim', 'aria-hidden': 'true' }, h('span', {}), h('span', {}, 'N, the limit → · height: keys refused'), h('span', {}));
    this.node = h('div', { class: 'slider' },
      h('p', { class: 'question' }, 'A limit of ', this.limit, ' would have refused ', this.effect, ' at least once.'), this.rest,
      svg('svg', { class: 'curve', viewBox: '0 0 1000 100', preserveAspectRatio: 'none', 'aria-hidden': 'true' }, this.area, this.line, this.mark),
      this.range, this.ends);
    this.choose(this.chosen);
  }

  // choose shows another span, at the N that 99 % of the keys never exceed.
  choose(i) {
    this.chosen = i;
    this.steps = stepsOf(this.spans[i], this.keys);
    const last = this.steps.length - 1;
    this.range.max = last;
    const fit = this.steps.findIndex(([n]) => n >= this.spans[i].p99);
    this.range.value = fit < 0 ? last : fit;
    this.range.disabled = last === 0;
    const x = (step) => (last ? (1000 * step) / last : 500);
    const points = this.steps.map(([, keys], step) => `${x(step).toFixed(1)} ${(98 - (94 * keys) / Math.max(1, this.steps[0][1])).toFixed(1)}`);
    this.line.setAttribute('d', `M${points.join('L')}`);
    this.area.setAttribute('d', `M0 100L${points.join('L')}L1000 100Z`);
    setText(this.ends.firstChild, `N = ${exact(this.steps[0][0])}`);
    setText(this.ends.lastChild, `N = ${exact(this.steps[last][0])}`);
    this.#show();
  }

  #show() {
    const step = Number(this.range.value);
    const [n, keys] = this.steps[step];
    const per = `${exact(n)} per ${span(millisOf(this.spans[this.chosen].span))}`;
    setText(this.limit, per);
    setText(this.effect, `${exact(keys)} of ${counted(this.keys, 'key')}`);
    setText(this.rest, keys === this.keys ? 'Every key is refused.' : `The other ${exact(this.keys - keys)} (${share(this.keys - keys, this.keys)}) by ${this.field} are never refused.${this.spans[this.chosen].keys_above.length === most ? ` The slider has ${most} of the N at which the answer changes.` : ''}`);
    this.range.setAttribute('aria-valuetext', `${per}: ${exact(keys)} of ${counted(this.keys, 'key')} refused at least once`);
    const at = this.steps.length > 1 ? (1000 * step) / (this.steps.length - 1) : 500;
    this.mark.setAttribute('x1', at);
    this.mark.setAttribute('x2', at);
  }

  table() {
    const one = (s) => table(`Keys refused by a limit of N per ${s.span}`, [[`N per ${span(millisOf(s.span))}`], ['Keys refused', 'n']], stepsOf(s, this.keys).map(([n, keys]) => [exact(n), exact(keys)]));
    return h('div', { class: 'tables' }, this.spans.map(one));
  }
}

// fitting is the table of limits that shares of the keys never exceed.
function fitting(limits) {
  return h('div', { class: 'fitting' }, h('h3', {}, 'The least N that so many keys never exceed'),
    table('The least N that so many keys never exceed', [['Span'], ['90 %', 'n'], ['99 %', 'n'], ['99.9 %', 'n'], ['All', 'n']], limits.map((l) => [span(millisOf(l.span)), exact(l.p90), exact(l.p99), exact(l.p999), exact(l.max)])));
}
