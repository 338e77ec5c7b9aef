// The guides of docs/guides: their code is run as it stands, with a stand-in for the model, and other programs of its
// platform where this is not the platform.

import assert from 'node:assert/strict';
import { createHmac, timingSafeEqual } from 'node:crypto';
import { createServer } from 'node:http';
import { after, before, test } from 'node:test';
import OpenAI from 'openai';
import { fromUIMessages } from '../../js/adapters/ai-sdk.js';
import { repairing } from '../../js/entry/fetch-node.js';
import { heal, open } from '../../js/entry/node.js';
import { drive } from '../../js/host.js';
import { startStandIn } from '../stand-in/server.mjs';
import { bodies, chat as chatOf, runBlock, textsOf } from './document-page.mjs';

let standIn;
before(async () => {
  standIn = await startStandIn();
});
after(() => standIn.close());
const chat = (...args) => chatOf(standIn, ...args);

const OPENAI = 'https://api.openai.com/v1/chat/completions';
/** `drive`, whose requests to OpenAI go to a lane. */
const driveTo = (lane) => (run, options) =>
  drive(run, { ...options, fetch: (url, init) => fetch(String(url).replace(OPENAI, lane.chat), init) });

test('repair any SDK: the broken chat is answered, and the repair is reported', async () => {
  const { lane } = await chat('guide-repair', [{ text: 'Hello.' }]);
  const printed = [];
  const console = { log: (text) => printed.push(text), warn: (text) => printed.push(text) };
  class Client extends OpenAI {
    constructor(options) {
      super({ apiKey: 'sk-documents', baseURL: `${lane.base}/v1`, ...options });
    }
  }
  const { client } = await runBlock('guides/repair', 'onRepair', { OpenAI: Client, repairing, console }, ['client']);
  await runBlock('guides/repair', 'Lisbon', { client, console });
  assert.deepEqual(printed, ['dangling_call: synthesized', 'Hello.']);
});

test('repair any SDK: a saved chat is cured by the sentence of its refusal', async () => {
  const printed = [];
  const console = { log: (text) => printed.push(text) };
  const { healed } = await runBlock('guides/repair', 'refusal', { heal, console }, ['healed']);
  assert.deepEqual(printed, ['healed']);
  assert.doesNotMatch(JSON.stringify(healed.body), /thinking/);
});

/** What the page of the guide needs of a browser: a list and a form. */
function pageOf(origin) {
  const list = { items: [], replaceChildren: (...items) => (list.items = items.map(({ textContent }) => textContent)) };
  let submit;
  const problem = { textContent: '', replaceChildren: (text) => (problem.textContent = text) };
  const elements = {
    '#messages': list,
    '#problem': problem,
    '#ask': { addEventListener: (_, listener) => (submit = listener) },
  };
  const document = { querySelector: (selector) => elements[selector], createElement: () => ({}) };
  const ask = (question) => submit({ preventDefault() {}, target: { question, reset() {} } });
  class FormData {
    constructor(form) {
      this.get = (name) => form[name];
    }
  }
  return { values: { document, location: { origin }, FormData }, list, problem, ask };
}

test('a chat in a browser: a question is shown with its answer', async () => {
  const { lane } = await chat('guide-browser', [{ text: 'Hello.' }]);
  const { values, list, ask } = pageOf('https://api.openai.com');
  const { session } = await runBlock('guides/browser', 'replaceChildren', { ...values, drive: driveTo(lane) }, [
    'session',
  ]);
  await ask('Hi');
  while (list.items.at(-1) !== 'assistant: Hello.') await new Promise((resolve) => setTimeout(resolve, 5));
  assert.deepEqual(list.items, ['user: Hi', 'assistant: Hello.']);
  assert.equal((await bodies(lane))[0].stream, true);
  assert.deepEqual(await textsOf(session), ['user: Hi', 'assistant: Hello.']);
});

test('a chat in a browser: why there is no answer is shown, until there is one', async () => {
  const { lane } = await chat('guide-browser-failure', [
    { status: 401, message: 'the key is wrong' },
    { text: 'Hello.' },
  ]);
  const { values, list, problem, ask } = pageOf('https://api.openai.com');
  await runBlock('guides/browser', 'replaceChildren', { ...values, drive: driveTo(lane) });
  await ask('Hi');
  while (!problem.textContent) await new Promise((resolve) => setTimeout(resolve, 5));
  assert.match(problem.textContent, /^No answer: .*the key is wrong/);
  assert.deepEqual(list.items, ['user: Hi']);
  await ask('Hi again');
  while (list.items.at(-1) !== 'assistant: Hello.') await new Promise((resolve) => setTimeout(resolve, 5));
  assert.equal(problem.textContent, '');
});

test('a chat in a browser: a question that cannot be stored, and an answer that cannot be continued, are said', async () => {
  const { values, problem, ask } = pageOf('https://api.openai.com');
  const full = { code: 'quota_exceeded', message: 'the disk is full' };
  const session = {
    view: () => ({ getSnapshot: () => ({ messages: [], run: null }), subscribe: () => {} }),
    run: () => Promise.reject(Object.assign(new Error(full.message), full)),
  };
  const failed = [{ session: 'chat-1', run: 'r', error: new Error('its record is damaged') }];
  const open = async () => ({
    session: async () => session,
    resumeAll: async () => ({ runs: [], queued: [], failed }),
  });
  await runBlock('guides/browser', 'replaceChildren', { ...values, open });
  assert.match(problem.textContent, /cannot be continued: .*damaged/);
  await ask('Hi');
  assert.match(problem.textContent, /could not be stored: .*the disk is full/);
});

test('a chat on a server: the answer is streamed, and what a crash has left is answered at the start', async () => {
  const { lane, rethread, session, provider } = await chat('guide-server', [
    { text: 'Once.' },
    { text: 'Upon a time.' },
  ]);
  const left = await session.run({ input: 'Begin.', provider });
  left[Symbol.dispose]();
  const env = { PORT: '0', MODEL_URL: lane.chat, OPENAI_API_KEY: 'sk-documents' };
  const values = { createServer, sqlite: (file) => file, open: async () => rethread, process: { env } };
  const { server } = await runBlock('guides/server', 'createServer', values, ['server']);
  try {
    while ((await rethread.pendingRuns()).length) await new Promise((resolve) => setTimeout(resolve, 5));
    const address = `http://127.0.0.1:${server.address().port}/chat-1`;
    assert.equal(await (await fetch(address, { method: 'POST', body: 'And then?' })).text(), 'Upon a time.');
    assert.deepEqual(await textsOf(session), [
      'user: Begin.',
      'assistant: Once.',
      'user: And then?',
      'assistant: Upon a time.',
    ]);
  } finally {
    server.close();
    server.closeAllConnections();
  }
});

test('a chat on a server: an answer that breaks off is no whole one, and one without a beginning is a status', async () => {
  const broken = { text: 'one two three', delayMs: 20, inBandError: true };
  const refusal = { status: 401, message: 'the key is wrong' };
  const { lane, rethread } = await chat('guide-server-failure', [broken, refusal, refusal]);
  const printed = [];
  const values = {
    createServer,
    sqlite: (file) => file,
    open: async () => rethread,
    process: { env: { PORT: '0', MODEL_URL: lane.chat, OPENAI_API_KEY: 'sk-documents' } },
    console: { error: (...all) => printed.push(all.join(' ')) },
  };
  const { server } = await runBlock('guides/server', 'createServer', values, ['server']);
  try {
    const ask = () => fetch(`http://127.0.0.1:${server.address().port}/chat-1`, { method: 'POST', body: 'Count.' });
    const cut = await ask();
    assert.equal(cut.status, 200);
    await assert.rejects(cut.text(), TypeError);
    assert.equal((await ask()).status, 500);
    assert.match(printed.at(-1), /the key is wrong/);
  } finally {
    server.close();
    server.closeAllConnections();
  }
});

test('a chat in a Worker: an object answers, and its next instance resumes', async () => {
  const { lane, rethread, provider } = await chat('guide-worker', [{ text: 'Once.' }, { text: 'Hello.' }]);
  const session = await rethread.session('chat');
  const left = await session.run({ input: 'Begin.', provider });
  left[Symbol.dispose]();
  class DurableObject {
    constructor(ctx, env) {
      Object.assign(this, { ctx, env });
    }
  }
  const values = { DurableObject, durableObject: () => 'memory', open: async () => rethread, drive: driveTo(lane) };
  const { Chat } = await runBlock('guides/worker', 'DurableObject', values, ['Chat']);
  const waiting = [];
  const ctx = {
    storage: {},
    blockConcurrencyWhile: (task) => waiting.push(task()),
    waitUntil: (promise) => waiting.push(promise),
  };
  const object = new Chat(ctx, { OPENAI_API_KEY: 'sk-documents' });
  for (const promise of waiting) await promise;
  const answer = await object.fetch(new Request('http://chats/chat', { method: 'POST', body: 'Hi' }));
  assert.deepEqual([answer.status, await answer.text()], [200, 'Hello.']);
  const { items } = await (await object.fetch(new Request('http://chats/chat'))).json();
  assert.equal(items.length, 4);
});

test('an approval by mail: the tool runs once, after a decision by a link that nobody can make', async () => {
  const { lane, rethread, session, provider } = await chat('guide-approval', [
    { calls: [{ name: 'refund', arguments: { order: 'A1' } }] },
    { text: 'It is paid back.' },
  ]);
  const [mails, paid] = [[], []];
  const values = {
    createHmac,
    timingSafeEqual,
    sqlite: (file) => file,
    open: async () => rethread,
    provider,
    payBack: async (...args) => paid.push(args),
    mailOwner: async (...mail) => mails.push(mail),
    process: { env: { LINK_KEY: 'key' } },
  };
  const own = ['rethread', 'request', 'ask', 'proofOf'];
  const first = await runBlock('guides/approval-by-mail', 'createHmac', values, own);
  assert.equal((await first.ask('chat-1', 'Pay A1 back.')).status, 'waiting_approval');
  const [[subject, link]] = mails;
  assert.equal(subject, 'refund {"order":"A1"}?');
  const query = new URL(link).searchParams;
  const { decide } = await runBlock('guides/approval-by-mail', 'isApproved', { ...values, ...first }, ['decide']);
  await assert.rejects(
    decide(query.get('call').replace('chat-1', 'chat-2'), query.get('proof'), true),
    /no link of ours/,
  );
  assert.equal(paid.length, 0);
  assert.equal((await decide(query.get('call'), query.get('proof'), true)).text, 'It is paid back.');
  await assert.rejects(decide(query.get('call'), query.get('proof'), true), ({ code }) =>
    ['not_found', 'conflict', 'wrong_state'].includes(code),
  );
  assert.deepEqual(
    paid.map(([order]) => order),
    ['A1'],
  );
  assert.equal((await textsOf(session)).at(-1), 'assistant: It is paid back.');
  assert.equal((await lane.requests()).length, 2);
});

test('move from another library: chats of three kinds are stored, and are valid for another provider', async () => {
  const values = { sqlite: () => 'memory', open: () => open() };
  const { rethread, session, imported } = await runBlock('guides/moving', 'old', values, [
    'rethread',
    'session',
    'imported',
  ]);
  const saved = [{ id: 'm1', role: 'user', parts: [{ type: 'text', text: 'Hi' }] }];
  const own = await runBlock('guides/moving', 'fromRows', { rethread, fromUIMessages, saved, imported }, [
    'fromPage',
    'fromRows',
  ]);
  assert.deepEqual(await textsOf(own.fromPage), ['user: Hi']);
  assert.equal((await textsOf(own.fromRows)).length, 2);
  const printed = [];
  const { json } = await runBlock(
    'guides/moving',
    'And tomorrow?',
    { session, console: { log: (...all) => printed.push(all) } },
    ['json'],
  );
  assert.equal(json.messages.length, 5);
  assert.match(JSON.stringify(json), /21 degrees/);
});
