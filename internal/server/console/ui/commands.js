// Commands to copy into a shell, for this server. Empty lists show them.

import { h, setText } from './dom.js';
import { live } from './live.js';
import { stored } from './parts.js';
import { toast } from './toast.js';

// empty is the text of an empty list, and commands that fill it: [what, command].
export function empty(text, ...commands) {
  const said = h('p', {}, text);
  const list = h('ul', { class: 'commands' });
  const node = h('div', { class: 'none', hidden: true }, said, list);
  let shown = '';
  const suggest = (...all) => {
    const is = JSON.stringify(all);
    if (is !== shown) list.replaceChildren(...all.map(row));
    shown = is;
  };
  suggest(...commands);
  return { node, suggest, say: (words) => setText(said, words), show: (is) => (node.hidden = !is) };
}

function row([what, command]) {
  const code = h('code', {}, command);
  return h('li', {}, h('span', { class: 'dim' }, what), h('span', { class: 'command' }, code, h('button', { type: 'button', 'aria-label': `Copy the command: ${what}`, onclick: () => copy(command, () => getSelection().selectAllChildren(code)) }, 'Copy')));
}

// copy puts text into the clipboard. Browsers refuse that without TLS: then it calls select.
export async function copy(text, select) {
  try {
    await navigator.clipboard.writeText(text);
    toast('Copied.');
  } catch {
    select();
    toast('Selected: copy it with the keyboard.');
  }
}

const base = () => `${location.origin}${location.pathname}`.replace(/\/+$/, '');
const token = () => Boolean(stored('session', ''));
// word is a name that a shell takes as one word, or what stands for it.
const word = (name, otherwise) => (/^[\w.-]+$/.test(name ?? '') ? name : otherwise);

const lately = (command, args) => `lately ${command} --addr ${base()}${token() ? ' --token-file tokens' : ''} ${args}`;
// redis is a command for the RESP listener: none, if that is off.
function redis(what, args) {
  const auth = token() ? ' -a "$LATELY_TOKEN"' : '';
  const socket = live.status?.resp?.match(/^unix:(.*)$/);
  if (socket) return [[what, `redis-cli -s ${socket[1]}${auth} ${args}`]];
  const at = live.status?.resp?.match(/^\[?(.*?)\]?:(\d+)$/);
  if (!at) return [];
  const host = ['0.0.0.0', '::'].includes(at[1]) ? location.hostname : at[1];
  const options = [host === '127.0.0.1' ? '' : ` -h ${host}`, ` -p ${at[2]}`, location.protocol === 'https:' ? ' --tls' : '', auth];
  return [[what, `redis-cli${options.join('')} ${args}`]];
}
const http = (path, body) => `curl ${base()}/v1/${path} -H 'Content-Type: application/json'${token() ? ' -H "Authorization: Bearer $LATELY_TOKEN"' : ''} -d '${JSON.stringify(body)}'`;

// one event, as a proxy or a program sends it
export const checkEvent = () => [
  ['Judge one event', lately('check', 'client=192.0.2.1 path=/')],
  ['The same over HTTP', http('check', { event: { client: '192.0.2.1', path: '/' } })],
  ...redis('The same with any client of Redis', 'CHECK client 192.0.2.1 path /'),
];

// an event for a counter
export const countKey = () => [
  ['Count an event for a key', http('counters/requests/add', { key: ['192.0.2.1'] })],
  ...redis('The same with any client of Redis', 'ADD requests 192.0.2.1'),
  ['Read its count', lately('key', '192.0.2.1')],
];

// a ban under a rule
export const banKey = (rule) => [
  ['Ban a key', lately('ban', `--rule ${word(rule, 'RULE')} --for 1h 192.0.2.1`)],
  ['The same over HTTP', http('bans', { rule: word(rule, 'RULE'), key: ['192.0.2.1'], for: '1h' })],
  ...redis('The same with any client of Redis', `BAN ${word(rule, 'RULE')} 192.0.2.1 1h`),
];

// rules from a log
export const writeRules = () => [
  ['Write rules that fit a log', 'lately suggest access.log > rules.yaml'],
  ['Test them on the log', 'lately replay --rules rules.yaml access.log'],
  ['Enforce them', 'lately serve --rules rules.yaml'],
];

// a hot key, under a rule if there is one
export const makeHot = (rule) => rule ? [
  ['Make a key hot by hand', http('hot', { rule: word(rule, 'RULE'), key: ['/product/1'], ttl_ms: 60000 })],
  ...redis('Report a thousand uses of a key', `HOT.REPORT ${word(rule, 'RULE')} /product/1 1000 0`),
  ...redis('Receive each change', `HOT.WATCH ${word(rule, 'RULE')}`),
] : [
  ['Find the hot keys of a log', 'lately replay --hot 200/1m access.log'],
  ['Test a rules file with a hot rule', 'lately replay --rules rules.yaml access.log'],
  ['Start the server with it', 'lately serve --rules rules.yaml'],
];
