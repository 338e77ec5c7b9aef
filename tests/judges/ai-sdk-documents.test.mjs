// The programs of docs/ai-sdk.md, as they stand.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import * as ai6 from 'ai';
import * as ai7 from 'ai-7';
import { open } from 'rethread';
import { fromUIMessages, loadUIMessages, toUIMessages, withSession } from 'rethread/ai-sdk';
import { blocksOf, scoped } from '../types/documents/blocks.mjs';
import { Server, pageOf, step, text, whole } from './ai-sdk-page.mjs';

const AsyncFunction = (async () => {}).constructor;
const [chatBlock, messagesBlock] = blocksOf(readFileSync(new URL('../../docs/ai-sdk.md', import.meta.url), 'utf8'));

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
    await run(messagesBlock, { fromUIMessages, toUIMessages, saved: again.chat.messages, session, show }, []);
    assert.deepEqual(shown, again.chat.messages);
  });
