import { validate } from 'rethread';
import { chat, keep, stored } from './chat.js';

const out = document.querySelector('#out');
const answer = {};
try {
  validate({ messages: [] }, 'openai-chat');
} catch (e) {
  answer.before = e.code; // the wasm is fetched by open()
}
try {
  const query = new URLSearchParams(location.search);
  if (query.has('keep')) answer.kept = await keep(query.get('store'));
  else if (query.has('again')) answer.stored = await stored(query.get('store'));
  else Object.assign(answer, await chat(query.get('model'), query.get('store')));
} catch (e) {
  answer.thrown = String(e?.stack ?? e);
}
out.textContent = JSON.stringify(answer);
out.dataset.done = 'true';
