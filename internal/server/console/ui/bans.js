// The bans in force.

import { get } from './api.js';
import { add, unban, unbanMany, unbanMatching } from './dialogs.js';
import { h, keyNode, list, plain, ruleHref, setText, shown } from './dom.js';
import { banKey, empty, writeRules } from './commands.js';
import { ago, count, date, left, many, sentenceOf } from './format.js';
import { live, on, poll } from './live.js';
import { page } from './parts.js';

const perPage = 100;

export function bansView(main, params, signal) {
  const total = h('span', { class: 'dim total' });
  page(main, 'Bans', total, h('button', { type: 'button', class: 'admin', onclick: () => unbanMatching({ rule }, again) }, 'Unban many…'),
    h('button', { type: 'button', class: 'primary admin', onclick: () => add({}, again) }, 'Add a ban…'));
  let rule = params.get('rule') ?? '';
  let q = params.get('q') ?? '';
  let cursors = ['']; // of the pages up to this one
  let next = ''; // of the page after it
  let bans = [];
  let typing = 0;

  const search = h('input', { type: 'search', 'aria-label': 'Search in keys and reasons', placeholder: 'Search in keys and reasons', value: q, spellcheck: 'false', autocomplete: 'off', oninput: () => {
    clearTimeout(typing);
    typing = setTimeout(() => {
      q = search.value;
      cursors = [''];
      again();
    }, 200);
  } });
  const filter = h('select', { 'aria-label': 'Rule', onchange: () => {
    rule = filter.value;
    cursors = [''];
    again();
  } });
  const options = () => filter.replaceChildren(h('option', { value: '' }, 'All rules'), ...[...live.rules.values()].filter((r) => r.kind !== 'hot').map((r) => h('option', { value: r.name, selected: r.name === rule }, r.name)));
  // The selected bans, by their names. A ban that has ended is removed.
  const chosen = new Map();
  const all = h('input', { type: 'checkbox', 'aria-label': 'Select all bans of this page', onchange: () => {
    for (const b of bans) all.checked ? chosen.set(nameOf(b), b) : chosen.delete(nameOf(b));
    show();
  } });
  const unbanChosen = h('button', { type: 'button', class: 'danger', onclick: () => unbanMany([...chosen.values()], () => {
    chosen.clear();
    again();
  }) });
  const none0 = h('button', { type: 'button', onclick: () => (chosen.clear(), show()) }, 'Select none');
  const selection = h('div', { class: 'chosenbans admin', hidden: true }, unbanChosen, none0);
  const heads = ['Key', 'Left', 'Since', 'Reason', 'Source'].map((t) => h('th', { scope: 'col', class: `col-${t.toLowerCase()}` }, t));
  const body = h('tbody', {});
  const table = h('table', { class: 'bans' }, h('thead', {}, h('tr', {}, h('th', { class: 'pickcell admin' }, all), heads, h('th', { scope: 'col', class: 'col-end' }, h('span', { class: 'hide' }, 'Unban')))), body);
  const nothing = empty('No key is banned.');
  const back = h('button', { type: 'button', onclick: () => turn(cursors.slice(0, -1)) }, 'Previous');
  const further = h('button', { type: 'button', onclick: () => turn([...cursors, next]) }, 'Next');
  const where = h('span', { class: 'dim' });
  const pager = h('div', { class: 'pager', hidden: true }, back, where, further);
  main.append(h('div', { class: 'controls' }, search, filter, selection), h('div', { class: 'tablebox' }, table), nothing.node, pager);

  const turn = (to) => {
    cursors = to;
    again();
  };
  const pick = (b, is) => {
    is ? chosen.set(nameOf(b), b) : chosen.delete(nameOf(b));
    show();
  };
  const show = () => {
    for (const [name, b] of chosen) if (Date.parse(b.until) <= live.now()) chosen.delete(name);
    list(body, groups(bans), (b) => (b.bans ? `group ${b.rule}` : JSON.stringify([nameOf(b), b.since, Boolean(live.fieldsOf(b.rule))])),
      (b) => (b.bans ? group(b) : row(b, () => again(), (is) => pick(b, is), () => chosen.has(nameOf(b)))));
    const here = bans.filter((b) => chosen.has(nameOf(b))).length;
    all.checked = here > 0 && here === bans.length;
    all.indeterminate = here > 0 && here < bans.length;
    selection.hidden = !chosen.size;
    setText(unbanChosen, `Unban ${count(chosen.size)} selected…`);
  };
  const question = () => JSON.stringify([rule, q, cursors]);
  const again = poll(5000, signal, async () => {
    const asked = question();
    const answer = await get('bans', { rule, q, limit: perPage, cursor: cursors.at(-1) || undefined }, signal);
    if (asked !== question()) return; // the query has changed, and is sent next
    bans = answer.bans ?? [];
    setText(total, `${count(answer.total)} in force`);
    nothing.say(q || rule ? 'No ban matches.' : 'No key is banned.');
    const first = [...live.rules.values()].find((r) => r.kind !== 'hot');
    nothing.suggest(...(q || rule ? [] : first ? banKey(first.name) : writeRules()));
    nothing.show(!bans.length);
    table.hidden = !bans.length;
    next = answer.next ?? '';
    const before = (cursors.length - 1) * perPage;
    pager.hidden = !next && !before;
    setText(where, `${count(before + 1)} to ${count(before + bans.length)} of ${count(answer.total)}`);
    back.disabled = !before;
    further.disabled = !next;
    show();
  });
  on('ban unban', signal, () => again());
  on('second', signal, show);
  on('rules', signal, options);
  options();
}

// groups returns the bans by their rules, each group behind its head.
function groups(bans) {
  const rules = Map.groupBy(bans, (b) => b.rule);
  return [...rules].flatMap(([rule, of]) => [{ rule, bans: of.length }, ...of]);
}

// group is the head of the bans under one rule.
function group({ rule }) {
  const n = h('span', { class: 'dim' });
  const sentence = h('span', { class: 'dim sentence' });
  const node = h('tr', { class: 'group' }, h('th', { scope: 'rowgroup', colspan: 7 }, h('div', {}, h('a', { class: 'name', href: ruleHref(rule) }, rule), n, sentence)));
  return { node, update: ({ bans }) => {
    setText(n, many(bans, 'ban'));
    setText(sentence, sentenceOf(live.rules.get(rule) ?? {}));
  } };
}

// nameOf returns the rule and the key of a ban, which identify it. Keys that are not
// UTF-8 are in base64.
const nameOf = (b) => JSON.stringify([b.rule, b.key_base64 ?? b.key]);

function row(ban, again, pick, picked) {
  const box = h('input', { type: 'checkbox', 'aria-label': `Select the ban of ${plain(ban.key.join(' '), 60)} under ${plain(ban.rule, 60)}`, onchange: () => pick(box.checked) });
  const key = ban.key;
  const [since, until] = [Date.parse(ban.since), Date.parse(ban.until)];
  const rest = h('b', { class: 'n' });
  const bar = h('i', { class: 'bar banned' });
  const began = h('span', { class: 'dim', title: date(since) });
  const cell = (name, ...children) => h('td', { 'data-name': name }, children);
  const node = h('tr', { class: ban.source === 'rule' ? 'ban byrule' : 'ban' }, h('td', { class: 'pickcell admin' }, box), cell('Key', keyNode(live.fieldsOf(ban.rule), key, 56)),
    cell('Left', rest, h('span', { class: 'track thin', title: `until ${date(until)}` }, bar)), cell('Since', began, ban.count > 1 && h('span', { class: 'tag again', title: 'Bans of this key so far' }, `${ban.count}×`)),
    cell('Reason', h('span', { class: 'line', title: plain(ban.reason ?? '') }, ban.reason ? shown(ban.reason, 90) : '–')), cell('Source', h('span', { class: 'dim' }, ban.source ? shown(ban.source) : 'manual')),
    cell('', h('button', { type: 'button', class: 'admin', 'aria-label': `Unban ${plain(key.join(' '), 60)}`, onclick: () => unban(ban, again) }, 'Unban')));
  return { node, update: () => {
    box.checked = picked();
    const ms = until - live.now();
    setText(rest, ms > 0 ? left(ms) : 'ended');
    bar.style.width = `${Math.max(0, Math.min(100, (100 * ms) / (until - since)))}%`;
    setText(began, ago(live.now() - since));
  } };
}
