// The page: its header, its views by their routes, its keyboard shortcuts, its messages.

import { Away, calls, post, Problem } from './api.js';
import { find, help } from './dialogs.js';
import { h, icon, setText } from './dom.js';
import { live } from './live.js';
import { bansView } from './bans.js';
import { hotView } from './hot.js';
import { keyView } from './key.js';
import { keysView } from './keys.js';
import { loginView } from './login.js';
import { overviewView } from './overview.js';
import { store, stored } from './parts.js';
import { rulesView } from './rules.js';
import { toast } from './toast.js';

const views = {
  overview: { title: 'Overview', letter: 'o', view: overviewView },
  keys: { title: 'Keys', letter: 'k', view: keysView },
  bans: { title: 'Bans', letter: 'b', view: bansView },
  rules: { title: 'Rules', letter: 'r', view: rulesView },
  hot: { title: 'Hot', letter: 'h', view: hotView },
  key: { title: 'Key', view: keyView, under: 'keys' },
};

const main = document.getElementById('main');
const notice = document.getElementById('notice');
const root = document.documentElement;
let current = null; // {name, abort, login}
let visits = 0;

// show replaces the view by that of the route.
function show() {
  const [path, query = ''] = location.hash.replace(/^#\/?/, '').split(/\?(.*)/s);
  const name = views[path] ? path : 'overview';
  const login = live.link === 'login';
  current?.abort.abort();
  const abort = new AbortController();
  const moved = current !== null;
  visits++;
  current = { name, abort, login };
  main.replaceChildren();
  main.className = login ? 'view-login' : `view-${name}`;
  const { title, view, under } = views[name];
  document.title = `${login ? 'Log in' : title} · Lately`;
  for (const a of document.querySelectorAll('#nav a')) {
    if (!login && a.dataset.view === (under ?? name)) a.setAttribute('aria-current', 'page');
    else a.removeAttribute('aria-current');
  }
  if (login) loginView(main, loggedIn);
  else view(main, new URLSearchParams(query), abort.signal);
  if (moved && !login) {
    scrollTo(0, 0);
    const heading = main.querySelector('h1');
    heading?.setAttribute('tabindex', '-1');
    heading?.focus({ preventScroll: true });
  }
}

function loggedIn() {
  session(true);
  live.link = 'connecting';
  linkChanged();
  live.connect();
}

async function logOut() {
  try {
    await post('logout');
  } catch (err) {
    toast(err.message, 'bad');
    return;
  }
  session(false);
  live.dispatchEvent(new Event('loggedout'));
  location.reload();
}

// session stores whether this browser has logged in: only then can it log out.
function session(is) {
  store('session', is ? '1' : '');
  logout.hidden = !is;
}

// The header.

const pill = h('span', { class: 'pill', 'data-link': 'connecting' }, h('i', {}), h('span', {}, 'Connecting'));
const button = (name, label, f, props = {}) => h('button', { type: 'button', class: 'tool', title: label, 'aria-label': label, onclick: f, ...props }, icon(name));
const searchButton = h('button', { type: 'button', class: 'searchtool', onclick: () => find(), 'aria-label': 'Search a key' }, icon('search'), h('span', {}, 'Search a key'), h('kbd', { 'aria-hidden': 'true' }, '/'));
const pauseButton = button('pause', 'Pause', () => pause(), { 'aria-pressed': 'false' });
const logout = button('out', 'Log out', logOut, { hidden: true });
const tools = [searchButton, pill, pauseButton, button('theme', 'Change between dark and light', theme), button('help', 'Help and keys', () => help(), { id: 'help' }), logout];

function header() {
  document.getElementById('nav').append(...Object.entries(views).filter(([, v]) => v.letter).map(([name, v]) =>
    h('a', { href: `#/${name}`, 'data-view': name }, icon(name), h('span', {}, v.title))));
  document.getElementById('tools').append(...tools);
  logout.hidden = !stored('session', '');
}

const linkNames = { connecting: 'Connecting', live: 'Live', waiting: 'Reconnecting', login: 'Logged out' };

function linkChanged() {
  const link = live.paused && live.link === 'live' ? 'paused' : live.link;
  pill.dataset.link = link;
  setText(pill.lastElementChild, link === 'paused' ? 'Paused' : linkNames[link]);
  root.dataset.link = link;
  const away = live.link === 'waiting';
  if (away && notice.hidden) setText(notice, 'The server does not answer. The page shows the last data and tries again.');
  notice.hidden = !away;
  if ((live.link === 'login') !== (current?.login ?? false)) show();
}

function pause() {
  live.pause(!live.paused);
  pauseButton.setAttribute('aria-pressed', String(live.paused));
  pauseButton.title = live.paused ? 'Resume' : 'Pause';
  pauseButton.replaceChildren(icon(live.paused ? 'play' : 'pause'));
  linkChanged();
  toast(live.paused ? 'Paused: the page is not updated; the server continues.' : 'Live again.');
}

function theme() {
  const dark = root.dataset.theme ? root.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
  root.dataset.theme = dark ? 'light' : 'dark';
  store('theme', root.dataset.theme);
}

// Keyboard shortcuts: g and a letter for a view, and single keys.

let went = 0;

function keydown(e) {
  if (e.ctrlKey || e.metaKey || e.altKey || e.isComposing || live.link === 'login') return;
  const at = e.target;
  if (at.closest?.('dialog')) return;
  if (at.closest?.('input, textarea, select')) {
    if (e.key === 'Escape') at.blur();
    return;
  }
  const go = performance.now() - went < 1500;
  went = 0;
  const to = go && Object.entries(views).find(([, v]) => v.letter === e.key);
  if (to) location.hash = `#/${to[0]}`;
  else if (e.key === 'g') went = performance.now();
  else if (e.key === '?') help();
  else if (e.key === '/') find();
  else if (e.key === 'p') pause();
  else if (e.key === 't') theme();
  else if (e.key === 'Escape' && current?.name === 'key') visits > 1 ? history.back() : (location.hash = '#/keys');
  else return;
  e.preventDefault();
}

// The line about made-up traffic, with the button that ends it.

const demo = document.getElementById('demo');

async function stopDemo() {
  try {
    await post('demo/stop');
    toast('The made-up traffic has ended. The server runs on, with the rules of the demo.');
    await live.refresh();
  } catch (err) {
    toast(err.message, 'bad');
  }
}

demo.append('Demo: the traffic is made up.', h('button', { type: 'button', class: 'admin', onclick: stopDemo }, 'Stop the traffic'));

header();
addEventListener('hashchange', show);
addEventListener('keydown', keydown);
live.addEventListener('link', linkChanged);
live.addEventListener('status', () => {
  root.dataset.role = live.role;
  demo.hidden = !live.status.demo;
});
live.addEventListener('failure', ({ detail: err }) => {
  if (err instanceof Problem) err.status === 401 || toast(err.message, 'bad');
  else if (!(err instanceof Away)) reportError(err);
});
calls.addEventListener('login', () => session(false));
live.start();
show();
