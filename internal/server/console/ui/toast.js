// Short messages about what was done. Screen readers read them once.

import { h } from './dom.js';

const place = document.getElementById('toasts');

// toast shows text for some seconds. tone is '' or 'bad'.
export function toast(text, tone = '') {
  if (place.lastElementChild?.textContent === text) return;
  const node = h('p', { class: `toast ${tone}` }, text);
  place.append(node);
  while (place.children.length > 3) place.firstElementChild.remove();
  setTimeout(() => node.remove(), tone ? 9000 : 5000);
}
