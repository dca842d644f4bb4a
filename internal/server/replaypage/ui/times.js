// Times and numbers of the report. Times are seconds since 1970, and are written in the
// zone that the page names.

const named = document.documentElement.dataset.zone;

const zone = (() => {
  if (named === 'Local') return Intl.DateTimeFormat().resolvedOptions().timeZone;
  try {
    return Intl.DateTimeFormat('en', { timeZone: named }).resolvedOptions().timeZone;
  } catch {
    return 'UTC';
  }
})();

export const zoneName = zone === 'Etc/UTC' ? 'UTC' : zone;

const fields = new Intl.DateTimeFormat('en-GB', {
  timeZone: zone, hourCycle: 'h23', year: 'numeric', month: '2-digit', day: '2-digit', hour: '2-digit', minute: '2-digit', second: '2-digit',
});

// micro rounds a time to the microsecond, which is what a number of today's seconds has.
const micro = (t) => Math.round(1e6 * t) / 1e6;

// fieldsOf returns a time as year, month, day, hour, minute and second.
const fieldsOf = (t) => Object.fromEntries(fields.formatToParts(1000 * Math.floor(micro(t))).map((p) => [p.type, p.value]));

export const day = (t) => {
  const f = fieldsOf(t);
  return `${f.year}-${f.month}-${f.day}`;
};

// clockTime writes the time of day, to the second or finer.
export const clockTime = (t) => {
  const f = fieldsOf(t);
  const fraction = (micro(t) - Math.floor(micro(t))).toFixed(6).slice(1).replace(/\.?0+$/, '');
  return `${f.hour}:${f.minute}:${f.second}${fraction}`;
};

export const stamp = (t) => `${day(t)} ${clockTime(t)}`;

// offsetAt returns how many seconds the zone is ahead of UTC.
export const offsetAt = (t) => {
  const f = fieldsOf(t);
  return Date.UTC(f.year, f.month - 1, f.day, f.hour, f.minute, f.second) / 1000 - Math.floor(t);
};

const digits = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });

// exact writes a whole number with all its digits.
export const exact = (n) => digits.format(n);

// counted writes a number and its noun.
export const counted = (n, one, many = `${one}s`) => `${exact(n)} ${n === 1 ? one : many}`;
