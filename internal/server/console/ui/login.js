// The login form.

import { post } from './api.js';
import { h } from './dom.js';

export function loginView(main, done) {
  const token = h('input', { id: 'token', name: 'token', type: 'password', autocomplete: 'current-password', required: true, spellcheck: 'false', 'aria-describedby': 'login-said' });
  const said = h('p', { id: 'login-said', class: 'said', role: 'alert' });
  const send = h('button', { class: 'primary' }, 'Log in');
  const submit = async (e) => {
    e.preventDefault();
    send.disabled = true;
    said.textContent = '';
    try {
      await post('login', { token: token.value });
      token.value = '';
      done();
    } catch (err) {
      said.textContent = err.status === 401 ? 'This token is unknown.' : err.message;
      token.select();
    }
    send.disabled = false;
  };
  main.append(h('form', { class: 'login card', onsubmit: submit },
    h('h1', {}, 'Log in'),
    h('p', { class: 'dim' }, 'This server requires a token. The tokens are in its token file.'),
    h('label', { for: 'token' }, 'Token'), token, said, send));
  token.focus();
}
