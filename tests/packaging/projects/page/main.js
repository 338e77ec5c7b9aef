import { validate } from 'rethread';
import { chat } from './chat.js';

const out = document.querySelector('#out');
const answer = {};
try {
  validate({ messages: [] }, 'openai-chat');
} catch (e) {
  answer.before = e.code; // the wasm is fetched by open()
}
try {
  Object.assign(answer, await chat(new URLSearchParams(location.search).get('model')));
} catch (e) {
  answer.thrown = String(e?.stack ?? e);
}
out.textContent = JSON.stringify(answer);
out.dataset.done = 'true';
