// Elements that several views use.

import { h, setText } from './dom.js';

// page adds a view's heading to main, and the elements beside it.
export function page(main, title, ...beside) {
  const head = h('div', { class: 'head' }, h('h1', {}, title), beside);
  main.append(head);
  return head;
}

// panel is a section of a view with a heading.
export function panel(title, css, ...children) {
  const id = `p-${css.split(' ')[0]}`;
  return h('section', { class: `panel ${css}`, 'aria-labelledby': id }, h('h2', { id }, title), children);
}

// choice is a row of buttons of which one is chosen. options are [value, text].
export function choice(label, options, chosen, f) {
  const buttons = new Map();
  const node = h('div', { class: 'choice', role: 'group', 'aria-label': label });
  const pick = (value) => {
    for (const [v, b] of buttons) b.setAttribute('aria-pressed', String(v === value));
  };
  for (const [value, text] of options) {
    const b = h('button', { type: 'button', onclick: () => (pick(value), f(value)) }, text);
    buttons.set(value, b);
    node.append(b);
  }
  pick(chosen);
  return node;
}

// none is the text of an empty list.
export function none(text) {
  const node = h('p', { class: 'none', hidden: true }, text);
  return { node, say: (words) => setText(node, words), show: (is) => (node.hidden = !is) };
}

// facts is a list of names and values, and how to set one.
export function facts(names) {
  const values = new Map();
  const node = h('dl', { class: 'facts' }, Object.entries(names).map(([id, name]) => {
    const dd = h('dd', {}, '–');
    values.set(id, dd);
    return h('div', {}, h('dt', {}, name), dd);
  }));
  return { node, set: (id, text) => setText(values.get(id), text) };
}

// stored and store keep a choice in this browser.
export function stored(name, otherwise) {
  try {
    return localStorage.getItem(`lately.${name}`) ?? otherwise;
  } catch {
    return otherwise;
  }
}

export function store(name, value) {
  try {
    localStorage.setItem(`lately.${name}`, value);
  } catch { /* no storage: the choice is lost with the page */ }
}
