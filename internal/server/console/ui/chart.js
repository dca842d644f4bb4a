// Charts of slots: what was counted in each, stacked, and sliding to the left as
// time goes by. Bars are drawn once for each new slot, in units of what they count;
// sliding is an animation of the whole strip, which browsers do without us, and the
// vertical scale is a transform. So nothing jumps, and a page that is left open all
// day costs next to nothing.

import { h, setText, still, svg } from './dom.js';
import { clock, minute, nice, rate } from './format.js';

const headroom = 1.08;
const gutter = 46; // to the left, for the scale

export class SlotChart {
  // layers are the stack from the bottom up: {name, css, value(slot)}, in counts.
  constructor({ label, layers, offset }) {
    this.label = label;
    this.layers = layers;
    this.offset = offset; // to the clock whose times are written
    this.slots = [];
    this.span = 60e3;
    this.max = 1;
    this.base = 0;
    this.marks = [];
    this.bans = [];
    this.legend = h('p', { class: 'legend', hidden: true }, h('i', {}), 'bans that rules began');
    this.when = h('p', { class: 'when', 'aria-hidden': 'true' });
    this.paths = layers.map((l) => svg('path', { class: l.css }));
    this.scale = svg('g', { class: 'scale' }, this.paths);
    this.ticks = svg('g', { class: 'ticks' });
    this.turns = svg('g', { class: 'turns' });
    this.pins = svg('g', { class: 'pins' });
    this.strip = svg('svg', { class: 'strip', width: 1, height: 1, 'aria-hidden': 'true' }, this.ticks, this.scale, this.pins, this.turns);
    this.grid = svg('svg', { class: 'grid', 'aria-hidden': 'true' });
    this.mark = h('div', { class: 'mark' }, h('span', {}));
    this.guide = h('div', { class: 'guide', hidden: true });
    this.empty = h('p', { class: 'empty' }, 'Nothing counted yet.');
    this.plot = h('div', {
      class: 'plot', tabindex: 0, role: 'slider', 'aria-label': label, 'aria-orientation': 'horizontal', 'aria-valuemin': 0, 'aria-valuemax': 0, 'aria-valuenow': 0,
      onpointermove: (e) => this.#point(this.#timeAt(e.offsetX - gutter)), onpointerleave: () => this.#point(0), onkeydown: (e) => this.#key(e), onblur: () => this.#point(0),
    }, this.grid, h('div', { class: 'moving' }, this.strip), this.mark, this.guide, this.empty);
    this.node = h('figure', { class: 'chart' }, h('div', { class: 'over' }, this.legend, this.when), this.plot);
    this.watcher = new ResizeObserver(() => this.#resized());
    this.watcher.observe(this.plot);
  }

  close() {
    this.watcher.disconnect();
    this.animation?.cancel();
  }

  // show draws slots, {from, to, ms} and counts, over the last span. lag is how far the right edge is behind
  // now: a slot of the stream is known when it is over, and slides in whole. marked
  // is the part of the span that the figures beside the chart are about. marks are the
  // moments at which something changed, {at, name}; bans are how many began, {from, to, n}.
  show(slots, { span, lag = 0, marked = 0, paused = false, markName = '', marks = [], bans = [] }) {
    const changed = span !== this.span || lag !== this.lag || paused !== this.paused;
    Object.assign(this, { slots, span, lag, paused, marked, marks, bans });
    if (paused && !this.stopped) this.stopped = Date.now();
    if (!paused) this.stopped = 0;
    this.empty.hidden = slots.length > 0;
    setText(this.mark.firstElementChild, markName);
    this.#fit();
    this.#draw();
    if (changed || still() || !this.animation || this.#edge() - this.base > 0.5 * span) this.#slide();
    this.#describe();
  }

  #edge = () => (this.stopped || Date.now()) - this.lag;
  #x = (t) => ((t - this.base) * this.width) / this.span;
  #timeAt = (x) => this.#edge() - this.span + (x / this.width) * this.span;

  #resized() {
    const { clientWidth, clientHeight } = this.plot;
    if (!clientWidth || (clientWidth - gutter === this.width && clientHeight - 22 === this.height)) return;
    this.width = clientWidth - gutter;
    this.height = clientHeight - 22; // of the ticks
    this.grid.setAttribute('viewBox', `0 0 ${clientWidth} ${clientHeight}`);
    this.#fit(true);
    this.#draw();
    this.#slide();
  }

  // #fit chooses the scale: round numbers, and no change for a little less.
  #fit(force = false) {
    if (!this.width) return;
    const from = this.#edge() - this.span;
    let most = 0;
    for (const s of this.slots) if (s.to > from) most = Math.max(most, this.#height(s));
    const step = nice((most * headroom) / Math.max(2, Math.min(4, Math.floor(this.height / 46))));
    const max = step * Math.max(1, Math.ceil((most * headroom) / step));
    if (!force && max <= this.max && max > 0.55 * this.max) return;
    this.max = max;
    this.scale.style.transform = `translateY(${this.height}px) scaleY(${-this.height / max})`;
    const lines = [];
    for (let v = 0; v <= max + step / 2; v += step) {
      const y = Math.round(this.height - (v * this.height) / max) + 0.5;
      lines.push(svg('line', { x1: gutter, x2: gutter + this.width, y1: y, y2: y, class: v ? '' : 'zero' }));
      lines.push(svg('text', { x: gutter - 8, y: Math.max(9, y + 4) }, rate(v)));
    }
    this.grid.replaceChildren(...lines);
  }

  #height = (s) => (1000 * this.layers.reduce((sum, l) => sum + l.value(s), 0)) / s.ms;

  #draw() {
    if (!this.width) return;
    const first = this.#edge() - this.span - 2000;
    const d = this.layers.map(() => '');
    for (const s of this.slots) {
      if (s.to < first) continue;
      const [x1, x2] = [this.#x(s.from), this.#x(s.to)];
      const gap = x2 - x1 >= 4 ? Math.min(2, (x2 - x1) / 5) : 0;
      let y = 0;
      this.layers.forEach((l, i) => {
        const v = (1000 * l.value(s)) / s.ms;
        if (v > 0) d[i] += `M${(x1 + gap / 2).toFixed(2)} ${y}V${y + v}H${(x2 - gap / 2).toFixed(2)}V${y}Z`;
        y += v;
      });
    }
    d.forEach((path, i) => this.paths[i].setAttribute('d', path));
    this.#drawTicks();
    const part = Math.min(1, this.marked / this.span);
    this.mark.hidden = !part || part === 1;
    this.mark.style.width = `${this.width * part}px`;
  }

  #drawTicks() {
    const every = intervals.find((ms) => (ms * this.width) / this.span >= (this.span <= 120e3 ? 84 : 64)) ?? intervals.at(-1);
    const zone = -60e3 * new Date().getTimezoneOffset() + this.offset();
    const begin = this.#edge() - this.span - every;
    const marks = [];
    for (let t = Math.ceil((begin + zone) / every) * every - zone; t < this.#edge() + 2 * every; t += every) {
      const x = this.#x(t).toFixed(2);
      marks.push(svg('line', { x1: x, x2: x, y1: 0, y2: this.height + 5 }));
      marks.push(svg('text', { x, y: this.height + 18 }, (every < 60e3 ? clock : minute)(t + this.offset())));
    }
    this.ticks.replaceChildren(...marks);
    this.#drawMarks();
    this.#drawBans();
  }

  // #drawBans draws a pin at the top of each part in which bans began, as wide as the part.
  #drawBans() {
    const seen = this.bans.filter((b) => b.to > this.#edge() - this.span);
    this.legend.hidden = !seen.length;
    this.pins.replaceChildren(...seen.map(({ from, to }) => {
      const [x1, x2] = [this.#x(from), this.#x(to)];
      const wide = Math.max(4, x2 - x1 - 1);
      return svg('rect', { x: ((x1 + x2 - wide) / 2).toFixed(2), y: 0, width: wide.toFixed(2), height: 5, rx: 1.5 });
    }));
  }

  // #drawMarks draws the marks in sight, and writes a name where there is space for it.
  #drawMarks() {
    const nodes = [];
    let free = -Infinity;
    for (const { at, name, css = '' } of this.marks) {
      if (at < this.#edge() - this.span - 2000) continue;
      const x = this.#x(at);
      nodes.push(svg('line', { class: css, x1: x.toFixed(2), x2: x.toFixed(2), y1: 0, y2: this.height }));
      if (x < free) continue;
      nodes.push(svg('text', { class: css, x: (x + 4).toFixed(2), y: 16 }, name));
      free = x + 12 + 7 * name.length;
    }
    this.turns.replaceChildren(...nodes);
  }

  // #slide lets the strip go to the left from where it has to be now.
  #slide() {
    if (!this.width) return;
    this.base = this.#edge();
    const start = performance.now();
    this.#draw();
    const at = (ms) => ({ transform: `translateX(${this.width - (ms * this.width) / this.span}px)` });
    this.animation?.cancel();
    this.animation = null;
    this.strip.style.transform = at(0).transform;
    if (this.paused || still()) return;
    const ms = 2 * this.span;
    this.animation = this.strip.animate([at(0), at(ms)], { duration: ms, easing: 'linear', fill: 'forwards' });
    this.animation.startTime = start; // else it begins with the next frame, a little late
  }

  // #point shows the slot at t, or the newest for none.
  #point(t) {
    this.pointed = t;
    this.#describe();
  }

  #at = (t) => this.slots.findIndex((s) => s.from <= t && t < s.to);

  #describe() {
    const pointed = this.pointed ? this.#at(this.pointed) : -1;
    const i = pointed >= 0 ? pointed : this.slots.length - 1;
    const slot = this.slots[i];
    if (!slot) return;
    const per = (l) => rate((1000 * l.value(slot)) / slot.ms);
    // A slot of a second is shown as a moment. For longer ones the rate is a mean, and its interval is shown.
    const moment = slot.ms < 5e3;
    const time = moment ? clock(slot.to + this.offset()) : `${minute(slot.from + this.offset())} to ${minute(slot.to + this.offset())}`;
    const mark = this.marks.filter((m) => slot.from <= m.at && m.at < slot.to).map((m) => `, ${m.name}`).join('');
    const began = this.bans.filter((b) => slot.from <= (b.from + b.to) / 2 && (b.from + b.to) / 2 < slot.to).reduce((n, b) => n + b.n, 0);
    const text = `${time}: ${this.layers.map((l) => `${per(l)} ${l.name}`).join(', ')}, per second${began ? `, ${began} ${began === 1 ? 'ban' : 'bans'} began` : ''}${mark}`;
    setText(this.when, pointed >= 0 ? text : moment ? 'per second' : `per second, ${time}`);
    this.guide.hidden = pointed < 0;
    if (pointed >= 0) {
      const middle = (slot.from + slot.to) / 2;
      this.guide.style.transform = `translateX(${gutter + (this.width * (middle - this.#edge() + this.span)) / this.span}px)`;
    }
    if (pointed < 0 && document.activeElement === this.plot) return;
    this.plot.setAttribute('aria-valuemax', this.slots.length - 1);
    this.plot.setAttribute('aria-valuenow', i);
    this.plot.setAttribute('aria-valuetext', text);
  }

  #key(e) {
    const last = this.slots.length - 1;
    const i = this.pointed ? this.#at(this.pointed) : last + 1;
    const to = { ArrowLeft: i - 1, ArrowRight: i + 1, Home: 0, End: last, PageDown: i - 10, PageUp: i + 10 }[e.key];
    if (to === undefined || last < 0) return;
    e.preventDefault();
    const slot = this.slots[Math.max(0, Math.min(last, to))];
    this.#point((slot.from + slot.to) / 2);
  }
}

const intervals = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200].map((s) => 1000 * s);

// spark returns a small line of values, and how to change it.
export function spark(css) {
  const area = svg('path', { class: `area ${css}` });
  const line = svg('path', { class: `line ${css}` });
  const node = svg('svg', { class: 'spark', viewBox: '0 0 100 24', preserveAspectRatio: 'none', 'aria-hidden': 'true' }, area, line);
  const show = (values, most = Math.max(...values)) => {
    const step = 100 / Math.max(1, values.length - 1);
    const points = values.map((v, i) => `${(i * step).toFixed(1)} ${(23 - (most > 0 ? (21 * v) / most : 0)).toFixed(1)}`);
    const d = points.length > 1 ? `M${points.join('L')}` : '';
    line.setAttribute('d', d);
    area.setAttribute('d', d && `${d}L100 24L0 24Z`);
  };
  return { node, show };
}

// windowBars draws one window of a key at a time: its slots, and the window's two
// edges. The slot that the left edge cuts through counts in hi and not in lo: its
// count is the difference, where the server does not tell it.
export function windowBars({ slots: told, lo, hi }, spanMs, now) {
  let slots = told ?? [];
  const width = Math.max(1, ...slots.slice(1).map((s, i) => Date.parse(s.start) - Date.parse(slots[i].start)).filter((w) => w > 0 && w <= spanMs / 2)) || spanMs / 10;
  const each = Number.isFinite(width) && width > 1 ? width : spanMs / 10;
  const from = now - spanMs;
  const first = slots.length ? Date.parse(slots[0].start) : 0;
  if (hi > lo && first > from) slots = [{ start: new Date(first - each * Math.ceil((first - from) / each)).toISOString(), count: hi - lo }, ...slots];
  const [left, right] = [from - each, now + each];
  const most = Math.max(1, ...slots.map((s) => s.count));
  const x = (t) => (100 * (t - left)) / (right - left);
  const bars = slots.map((s) => {
    const start = Date.parse(s.start);
    if (start + each <= from) return null;
    const cut = start < from;
    const tall = (46 * s.count) / most;
    return svg('rect', {
      class: cut ? 'cutslot' : start + each > now ? 'current' : 'slot', x: x(start) + 0.3, width: Math.max(0.4, x(start + each) - x(start) - 0.6), y: 48 - tall, height: s.count ? Math.max(tall, 0.8) : 0,
    });
  });
  const edge = (t) => svg('line', { class: 'edge', x1: x(t), x2: x(t), y1: 0, y2: 48 });
  return svg('svg', { class: 'window', viewBox: '0 0 100 50', preserveAspectRatio: 'none', 'aria-hidden': 'true' },
    svg('rect', { class: 'span', x: x(from), width: x(now) - x(from), y: 0, height: 48 }), bars, edge(from), edge(now), svg('line', { class: 'zero', x1: 0, x2: 100, y1: 48, y2: 48 }));
}
