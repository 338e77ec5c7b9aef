// A server that quotes the credentials of a request in whatever it answers, and one to which it redirects.

import { once } from 'node:events';
import http from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';

const json = (value) => JSON.stringify(value);
const event = (value, name) =>
  `${name ? `event: ${name}\n` : ''}data: ${typeof value === 'string' ? value : json(value)}\n\n`;

/** An error event of each dialect, and what comes before it. */
const STREAMS = {
  'openai-chat': (words) =>
    event({ choices: [{ index: 0, delta: { role: 'assistant', content: 'Hm' } }] }) +
    event({ error: { message: words, code: words } }),
  mistral: (words) =>
    event({ choices: [{ index: 0, delta: { role: 'assistant', content: 'Hm' } }] }) +
    event({ object: 'error', message: words, type: 'invalid' }),
  anthropic: (words) =>
    event({ type: 'message_start', message: { id: 'm', role: 'assistant', content: [] } }, 'message_start') +
    event({ type: 'error', error: { type: words, message: words } }, 'error'),
  'openai-responses': (words) =>
    event({ type: 'response.created', response: { id: 'r', output: [] } }, 'response.created') +
    event(
      {
        type: 'response.failed',
        response: { id: 'r', status: 'failed', error: { code: 'server_error', message: words }, output: [] },
      },
      'response.failed',
    ),
  gemini: (words) =>
    event({ candidates: [{ content: { role: 'model', parts: [{ text: 'Hm' }] } }] }) +
    event({ error: { code: 400, message: words, status: words } }),
};

/** An answer of each dialect that says these words. */
export const ANSWERS = {
  'openai-chat': (words) =>
    event({ choices: [{ index: 0, delta: { role: 'assistant', content: words } }] }) +
    event({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }) +
    event('[DONE]'),
  anthropic: (words) =>
    [
      {
        type: 'message_start',
        message: { id: 'm', role: 'assistant', content: [], usage: { input_tokens: 1, output_tokens: 1 } },
      },
      { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
      { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: words } },
      { type: 'content_block_stop', index: 0 },
      { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 2 } },
      { type: 'message_stop' },
    ]
      .map((one) => event(one, one.type))
      .join(''),
  'openai-responses': (words) => {
    const item = {
      type: 'message',
      id: 'msg_1',
      role: 'assistant',
      status: 'completed',
      content: [{ type: 'output_text', text: words, annotations: [] }],
    };
    return [
      { type: 'response.created', response: { id: 'r', output: [] } },
      { type: 'response.output_item.added', output_index: 0, item: { ...item, status: 'in_progress', content: [] } },
      {
        type: 'response.content_part.added',
        output_index: 0,
        content_index: 0,
        item_id: 'msg_1',
        part: { type: 'output_text', text: '' },
      },
      { type: 'response.output_text.delta', output_index: 0, content_index: 0, item_id: 'msg_1', delta: words },
      { type: 'response.output_item.done', output_index: 0, item },
      { type: 'response.completed', response: { id: 'r', status: 'completed', output: [item] } },
    ]
      .map((one) => event(one, one.type))
      .join('');
  },
  gemini: (words) =>
    event({ candidates: [{ content: { role: 'model', parts: [{ text: words }] }, finishReason: 'STOP' }] }),
};
ANSWERS.mistral = ANSWERS['openai-chat'];

const refused = (body, headers = {}) => ({
  status: 400,
  headers: { 'content-type': 'application/json', ...headers },
  body,
});
const streamed = (body) => ({ status: 200, headers: { 'content-type': 'text/event-stream' }, body });

/** What it answers, by the last part of the path: (key, dialect) => { status, headers, body, pieces? }. */
export const CASES = {
  json: (key) => refused(json({ error: { message: `Incorrect API key: ${key}.`, type: 'auth', code: key } })),
  text: (key) => refused(`key ${key}`, { 'content-type': 'text/plain' }),
  newline: (key) => refused(`the key:\n${key}\tof\t${key}`, { 'content-type': 'text/plain' }),
  equals: (key) => refused(json({ error: `api_key=${key},token=${key};"${key}"` })),
  url: (key) =>
    refused(json({ error: { message: `no such page: https://host/v1?key=${encodeURIComponent(key)}&x#${key}` } })),
  nested: (key) =>
    refused(json({ error: { message: json({ headers: { authorization: `Bearer ${key}` }, at: `/${key}/` }) } })),
  html: (key) =>
    refused(`<html><pre>Authorization: Bearer ${key.replaceAll('&', '&amp;').replaceAll('<', '&lt;')}</pre></html>`, {
      'content-type': 'text/html',
    }),
  header: (key) =>
    refused('{"error":{"message":"see the header"}}', {
      'x-echo': encodeURIComponent(key),
      'retry-after': encodeURIComponent(key),
    }),
  split: (key) => ({ ...refused(json({ error: { message: `Incorrect API key: ${key}` } })), pieces: 5 }),
  binary: (key) => refused(Buffer.concat([Buffer.from([0xff, 0xfe, 0x80]), Buffer.from(key), Buffer.from([0xc3])])),
  'utf-16': (key) => refused(Buffer.from(`the key ${key}`, 'utf16le')),
  gzip: (key) => refused(gzipSync(json({ error: { message: key } })), { 'content-encoding': 'gzip' }),
  'stream-error': (key, dialect) => streamed(STREAMS[dialect](`Incorrect API key: ${key}`)),
  'stream-error-split': (key, dialect) => ({ ...streamed(STREAMS[dialect](`Incorrect API key: ${key}`)), pieces: 7 }),
  'stream-garbage': (key) => streamed(event(`oops ${key}`) + event('{}')),
  'json-error-with-200': (key) => ({
    ...streamed(json({ error: { message: `Incorrect API key: ${key}` } })),
    pieces: 9,
  }),
  'json-list-error': (key) => ({
    ...streamed(
      `[{"candidates":[{"content":{"role":"model","parts":[{"text":"Hm"}]}}]},\r\n{"error":{"code":400,"message":${json(`bad ${key}`)}}}]`,
    ),
    pieces: 11,
  }),
  'text-with-200': (key) => ({
    status: 200,
    headers: { 'content-type': 'application/json' },
    body: `{"no json: ${key}`,
  }),
};

const CORS = {
  'access-control-allow-origin': '*',
  'access-control-allow-methods': 'POST',
  'access-control-allow-headers': 'authorization, content-type, x-api-key, x-mine, anthropic-version',
  'access-control-expose-headers': '*',
};

async function answer(response, { status, headers, body, pieces }) {
  response.writeHead(status, { ...CORS, ...headers });
  const bytes = Buffer.from(body);
  const size = pieces ?? bytes.length;
  for (let at = 0; at < bytes.length; at += size) {
    response.write(bytes.subarray(at, at + size));
    if (pieces) await sleep(1);
  }
  response.end();
}

async function listening(handle) {
  const server = http.createServer((request, response) => handle(request, response).catch(() => response.destroy()));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    close: () =>
      new Promise((done) => {
        server.closeAllConnections();
        server.close(done);
      }),
  };
}

/** { url, other, close }: `url/case/<dialect>/<case>`, `url/answer/<dialect>`, `url/redirect/<status>`, which leads to
 *  a server whose requests are in `other`. */
export async function startEcho() {
  const other = [];
  const target = await listening(async (request, response) => {
    other.push({ method: request.method, headers: request.headers });
    await answer(response, streamed(ANSWERS['openai-chat']('Reached.')));
  });
  const echo = await listening(async (request, response) => {
    if (request.method === 'OPTIONS') return response.writeHead(204, CORS).end();
    const { authorization, 'x-api-key': apiKey, 'x-mine': mine } = request.headers;
    const key = apiKey ?? mine ?? authorization?.slice('Bearer '.length) ?? 'none';
    const [, kind, which, name] = new URL(request.url, 'http://echo').pathname.split('/');
    for await (const _ of request);
    if (kind === 'redirect')
      return response.writeHead(Number(which), { ...CORS, location: `${target.url}/v1/chat/completions` }).end();
    await answer(response, kind === 'answer' ? streamed(ANSWERS[which](`You said ${key}`)) : CASES[name](key, which));
    return undefined;
  });
  return { url: echo.url, other, close: () => Promise.all([echo.close(), target.close()]) };
}
