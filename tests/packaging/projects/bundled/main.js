import { RethreadError, init } from 'rethread';
import { repairing } from 'rethread/fetch';
import { RethreadError as FormatsError, init as initFormats, validate } from 'rethread/formats';
import { chat, keep } from './chat.js';

const out = document.querySelector('#out');
const answer = {};
try {
  const query = new URLSearchParams(location.search);
  answer.oneError = RethreadError === FormatsError;
  await Promise.all([init(), initFormats()]);
  answer.findings = validate(
    { messages: [{ role: 'tool', tool_call_id: 'call_1', content: '21' }] },
    'openai-chat',
  ).map(({ code }) => code);
  const messages = [
    { role: 'user', content: 'hi' },
    { role: 'tool', tool_call_id: 'call_1', content: '21' },
  ];
  const post = {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'stand-in', messages }),
  };
  answer.statuses = [
    (await fetch(query.get('fetch'), post)).status,
    (await repairing()(query.get('fetch'), post)).status,
  ];
  Object.assign(answer, await chat(query.get('model'), 'indexeddb'));
  answer.kept = await keep('localstorage');
} catch (e) {
  answer.thrown = String(e?.stack ?? e);
  answer.code = e?.code;
}
out.textContent = JSON.stringify(answer);
out.dataset.done = 'true';
