// What the functions of `rethread/ai-sdk` say about arguments that they do not take.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, request } from 'node:http';
import { describe, test } from 'node:test';
import * as ai from 'ai';
import { chatHandler, durableTools, loadUIMessages, sessionTransport, withSession } from 'rethread/ai-sdk';
import { blocksOf } from '../types/documents/blocks.mjs';
import { readFileSync } from 'node:fs';
import { HANGS, VERSIONS, newSession, said } from './ai-sdk-models.mjs';
import { servedChat } from './ai-sdk-served.mjs';

const transport = () => new ai.DefaultChatTransport({ api: '/api/chat' });
const answer = () => new ReadableStream();

describe('r53 arguments of rethread/ai-sdk', () => {
  test('r53 withSession takes a transport and a session, in this order and awaited', async () => {
    const session = await newSession();
    const message = /first argument of `withSession` is a transport.*DefaultChatTransport.*second one is the session/;
    for (const [first, second] of [
      [session, transport()],
      ['/api/chat', session],
      [undefined, session],
      [{ api: '/api/chat' }, session],
      [session],
    ])
      assert.throws(() => withSession(/** @type {any} */ (first), /** @type {any} */ (second)), {
        code: 'config_invalid',
        message,
      });
    for (const second of [undefined, Promise.resolve(session), 'chat-1', {}])
      assert.throws(() => withSession(transport(), /** @type {any} */ (second)), {
        code: 'config_invalid',
        message: '`withSession` takes a session: `await store.session(id)`',
      });
    withSession(transport(), session);
    // A transport of one's own, on a page that does not reconnect.
    withSession(/** @type {any} */ ({ sendMessages: async () => answer() }), session);
  });

  test('r53 loadUIMessages takes a session that is awaited', async () => {
    const session = await newSession();
    for (const given of [undefined, null, 'chat-1', Promise.resolve(session), []])
      await assert.rejects(loadUIMessages(/** @type {any} */ (given)), {
        code: 'config_invalid',
        message: '`loadUIMessages` takes a session: `await store.session(id)`',
      });
  });

  test('r53 an unknown option lists those that there are', async () => {
    const session = await newSession();
    const wrong = /** @type {any} */ ({ answer, tool: {} });
    const said = (words) => ({ code: 'config_invalid', message: words });
    assert.throws(
      () => sessionTransport(session, wrong),
      said('`tool` is not one of the options of `sessionTransport`: answer, tools, onInterrupted'),
    );
    assert.throws(
      () => chatHandler({ ...wrong, session: () => session }),
      said('`tool` is not one of the options of `chatHandler`: session, answer, tools, onInterrupted'),
    );
    assert.throws(
      () => durableTools({}, session, wrong),
      said('`answer` is not one of the options of `durableTools`: onInterrupted'),
    );
  });

  test('r53 chatHandler takes a Request, and says so to servers that have none', async (context) => {
    let failed;
    const chat = chatHandler({ session: newSession, answer });
    const server = createServer((incoming, outgoing) => {
      failed = assert.rejects(chat(/** @type {any} */ (incoming)), {
        code: 'config_invalid',
        message: /takes a `Request` of the web platform.*"In node:http and Express" in docs\/ai-sdk\.md.*c\.req\.raw/,
      });
      outgoing.end();
    }).listen(0);
    context.after(() => server.close());
    await once(server, 'listening');
    await fetch(`http://127.0.0.1:${/** @type {any} */ (server.address()).port}/api/chat`, {
      method: 'POST',
      body: '{}',
    });
    assert.ok(failed);
    await failed;
    for (const given of [undefined, null, 'http://a.test', { url: 'http://a.test', method: 'POST', headers: {} }])
      await assert.rejects(chat(/** @type {any} */ (given)), { code: 'config_invalid' });
    // Hono's `c.req` has no `headers`, which nothing reads.
    const given = { url: 'http://a.test/api/chat', method: 'POST', json: async () => ({}) };
    assert.equal((await chat(/** @type {any} */ (given))).status, 400);
  });

  test('r53 docs/ai-sdk.md: a chat on node:http, which goes on when a page leaves', async (context) => {
    const page = readFileSync(new URL('../../docs/ai-sdk.md', import.meta.url), 'utf8');
    const { source } = blocksOf(page).find(({ source }) => source.includes('function serve('));
    const half = [{ type: 'text-start', id: 't' }, { type: 'text-delta', id: 't', delta: 'Half' }, HANGS];
    const served = await servedChat(VERSIONS[0], [said('Hello.'), half, said('Again.')]);
    globalThis.chatOfTest = served.handler;
    context.after(() => delete globalThis.chatOfTest);
    const code = `const chat = globalThis.chatOfTest;\n${source}`;
    const { serve } = await import(`data:text/javascript,${encodeURIComponent(code)}`);
    const answers = [];
    const server = createServer((incoming, outgoing) => {
      answers.push(serve(incoming, outgoing).catch((error) => error));
    }).listen(0);
    context.after(() => server.close());
    await once(server, 'listening');
    const url = `http://127.0.0.1:${/** @type {any} */ (server.address()).port}/api/chat`;
    const ask = (text, more) => {
      const messages = [{ id: text, role: 'user', parts: [{ type: 'text', text }] }];
      return fetch(url, { method: 'POST', body: JSON.stringify({ id: served.session.id, messages }), ...more });
    };
    const response = await ask('hi');
    assert.equal(response.headers.get('content-type'), 'text/event-stream');
    assert.match(await response.text(), /Hello\..*\[DONE\]/s);

    const leaving = new AbortController();
    const { body } = await ask('and?', { signal: leaving.signal });
    let read = '';
    await assert.rejects(async () => {
      for await (const chunk of body.pipeThrough(new TextDecoderStream())) {
        read += chunk;
        if (read.includes('Half')) leaving.abort();
      }
    }, /abort/i);
    const uploading = request(url, { method: 'POST', headers: { 'content-length': '1000' } }).on('error', () => {});
    uploading.write('{"id": "');
    while (answers.length < 3) await new Promise((resolve) => setTimeout(resolve, 5));
    uploading.destroy();
    assert.match(await (await ask('now?')).text(), /Again\..*\[DONE\]/s);

    assert.equal((await fetch(`${url}/${served.session.id}/stream`)).status, 204);
    assert.deepEqual(
      (await Promise.all(answers)).filter((error) => error instanceof Error),
      [],
    );
    assert.equal(answers.length, 5);
  });
});
