// A place for the text of a rules file: line numbers, a little colour, marks.

import { h } from './dom.js';

const tinted = 200_000; // characters; more stays in one colour

export class Editor {
  constructor(changed) {
    this.marks = [];
    this.lines = h('pre', { class: 'lines', 'aria-hidden': 'true' });
    this.back = h('pre', { class: 'back', 'aria-hidden': 'true' });
    this.area = h('textarea', { 'aria-label': 'Rules file', spellcheck: 'false', autocapitalize: 'off', autocomplete: 'off', wrap: 'off', readonly: true,
      oninput: () => {
        this.marks = [];
        this.#draw();
        changed();
      },
      onscroll: () => this.#scroll(),
      onkeydown: (e) => {
        if (e.key === 'Enter' && (e.ctrlKey || e.metaKey)) this.onCheck?.();
      } });
    this.node = h('div', { class: 'editor' }, h('div', { class: 'margin' }, this.lines), h('div', { class: 'sheet' }, this.back, this.area));
  }

  get text() {
    return this.area.value;
  }
  set text(text) {
    this.area.value = text;
    this.#draw();
  }
  set readOnly(is) {
    this.area.readOnly = is;
    this.node.classList.toggle('editing', !is);
  }

  focus() {
    this.area.focus({ preventScroll: true });
    this.area.setSelectionRange(0, 0);
  }
  select() {
    this.area.focus();
    this.area.select();
  }

  // mark shows where mistakes are: {line, column}, from 1.
  mark(marks) {
    this.marks = marks.filter((m) => m.line > 0);
    this.#draw();
  }

  goto(line, column) {
    const before = this.text.split('\n').slice(0, line - 1);
    const at = before.reduce((n, l) => n + l.length + 1, 0) + Math.max(0, column - 1);
    this.area.focus();
    this.area.setSelectionRange(at, at);
    this.area.scrollTop = Math.max(0, (line - 5) * parseFloat(getComputedStyle(this.area).lineHeight));
  }

  #scroll() {
    this.lines.scrollTop = this.back.scrollTop = this.area.scrollTop;
    this.back.scrollLeft = this.area.scrollLeft;
  }

  #draw() {
    const lines = this.text.split('\n');
    const bad = new Map(this.marks.map((m) => [m.line, m.column]));
    this.lines.replaceChildren(...lines.flatMap((_, i) => [bad.has(i + 1) ? h('mark', {}, String(i + 1)) : String(i + 1), '\n']));
    const colour = this.text.length <= tinted;
    this.back.replaceChildren(...lines.flatMap((line, i) => [...(bad.has(i + 1) ? marked(line, bad.get(i + 1)) : colour ? tint(line) : [line]), '\n']));
    this.area.rows = Math.min(40, Math.max(12, lines.length + 1));
    this.#scroll();
  }
}

// marked shows a line with the word at a column marked.
function marked(line, column) {
  const at = Math.max(0, Math.min(line.length, column - 1));
  const word = line.slice(at).match(/^[^\s,:\]}]+/)?.[0] ?? line.slice(at, at + 1);
  return [...tint(line.slice(0, at)), h('mark', {}, word || ' '), ...tint(line.slice(at + word.length))];
}

// tint colours names, strings and comments that one line is enough to recognize.
function tint(line) {
  const out = [];
  let rest = 0;
  for (const m of line.matchAll(/("(?:[^"\\]|\\.)*"|'[^']*')|((?:^|\s)#.*$)|([\w.-]+)(?=:(?:\s|$))/g)) {
    out.push(line.slice(rest, m.index), h('span', { class: m[1] ? 'string' : m[2] ? 'comment' : 'name' }, m[0]));
    rest = m.index + m[0].length;
  }
  out.push(line.slice(rest));
  return out;
}
