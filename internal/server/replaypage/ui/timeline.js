// The events over time, in bars, with the refused ones in the same bars.

import { h, setText, svg } from './dom.js';
import { nice, rate, span } from './format.js';
import { choice, panel } from './parts.js';
import { folded, table } from './keys.js';
import { clockTime, counted, day, exact, offsetAt, stamp, zoneName } from './times.js';

const gutter = 46; // to the left, for the scale
const foot = 38; // below, for the times

// hatches are the patterns that tell layers apart without colour.
export const hatches = () => svg('svg', { class: 'hatches', width: 0, height: 0, 'aria-hidden': 'true' }, svg('defs', {},
  svg('pattern', { id: 'hatch-refused', width: 5, height: 5, patternUnits: 'userSpaceOnUse', patternTransform: 'rotate(45)' },
    svg('rect', { width: 5, height: 5, class: 'fill-refused' }), svg('rect', { width: 1.6, height: 5, class: 'fill-ground' })),
  svg('pattern', { id: 'hatch-banned', width: 4, height: 4, patternUnits: 'userSpaceOnUse' },
    svg('rect', { width: 4, height: 4, class: 'fill-banned' }), svg('rect', { width: 1.4, height: 1.4, class: 'fill-ground' }))));

// timelinePanel shows the timeline of a report, with the refusals of all rules or of one.
export function timelinePanel(report) {
  const { timeline } = report;
  const chart = new Timeline(timeline);
  const judging = report.rules.filter((r) => r.timeline?.refused);
  const together = report.all !== undefined;
  const options = judging.map((r) => [r.name, r.name]);
  if (judging.length > 1) options.unshift(['', together ? 'All rules' : 'Any rule']);
  const of = (name) => judging.find((r) => r.name === name)?.timeline ?? timeline;
  const first = options[0]?.[0] ?? '';
  chart.show(of(first));
  const about = h('p', { class: 'sentence' }, `Each bar is ${span(1000 * timeline.bar_seconds)}. Times are in ${zoneName}.`);
  if (options.length > 1 && !together) about.append(' Each rule was judged alone; “Any rule” shows the events that at least one rule refused.');
  const tableNode = folded('The timeline as a table', () => chart.table());
  const pick = (name) => {
    chart.show(of(name));
    if (tableNode.childElementCount > 1) tableNode.lastChild.replaceWith(chart.table());
  };
  return panel('Events over time', 'overtime',
    options.length > 1 ? choice('Refusals of', options, first, pick) : null, chart.node, about, tableNode);
}

class Timeline {
  constructor({ start, bar_seconds: bar, events }) {
    Object.assign(this, { start, bar, events });
    this.layers = [svg('path', { class: 'rest' }), svg('path', { fill: 'url(#hatch-refused)' }), svg('path', { fill: 'url(#hatch-banned)' })];
    this.grid = svg('g', { class: 'grid' });
    this.ticks = svg('g', { class: 'ticks' });
    this.guide = svg('rect', { class: 'pointed', y: 0, visibility: 'hidden' });
    this.svg = svg('svg', { 'aria-hidden': 'true' }, this.grid, this.ticks, this.guide, this.layers);
    this.when = h('p', { class: 'when', 'aria-hidden': 'true' });
    this.plot = h('div', {
      class: 'plot', tabindex: 0, role: 'slider', 'aria-label': 'Bar of the timeline', 'aria-orientation': 'horizontal', 'aria-valuemin': 1, 'aria-valuemax': events.length, 'aria-valuenow': 1,
      onpointermove: (e) => this.#point(this.#barAt(e.offsetX)), onpointerleave: () => this.#point(-1), onblur: () => this.#point(-1), onkeydown: (e) => this.#key(e),
      onfocus: () => this.plot.matches(':focus-visible') && this.#point(this.last ?? 0),
    }, this.svg);
    this.legend = h('ul', { class: 'legend' });
    this.node = h('figure', { class: 'chart' }, h('div', { class: 'abovechart' }, this.legend, this.when), this.plot);
    new ResizeObserver(() => this.#draw()).observe(this.plot);
    this.#describe(0);
  }

  // show draws the refusals of one rule or all.
  show({ refused = [], banned = [] }) {
    Object.assign(this, { refused, banned });
    const sum = (list) => list.reduce((a, b) => a + b, 0);
    const [all, no, ban] = [this.events, refused, banned].map(sum);
    const entries = refused.length ? [['rest', 'not refused', all - no], ['refused', 'refused by a limit', no - ban], ['banned', 'refused by a ban', ban]] : [['rest', 'events', all]];
    this.legend.replaceChildren(...entries.map(([css, name, n]) => h('li', {}, h('i', { class: `swatch ${css}` }), h('b', {}, exact(n)), ` ${name}`)));
    this.#draw();
    this.#point(-1);
  }

  // at returns the numbers of a bar.
  #at(i) {
    const [events, refused, banned] = [this.events[i], this.refused?.[i] ?? 0, this.banned?.[i] ?? 0];
    return { events, refused, banned, parts: [events - refused, refused - banned, banned] };
  }

  #draw() {
    const [width, height] = [this.plot.clientWidth - gutter, this.plot.clientHeight - foot];
    if (width <= 0) return;
    Object.assign(this, { width, height });
    this.svg.setAttribute('viewBox', `0 0 ${width + gutter} ${height + foot}`);
    const most = Math.max(...this.events);
    const step = Math.max(1, nice(most / 4));
    this.max = step * Math.ceil(most / step);
    const d = ['', '', ''];
    const gap = width / this.events.length >= 4 ? 1 : 0;
    for (let i = 0; i < this.events.length; i++) {
      const [x1, x2] = [this.#x(i) + gap / 2, Math.max(this.#x(i + 1) - gap / 2, this.#x(i) + 0.8)];
      let y = 0;
      // From the axis up: bans, limits, the rest. What is refused is never hidden behind the rest.
      for (const layer of [2, 1, 0]) {
        const n = this.#at(i).parts[layer];
        if (n > 0) d[layer] += `M${x1.toFixed(2)} ${this.#y(y)}V${this.#y(y + n)}H${x2.toFixed(2)}V${this.#y(y)}Z`;
        y += n;
      }
    }
    d.forEach((path, i) => this.layers[i].setAttribute('d', path));
    this.#drawGrid(step);
    this.#drawTicks();
  }

  #x = (i) => gutter + (this.width * i) / this.events.length;
  #y = (n) => (this.height * (1 - n / this.max)).toFixed(2);
  #barAt = (x) => Math.max(0, Math.min(this.events.length - 1, Math.floor(((x - gutter) * this.events.length) / this.width)));

  #drawGrid(step) {
    const lines = [];
    for (let v = 0; v <= this.max; v += step) {
      const y = Math.round(this.#y(v)) + 0.5;
      lines.push(svg('line', { x1: gutter, x2: gutter + this.width, y1: y, y2: y, class: v ? '' : 'zero' }), svg('text', { x: gutter - 8, y: Math.max(9, y + 4) }, rate(v)));
    }
    this.grid.replaceChildren(...lines);
  }

  #drawTicks() {
    const seconds = this.bar * this.events.length;
    const every = intervals.find((s) => (s * this.width) / seconds >= (s < 1 ? 100 : s < 86400 ? 56 : 78)) ?? intervals.at(-1);
    const zone = offsetAt(this.start);
    const nodes = [];
    let written = '';
    for (let t = Math.ceil((this.start + zone) / every) * every - zone; t <= this.start + seconds; t += every) {
      const x = gutter + (this.width * (t - this.start)) / seconds;
      nodes.push(svg('line', { x1: x, x2: x, y1: this.height, y2: this.height + 5 }));
      if (x > gutter + this.width - 18) continue;
      const date = day(t);
      nodes.push(svg('text', { x, y: this.height + 18 }, every < 86400 ? clockTime(t).slice(0, every < 60 ? undefined : 5) : date));
      if (every < 86400 && date !== written) nodes.push(svg('text', { x, y: this.height + 33 }, date));
      written = date;
    }
    this.ticks.replaceChildren(...nodes);
  }

  // #point marks a bar and says what it has; -1 marks none.
  #point(i) {
    this.pointed = i;
    if (i >= 0) this.last = i;
    this.guide.setAttribute('visibility', i < 0 ? 'hidden' : 'visible');
    this.#describe(i);
    if (i < 0 || !this.width) return;
    this.guide.setAttribute('x', this.#x(i));
    this.guide.setAttribute('width', this.#x(i + 1) - this.#x(i));
    this.guide.setAttribute('height', this.height);
  }

  #describe(i) {
    if (i < 0) return setText(this.when, 'Point at a bar, or use the arrow keys');
    const text = `${stamp(this.start + i * this.bar)}: ${this.#sentence(i)}`;
    setText(this.when, text);
    this.plot.setAttribute('aria-valuenow', i + 1);
    this.plot.setAttribute('aria-valuetext', text);
  }

  #sentence(i) {
    const { events, refused, banned } = this.#at(i);
    return counted(events, 'event') + (this.refused?.length ? `, ${exact(refused)} refused, ${exact(banned)} of them by a ban` : '');
  }

  #key(e) {
    const now = this.pointed >= 0 ? this.pointed : (this.last ?? 0);
    const to = { ArrowLeft: now - 1, ArrowRight: now + 1, Home: 0, End: this.events.length - 1, PageDown: now - 10, PageUp: now + 10 }[e.key];
    if (to === undefined) return;
    e.preventDefault();
    this.#point(Math.max(0, Math.min(this.events.length - 1, to)));
  }

  // table returns the bars that have events.
  table() {
    const columns = [[`Bar of ${span(1000 * this.bar)} from`], ['Events', 'n']];
    if (this.refused.length) columns.push(['Refused', 'n'], ['By a ban', 'n']);
    const rows = this.events.map((_, i) => i).filter((i) => this.events[i]).map((i) => {
      const { events, refused, banned } = this.#at(i);
      return [stamp(this.start + i * this.bar), exact(events), exact(refused), exact(banned)].slice(0, columns.length);
    });
    return table('Events over time; bars without events are left out', columns, rows);
  }
}

const intervals = [
  0.001, 0.01, 0.1, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 432000, 864000, 2592000, 7776000, 15552000, 31536000, 157680000, 315360000, 788400000,
];
