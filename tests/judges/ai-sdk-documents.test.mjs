// The programs of docs/ai-sdk.md, as they stand.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import * as ai6 from 'ai';
import * as ai7 from 'ai-7';
import { open } from 'rethread';
import * as adapter from 'rethread/ai-sdk';
import { z } from 'zod';
import { blocksOf, scoped } from '../types/documents/blocks.mjs';
import { VERSIONS, called, inShort, modelOf, said } from './ai-sdk-models.mjs';
import { Server, pageOf, step, text, whole } from './ai-sdk-page.mjs';

const AsyncFunction = (async () => {}).constructor;
const { fromModelMessages, fromUIMessages, loadUIMessages, toUIMessages, withSession } = adapter;
const page = readFileSync(new URL('../../docs/ai-sdk.md', import.meta.url), 'utf8');
const [chatBlock, serverBlock, routeBlock, , loopBlock, resumeBlock, nextBlock, messagesBlock] = blocksOf(page);

/** Runs a block with these names; returns the values of the names in `results`. */
const run = (block, names, results) =>
  new AsyncFunction(...Object.keys(names), `${scoped(block).source}\nreturn { ${results.join(', ')} };`)(
    ...Object.values(names),
  );

for (const ai of [ai6, ai7])
  test('r53 the chat of docs/ai-sdk.md is stored and lives over a reload', async () => {
    const server = new Server(ai);
    server.answers.push(whole('m1', step(text(['Hello']))));
    const rethread = await open({ store: 'memory' });
    const names = {
      open: async () => rethread,
      loadUIMessages,
      withSession,
      DefaultChatTransport: function Transport() {
        return server.transport;
      },
    };
    const { chat } = await run(chatBlock, names, ['chat']);
    await pageOf(ai, chat).sendMessage({ text: 'hi' });
    const again = await run(chatBlock, names, ['chat']);
    assert.deepEqual(
      again.chat.messages.map(({ parts }) => parts.at(-1).text),
      ['hi', 'Hello'],
    );
    let shown;
    const session = await rethread.session('imported');
    const show = (messages) => {
      shown = messages;
    };
    const history = [{ role: 'user', content: 'And?' }];
    const names2 = { fromModelMessages, fromUIMessages, toUIMessages, history, session, show };
    await run(messagesBlock, { ...names2, saved: again.chat.messages }, []);
    assert.deepEqual(shown.slice(0, 2), again.chat.messages);
    assert.equal(shown[2].parts[0].text, 'And?');
  });

const chatTools = { look: { inputSchema: z.object({}).loose(), execute: () => 7 } };

for (const [version, ai, Model] of VERSIONS) {
  test(`r53 the server of docs/ai-sdk.md has twelve lines, and its chat lives over a reload, with ai ${version}`, async () => {
    assert.ok(serverBlock.source.trim().split('\n').filter(Boolean).length <= 12);
    const { model } = modelOf(Model, [called(['c1', 'look']), said('Seven.')]);
    const names = { ...ai, ...adapter, open, sqlite: () => 'memory', model, chatTools };
    const { chat, store } = await run(serverBlock, names, ['chat', 'store']);
    const fetch = (url, init) => chat(new Request(url, init));
    const transport = new ai.DefaultChatTransport({ api: 'https://server.test/api/chat', fetch });
    await pageOf(ai, { id: 'chat-1', transport }).sendMessage({ text: 'hi' });
    const { GET } = await run(routeBlock, { ...names, store }, ['GET']);
    const { messages, isWaiting } = await (await GET(null, { params: { id: 'chat-1' } })).json();
    assert.equal(isWaiting, false);
    const loaded = pageOf(ai, { id: 'chat-1', transport, messages });
    await loaded.resumeStream();
    assert.deepEqual(
      loaded.messages.map(({ parts }) => parts.at(-1).text),
      ['hi', 'Seven.'],
    );
  });

  test(`r53 the loop of docs/ai-sdk.md is stored, and goes on, with ai ${version}`, async () => {
    const { model, prompts } = modelOf(Model, [called(['c1', 'look']), said('Paid.'), said('The first.')]);
    const names = { ...ai, ...adapter, open, sqlite: () => 'memory', model, chatTools };
    const source = [loopBlock, resumeBlock, nextBlock].map((block) => block.source).join('\n');
    const { text, told } = await run({ ...loopBlock, source }, names, ['text', 'told']);
    assert.deepEqual([text, told], ['Paid.', 'The first.']);
    // What had ended is not asked for again.
    assert.equal(prompts.length, 3);
    assert.deepEqual(inShort(prompts[2]), [
      'user: Pay the invoice.',
      'assistant: c1',
      'tool: c1 = 7',
      'assistant: Paid.',
      'user: Which account was it?',
    ]);
  });
}
