// Requests to the JSON API.

// A Problem is the error of a request that the server refused.
export class Problem extends Error {
  constructor(status, body) {
    super(body.detail || body.title || `The server answered ${status}.`);
    this.status = status;
    this.code = body.code ?? '';
    this.errors = body.errors ?? [];
  }
}

// An Away is the error of a request without an answer.
export class Away extends Error {}

// Each call dispatches its outcome here: 'answered', 'away' or 'login'.
export const calls = new EventTarget();
const tell = (type) => calls.dispatchEvent(new Event(type));

// parse decodes JSON. A key that is not UTF-8 is in key_base64 only: parse adds a key to
// display, with U+FFFD for the bytes that are not UTF-8.
export const parse = (text) => JSON.parse(text, (_, v) => {
  if (v?.key_base64 && !v.key) v.key = v.key_base64.map((b) => new TextDecoder().decode(Uint8Array.from(atob(b), (c) => c.charCodeAt(0))));
  return v;
});

async function call(path, init, signal, longest = 15e3) {
  const timeout = AbortSignal.timeout(longest);
  let answer;
  try {
    answer = await fetch(path, { ...init, credentials: 'same-origin', cache: 'no-store', redirect: 'error', signal: signal ? AbortSignal.any([signal, timeout]) : timeout });
  } catch (err) {
    if (signal?.aborted) throw err;
    tell('away');
    throw new Away('The server does not answer.');
  }
  const body = await answer.text().then(parse).catch(() => null);
  if (signal?.aborted) throw signal.reason;
  if (answer.ok && body === null) { // it was incomplete
    tell('away');
    throw new Away('The server does not answer.');
  }
  if (answer.ok) {
    tell('answered');
    return body;
  }
  if (answer.status === 401) tell('login');
  throw new Problem(answer.status, body ?? {});
}

// get requests path. Each member of query is one value or a list of them.
export function get(path, query = {}, signal = undefined) {
  const q = new URLSearchParams();
  for (const [name, values] of Object.entries(query)) {
    for (const value of [values].flat()) if (value !== undefined && value !== '') q.append(name, value);
  }
  const text = q.toString();
  return call(`v1/${path}${text && `?${text}`}`, {}, signal);
}

export function post(path, body = {}, longest = undefined) {
  return call(`v1/${path}`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) }, undefined, longest);
}

// postText sends the text of a rules file. Forms of other sites cannot send
// this type.
export function postText(path, text) {
  return call(`v1/${path}`, { method: 'POST', headers: { 'Content-Type': 'application/yaml' }, body: text });
}
