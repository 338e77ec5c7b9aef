import { RethreadError, validate } from 'rethread';
import { repairing, RethreadError as FetchError } from 'rethread/fetch';
import * as formats from 'rethread/formats';
import { chat, keep, mapDriver } from './chat.js';

// Synchronous from the first line: Node needs no init.
const findings = validate({ messages: [{ role: 'tool', tool_call_id: 'x', content: '' }] }, 'openai-chat');

// The line that an SDK is given: here it is called as the SDK would.
const messages = [
  { role: 'user', content: 'hi' },
  { role: 'tool', tool_call_id: 'x', content: '' },
];
const send = (fetch) =>
  fetch(process.argv[2], {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'm', messages }),
  });
const statuses = [(await send(fetch)).status, (await send(repairing())).status];

const answer = { ...(await chat(process.argv[3])), findings: findings.map(({ code }) => code), statuses };
console.log(
  JSON.stringify({
    ...answer,
    oneError: RethreadError === FetchError && RethreadError === formats.RethreadError,
    formats: Object.keys(formats),
    kept: await keep(mapDriver()),
  }),
);
