// The dialogs of the page.

import { post } from './api.js';
import { h, keyHref, keyNode } from './dom.js';
import { count, milliseconds } from './format.js';
import { live } from './live.js';
import { complete } from './search.js';
import { toast } from './toast.js';

// open shows a dialog until it is closed, and restores the focus.
function open(label, ...content) {
  document.querySelector('dialog[open]')?.close();
  const before = document.activeElement;
  const node = h('dialog', { class: 'card', 'aria-label': label }, content);
  node.addEventListener('close', () => {
    node.remove();
    if (before?.isConnected) before.focus({ preventScroll: true });
  });
  node.addEventListener('click', (e) => e.target === node && node.close());
  document.body.append(node);
  node.showModal();
  return node;
}

const heading = (text) => h('h2', {}, text);
const cancel = () => h('button', { type: 'button', onclick: (e) => e.target.closest('dialog').close() }, 'Cancel');

export function help() {
  const key = (keys, text) => [h('dt', {}, keys.flatMap((k, i) => (i ? [' ', h('kbd', {}, k)] : [h('kbd', {}, k)]))), h('dd', {}, text)];
  open('Help and keys', heading('Keys'), h('dl', { class: 'help' },
    key(['g', 'o'], 'Overview'), key(['g', 'k'], 'Keys'), key(['g', 'b'], 'Bans'), key(['g', 'r'], 'Rules'), key(['g', 'h'], 'Hot'),
    key(['/'], 'Search a key'), key(['p'], 'Pause and continue'), key(['t'], 'Dark or light'), key(['←', '→'], 'In a chart: slot by slot'), key(['?'], 'This help'), key(['Esc'], 'Close, leave a field, go back')),
  heading('Words'), h('dl', { class: 'help words' },
    key(['lo', 'hi'], 'The bounds of a count. The oldest slot is only partly in the window: hi includes it, lo does not. The true count is between them.'),
    h('dt', {}, 'refused'), h('dd', {}, 'Not allowed, because of a limit.'),
    h('dt', {}, 'banned'), h('dd', {}, 'Not allowed, because of a ban.'),
    h('dt', {}, 'unmatched'), h('dd', {}, 'Allowed because no rule matched the event.'),
    h('dt', {}, 'shadow'), h('dd', {}, 'A rule that counts the requests that it would refuse, and refuses none.')),
  h('div', { class: 'actions' }, h('button', { type: 'button', class: 'primary', autofocus: true, onclick: (e) => e.target.closest('dialog').close() }, 'Close')));
}

// fieldSets returns what keys are made of here, without repetition.
export function fieldSets() {
  const sets = new Map();
  for (const r of [...(live.book?.counters ?? []), ...live.rules.values()]) if (r.fields?.length) sets.set(r.fields.join(' + '), r.fields);
  return sets.size ? sets : new Map([['client', ['client']]]);
}

// inputs shows one text field for each of fields.
function inputs(place, fields, values = []) {
  place.replaceChildren(...fields.map((f, i) => h('label', {}, f, h('input', { name: 'value', value: values[i] ?? '', required: true, maxlength: 1024, spellcheck: 'false', autocapitalize: 'off', autocomplete: 'off', autofocus: i === 0 }))));
}

// find asks for a key, which it completes, and goes to its page.
export function find() {
  const sets = fieldSets();
  const change = () => {
    inputs(place, sets.get(choice.value));
    complete(place.querySelector('input'), found, sets.get(choice.value), show);
    place.querySelector('input').focus();
  };
  const choice = h('select', { name: 'fields', onchange: change }, [...sets.keys()].map((s) => h('option', {}, s)));
  const place = h('div', { class: 'inputs' });
  const found = h('ul', { class: 'found', role: 'listbox', id: 'found', 'aria-label': 'Keys that begin like this', hidden: true });
  const show = (fields, values) => {
    node.close();
    location.hash = keyHref(fields, values);
  };
  const go = (e) => {
    e.preventDefault();
    show(sets.get(choice.value), new FormData(e.target).getAll('value'));
  };
  const node = open('Search a key', h('form', { onsubmit: go }, heading('Search a key'), h('label', { hidden: sets.size < 2 }, 'Counted by', choice), place, found, h('div', { class: 'actions' }, cancel(), h('button', { class: 'primary' }, 'Show'))));
  change();
}

const bodyOf = (ban) => (ban.key_base64 ? { rule: ban.rule, key_base64: ban.key_base64 } : { rule: ban.rule, key: ban.key });

// confirm asks a question, and calls act, which returns the message to show. The dialog
// shows an error of act, and stays open.
function confirm(title, button, act, ...content) {
  const said = h('p', { class: 'said', role: 'alert' });
  const go = h('button', { class: 'primary danger', autofocus: true }, button);
  const send = async (e) => {
    e.preventDefault();
    go.disabled = true;
    try {
      toast(await act(new FormData(e.target)));
      node.close();
    } catch (err) {
      said.textContent = err.message;
    }
    go.disabled = false;
  };
  const node = open(title, h('form', { onsubmit: send }, heading(title), content, said, h('div', { class: 'actions' }, cancel(), go)));
  return node;
}

// unban asks whether to end a ban, and does.
export function unban(ban, done = () => {}) {
  confirm('Unban this key?', 'Unban', async () => {
    const { unbanned } = await post('bans/unban', bodyOf(ban));
    done();
    return unbanned === 0 ? 'The ban had already ended.' : 'The key is unbanned.';
  }, h('p', { class: 'subject' }, keyNode(null, ban.key, 200)), h('p', { class: 'dim' }, 'under ', h('b', {}, ban.rule), '. From then on it is judged like any other key.'));
}

// removeHot asks whether to make a hot key cold, and does.
export function removeHot(k, done = () => {}) {
  confirm('Make this key cold?', 'Remove', async () => {
    const { removed } = await post('hot/remove', bodyOf(k));
    done();
    return removed ? 'The key is cold.' : 'The key was no longer hot.';
  }, h('p', { class: 'subject' }, keyNode(null, k.key, 200)), h('p', { class: 'dim' }, 'under ', h('b', {}, k.rule), '. Processes drop its value, and its counts are deleted. It becomes hot again if it reaches the threshold.'));
}

// ignoreHot asks whether never to count a key, and does so.
export function ignoreHot(k, done = () => {}) {
  confirm('Ignore this key?', 'Ignore', async () => {
    await post('hot/ignore', bodyOf(k));
    done();
    return 'The key is ignored.';
  }, h('p', { class: 'subject' }, keyNode(null, k.key, 200)), h('p', { class: 'dim' }, 'under ', h('b', {}, k.rule), '. It is no longer counted, and does not become hot, until you choose “Count again” on this page.'));
}

// addHot asks for a key and makes it hot.
export function addHot(done = () => {}) {
  const rules = [...live.rules.values()].filter((r) => r.kind === 'hot');
  if (!rules.length) {
    toast('There is no hot rule.', 'bad');
    return;
  }
  const choice = h('select', { name: 'rule', onchange: () => inputs(place, live.fieldsOf(choice.value)) }, rules.map((r) => h('option', {}, r.name)));
  const place = h('div', { class: 'inputs' });
  confirm('Add a hot key', 'Add', async (form) => {
    const text = form.get('for').trim();
    const ms = milliseconds(text);
    if (text && !(ms > 0)) throw new Error('A duration is numbers with units (ms, s, m, h, d, w), such as 90m or 1h30m.');
    await post('hot', { rule: choice.value, key: form.getAll('value'), ...(text ? { ttl_ms: ms } : {}) });
    done();
    return 'The key is hot.';
  }, h('label', {}, 'Rule', choice), place, h('label', {}, 'For', h('input', { name: 'for', placeholder: 'such as 10m; without it, the hold of the rule', spellcheck: 'false', autocomplete: 'off' })));
  inputs(place, live.fieldsOf(choice.value));
  place.querySelector('input').focus();
}

// unbanMany asks whether to end these bans, and does, one after another: one that fails
// leaves those before it ended.
export function unbanMany(bans, done = () => {}) {
  const some = bans.slice(0, 8).map((b) => h('li', {}, keyNode(null, b.key, 60), ' ', h('span', { class: 'tag' }, b.rule)));
  const title = bans.length === 1 ? 'Unban this key?' : `Unban these ${count(bans.length)} keys?`;
  confirm(title, `Unban ${count(bans.length)}`, async () => {
    let n = 0;
    try {
      for (const b of bans) n += (await post('bans/unban', bodyOf(b))).unbanned;
    } finally {
      done();
    }
    return `${count(n)} ${n === 1 ? 'key is' : 'keys are'} unbanned.`;
  }, h('ul', { class: 'some' }, some, bans.length > some.length && h('li', { class: 'dim' }, `and ${count(bans.length - some.length)} more`)));
}

// unbanMatching asks which bans to end: by rule, by pattern of the key, by network.
export function unbanMatching({ rule = '' } = {}, done = () => {}) {
  const field = (label, name, placeholder) => h('label', {}, label, h('input', { name, placeholder, maxlength: 1024, spellcheck: 'false', autocapitalize: 'off', autocomplete: 'off' }));
  const rules = [...live.rules.values()].filter((r) => r.kind !== 'hot');
  confirm('Unban many keys', 'Unban', async (form) => {
    const body = Object.fromEntries([...form].filter(([, v]) => v));
    if (!Object.keys(body).length) throw new Error('Choose a rule, a pattern or a network. The pattern * selects every ban.');
    const { unbanned } = await post('bans/unban', body);
    done();
    return `${count(unbanned)} ${unbanned === 1 ? 'key is' : 'keys are'} unbanned.`;
  }, h('p', { class: 'dim' }, 'A ban ends if it matches everything given here. A rule that still matches bans the keys again: correct it first.'),
  h('label', {}, 'Rule', h('select', { name: 'rule' }, h('option', { value: '' }, 'any'), rules.map((r) => h('option', { value: r.name, selected: r.name === rule }, r.name)))),
  field('Pattern of the key', 'pattern', '192.0.2.*'), field('Network', 'network', '192.0.2.0/24'));
}

// dropBans shows why a reload that would drop bans was refused, and asks whether to
// reload nevertheless.
export function dropBans(why, done = () => {}) {
  confirm('Reload and drop bans?', 'Reload', async () => {
    await post('rules/reload', { drop_bans: true });
    done();
    return 'The rules file is in force.';
  }, h('p', {}, why));
}

const presets = ['10m', '1h', '6h', '24h', '7d'];

// add asks for the details of a ban and adds it.
export function add({ rule, values } = {}, done = () => {}) {
  const rules = [...live.rules.values()].filter((r) => r.kind !== 'hot' && (!values || r.fields.length === values.length));
  const choice = h('select', { name: 'rule', onchange: () => inputs(place, live.fieldsOf(choice.value), values) }, rules.map((r) => h('option', { selected: r.name === rule }, r.name)));
  const place = h('div', { class: 'inputs' });
  const time = h('input', { name: 'for', value: '1h', required: true, spellcheck: 'false', autocomplete: 'off', size: 8, 'aria-describedby': 'add-said' });
  const chips = presets.map((p) => h('button', { type: 'button', class: 'chip', 'aria-pressed': String(p === '1h'), onclick: () => pick(p) }, p));
  const pick = (p) => {
    time.value = p;
    chips.forEach((c) => c.setAttribute('aria-pressed', String(c.textContent === p)));
  };
  time.addEventListener('input', () => chips.forEach((c) => c.setAttribute('aria-pressed', String(c.textContent === time.value.trim()))));
  const said = h('p', { id: 'add-said', class: 'said', role: 'alert' });
  const send = async (e) => {
    e.preventDefault();
    const form = new FormData(e.target);
    const ms = milliseconds(form.get('for'));
    if (!(ms > 0)) {
      said.textContent = 'A duration is numbers with units (ms, s, m, h, d, w), such as 90m or 1h30m.';
      return;
    }
    try {
      await post('bans', { rule: choice.value, key: form.getAll('value'), for: `${ms}ms`, reason: form.get('reason') });
      toast('The key is banned.');
      node.close();
      done();
    } catch (err) {
      said.textContent = err.message;
    }
  };
  if (!rules.length) {
    toast('No limit or ban rule can have this ban.', 'bad');
    return;
  }
  const node = open('Add a ban', h('form', { onsubmit: send }, heading('Add a ban'),
    h('label', {}, 'Rule', choice), place,
    h('fieldset', {}, h('legend', {}, 'For'), h('div', { class: 'chips' }, chips, h('label', { class: 'inline' }, h('span', { class: 'hide' }, 'Duration'), time))),
    h('label', {}, 'Reason', h('input', { name: 'reason', maxlength: 200, autocomplete: 'off', placeholder: 'shown in lists of bans' })),
    said, h('div', { class: 'actions' }, cancel(), h('button', { class: 'primary danger' }, 'Ban'))));
  inputs(place, live.fieldsOf(choice.value), values);
  place.querySelector('input').focus();
}
