// The rules file: its text, each rule with its figures, and an editor to check a change.
// Nothing here writes the file.

import { get, post, postText } from './api.js';
import { h, list, rowOf, setText } from './dom.js';
import { dropBans } from './dialogs.js';
import { Editor } from './editor.js';
import { copy, empty, writeRules } from './commands.js';
import { age, count, many, rate, sentenceOf, share } from './format.js';
import { live, on, poll } from './live.js';
import { page, panel } from './parts.js';
import { toast } from './toast.js';
import { emptyTrial, tryDraft } from './trial.js';

export function rulesView(main, params, signal) {
  const state = h('span', { class: 'dim total' });
  const reload = h('button', { type: 'button', class: 'admin', onclick: () => load() }, 'Reload the file');
  page(main, 'Rules', state, reload);
  const failure = h('p', { class: 'failure', role: 'alert', hidden: true });

  const editor = new Editor(() => {
    clearTimeout(typing);
    typing = setTimeout(check, 600);
  });
  let typing = 0;
  let editing = false;
  const edit = h('button', { type: 'button', class: 'admin', 'aria-pressed': 'false', onclick: () => toggle() }, 'Try a change');
  const checkButton = h('button', { type: 'button', hidden: true, onclick: () => check() }, 'Check');
  const tryButton = h('button', { type: 'button', class: 'primary', hidden: true, onclick: () => tryIt() }, 'Try on recent events');
  const trial = h('div', { class: 'trialresult', 'aria-live': 'polite' });
  const copyButton = h('button', { type: 'button', onclick: () => copy(editor.text, () => editor.select()) }, 'Copy');
  const verdict = h('div', { class: 'verdict', 'aria-live': 'polite' });
  const file = h('span', { class: 'file' });
  const cards = h('ul', { class: 'cards' });
  const nothing = empty('There are no rules: everything is allowed.', ...writeRules());
  const each = panel('Each rule', 'rulecards', cards, nothing.node);
  const change = panel('What the change does', 'trypanel', trial, verdict);
  change.hidden = true;
  main.append(failure, panel('File', 'filepanel', h('div', { class: 'bartop' }, file, edit, checkButton, tryButton, copyButton), editor.node), change, each);

  const show = () => {
    const book = live.book;
    if (!book) return;
    setText(file, editing ? 'A copy, which is not saved: write it to the file, then reload.' : book.file || 'no file');
    setText(state, `in force for ${age(live.now() - Date.parse(book.since))}`);
    failure.hidden = !book.error;
    setText(failure, book.error ? `The last reload failed, and the previous rules stay in force. ${book.error}` : '');
    if (!editing && editor.text !== (book.text ?? '')) editor.text = book.text ?? '';
    const items = [...live.rules.values(), ...(book.counters ?? []).map((c) => ({ ...c, kind: 'counter' })), ...(live.allow.length ? [{ name: 'allow', kind: 'allow', sentence: `${live.allow.join(', ')}: never limited, never banned.` }] : [])];
    nothing.show(!items.length);
    list(cards, items, (r) => `${r.kind} ${r.name}`, card);
    showRates();
    choose();
  };
  // choose brings the card of the rule that the address names into view, once.
  let chosen = params.get('rule');
  const choose = () => {
    const row = ['limit', 'ban', 'hot'].map((kind) => rowOf(cards, `${kind} ${chosen}`)).find(Boolean);
    if (!row) return;
    row.node.classList.add('chosen');
    row.node.scrollIntoView({ block: 'center' });
    chosen = null;
  };
  let minute = null; // the last one
  const showRates = () => {
    if (!minute) return;
    const time = (Date.parse(minute.to) - Date.parse(minute.from)) / 1000 || 1;
    for (const [name, r] of Object.entries(minute.rules ?? {})) (rowOf(cards, `limit ${name}`) ?? rowOf(cards, `ban ${name}`))?.rate(r, time);
  };

  const toggle = () => {
    editing = !editing;
    editor.readOnly = !editing;
    edit.setAttribute('aria-pressed', String(editing));
    setText(edit, editing ? 'Back to the file' : 'Try a change');
    checkButton.hidden = tryButton.hidden = !editing;
    change.hidden = !editing;
    each.hidden = editing;
    trial.replaceChildren(...emptyTrial());
    editor.mark([]);
    verdict.replaceChildren();
    show();
    if (editing) editor.focus();
  };

  // check shows what is wrong with the copy, or what it says.
  const check = async () => {
    clearTimeout(typing);
    if (!editing) return;
    const text = editor.text;
    let answer;
    try {
      answer = await postText('rules/check', text);
    } catch (err) {
      verdict.replaceChildren(h('p', { class: 'bad' }, err.message));
      return;
    }
    if (text !== editor.text) return;
    tell(answer.errors ?? [], answer.warnings ?? [], answer.sentences ?? []);
  };
  // tryIt shows what the copy would have changed.
  const tryIt = async () => {
    const text = editor.text;
    tryButton.disabled = true;
    trial.replaceChildren(h('p', { class: 'dim' }, 'Judging the recent events…'));
    try {
      const { errors, nodes } = await tryDraft(text);
      trial.replaceChildren(...(text === editor.text ? nodes.filter(Boolean) : [h('p', { class: 'dim' }, 'The copy has changed: try it again.')]));
      if (errors.length) tell(errors, [], []);
    } catch (err) {
      trial.replaceChildren(h('p', { class: 'bad' }, err.message));
    }
    tryButton.disabled = false;
  };
  const tell = (errors, warnings, sentences) => {
    editor.mark([...errors, ...warnings]);
    const place = (e, css) => h('li', { class: css }, e.line ? h('button', { type: 'button', class: 'at', onclick: () => editor.goto(e.line, e.column) }, `${e.line}:${e.column}`) : '', ' ', e.message);
    verdict.replaceChildren(
      h('p', { class: errors.length ? 'bad' : 'good' }, errors.length ? `${errors.length === 1 ? 'One mistake' : `${errors.length} mistakes`}: this file would be rejected.` : 'This file would be accepted.'),
      h('ul', {}, errors.map((e) => place(e, 'bad')), warnings.map((e) => place(e, 'warn'))),
      ...(errors.length ? [] : sentences.map((s) => h('p', { class: 'sentence' }, s))));
  };
  editor.onCheck = check;

  const load = async () => {
    reload.disabled = true;
    try {
      await post('rules/reload');
      toast('The rules file is in force.');
    } catch (err) {
      if (err.code === 'CONFLICT') dropBans(err.message, refresh);
      else toast(err.message, 'bad');
    }
    reload.disabled = false;
    refresh();
  };
  const refresh = () => live.refresh().catch(() => {});

  poll(3000, signal, async () => {
    const { rates } = await get('rates', { span: '1m', points: 1, rules: 1 }, signal);
    minute = rates?.at(-1) ?? null;
    showRates();
  });
  poll(6000, signal, async () => {
    const book = await get('rules', {}, signal);
    live.book = book;
    live.rules = new Map((book.rules ?? []).map((r) => [r.name, r]));
    show();
  });
  on('rules second', signal, show);
  show();
}

// card is one rule: its sentence, and what it does now.
function card({ name, kind }) {
  const sentence = h('p', { class: 'sentence' });
  const shadow = h('span', { class: 'tag shadow', hidden: true }, 'shadow');
  const now = h('p', { class: 'now' }, kind === 'limit' || kind === 'ban' ? '–' : '');
  const bar = h('i', { class: 'bar refused' });
  const sums = h('p', { class: 'dim sums' });
  const lacking = h('p', { class: 'sums', hidden: true });
  const judged = kind === 'limit' || kind === 'ban';
  const node = h('li', { class: `rulecard ${kind}` }, h('h3', {}, name, h('span', { class: 'tag' }, kind), shadow), sentence, judged && [now, h('span', { class: 'track thin' }, bar), sums, lacking]);
  const update = (r) => {
    setText(sentence, sentenceOf(r));
    shadow.hidden = !r.shadow;
    const s = r.stats;
    if (s) setText(sums, `${count(s.allowed)} allowed, ${count(s.refused)} refused, ${count(s.banned)} banned${s.shadow ? `, ${count(s.shadow)} would be` : ''}; ${many(s.keys, 'key')}${s.bans || s.bans_started ? `; ${many(s.bans, 'ban')} in force, ${count(s.bans_started)} since the start` : ''}`);
    lacking.hidden = !s?.lacking_sentence;
    setText(lacking, s?.lacking_sentence ?? '');
  };
  // rate shows the last minute.
  const showRate = (r, time) => {
    const refused = r.refused + r.banned;
    const no = refused + r.shadow;
    setText(now, `${rate(no / time)}/s ${r.shadow > refused ? 'would be refused' : 'refused'}, ${share(no, no + r.allowed)} of its events in the last minute`);
    bar.style.width = `${no ? Math.max(0.5, (100 * no) / (no + r.allowed)) : 0}%`;
    bar.classList.toggle('shadow', r.shadow > refused);
  };
  return { node, update, rate: showRate };
}
