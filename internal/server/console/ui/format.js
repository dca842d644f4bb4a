// Numbers, times and spans as people read them.

const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const fine = new Intl.NumberFormat('en', { maximumFractionDigits: 1, minimumFractionDigits: 1 });
const tenth = new Intl.NumberFormat('en', { maximumFractionDigits: 1 });
const finer = new Intl.NumberFormat('en', { maximumFractionDigits: 2 });

// count writes a whole number; from a million on, in short.
export function count(n) {
  if (n < 1e6) return whole.format(n);
  if (n < 1e9) return `${finer.format(n / 1e6)} M`;
  return `${finer.format(n / 1e9)} G`;
}

// many writes a whole number and its noun: 1 ban, 2 bans.
export const many = (n, noun, more = `${noun}s`) => `${count(n)} ${n === 1 ? noun : more}`;

// sentenceOf returns what a rule or counter says about itself, without its name in front.
export function sentenceOf({ name, sentence = '' }) {
  const text = sentence.replace(`${name}: `, '');
  return text && text[0].toUpperCase() + text.slice(1);
}

// rate writes a number of events per second.
export function rate(n) {
  if (n === 0) return '0';
  if (n < 0.01) return '<0.01';
  if (n < 10) return finer.format(n);
  if (n < 100) return tenth.format(n);
  return count(Math.round(n));
}

// share writes part of all in per cent.
export function share(part, all) {
  if (!all || !part) return '0 %';
  const p = (100 * part) / all;
  if (p < 0.1) return '<0.1 %';
  return p < 10 ? `${fine.format(p)} %` : `${whole.format(p)} %`;
}

// nice returns the least of 1, 2, 2.5, 5 times a power of ten that is not below x.
export function nice(x) {
  if (!(x > 0)) return 0.5;
  const ten = 10 ** Math.floor(Math.log10(x));
  return ten * ([1, 2, 2.5, 5].find((f) => f * ten >= x * 0.999) ?? 10);
}

export function bytes(n) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let i = 0;
  while (n >= 1024 && i < units.length - 1) {
    n /= 1024;
    i++;
  }
  return `${i && n < 100 ? fine.format(n) : whole.format(n)} ${units[i]}`;
}

// span writes a whole span: 1 s, 15 min, 24 h.
export function span(ms) {
  if (ms < 1000) return `${ms} ms`;
  for (const [unit, name] of [[86400e3, 'd'], [3600e3, 'h'], [60e3, 'min'], [1e3, 's']]) {
    if (ms % unit === 0 && (ms !== 86400e3 || name === 'h')) return `${ms / unit} ${name}`;
  }
  return `${finer.format(ms / 1e3)} s`;
}

// left writes a remaining time, in its two largest units.
export function left(ms) {
  const s = Math.max(0, Math.ceil(ms / 1000));
  if (s < 60) return `${s} s`;
  const [d, hours, m] = [Math.floor(s / 86400), Math.floor(s / 3600) % 24, Math.floor(s / 60) % 60];
  const two = (n) => String(n).padStart(2, '0');
  if (d) return `${d} d ${two(hours)} h`;
  if (hours) return `${hours} h ${two(m)} min`;
  return `${m} min ${two(s % 60)} s`;
}

// ago writes how long ago something was, roughly.
export function ago(ms) {
  if (ms < 2000) return 'now';
  if (ms < 60e3) return `${Math.floor(ms / 1e3)} s ago`;
  if (ms < 3600e3) return `${Math.floor(ms / 60e3)} min ago`;
  if (ms < 172800e3) return `${Math.floor(ms / 3600e3)} h ago`;
  return `${Math.floor(ms / 86400e3)} d ago`;
}

// age writes how old something is, roughly.
export const age = (ms) => (ms < 2000 ? 'a moment' : ago(ms).replace(' ago', ''));

const hms = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' });
const hm = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit' });
const full = new Intl.DateTimeFormat('en-GB', { year: 'numeric', month: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit', second: '2-digit' });

export const clock = (t) => hms.format(t);
export const minute = (t) => hm.format(t);
export const date = (t) => full.format(t);

// milliseconds reads a duration as the rules file writes it, and returns NaN for
// anything else.
export function milliseconds(text) {
  const units = { ms: 1, s: 1e3, m: 60e3, h: 3600e3, d: 86400e3, w: 604800e3 };
  const compact = text.replaceAll(' ', '');
  if (!/^(\d+(ms|s|m|h|d|w))+$/.test(compact)) return NaN;
  let sum = 0;
  for (const [, n, unit] of compact.matchAll(/(\d+)(ms|s|m|h|d|w)/g)) sum += n * units[unit];
  return sum;
}
