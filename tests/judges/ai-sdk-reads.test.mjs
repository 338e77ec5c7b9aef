// What `rethread/ai-sdk` reads of a long session, and when another writer appends meanwhile.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as ai from 'ai';
import { loadUIMessages } from 'rethread/ai-sdk';
import { chatOf, shown, stored } from './ai-sdk-chat.mjs';
import { call, step, text, whole } from './ai-sdk-page.mjs';

const said = (words) => ({ role: 'user', parts: [{ type: 'text', text: words }] });
const many = (count) => Array.from({ length: count }, (_, at) => said(`question ${at}`));

/** Calls `seen` before each page that is read. */
function watched(session, seen) {
  const { messages } = session;
  session.messages = async (options) => {
    await seen(options ?? {});
    return messages.call(session, options);
  };
}

test('r53 messages that another writer appends while pages are read are among them', async () => {
  const { session } = await chatOf(ai);
  await session.append(many(1100));
  let isLate = false;
  watched(session, async ({ cursor }) => {
    if (!cursor || isLate) return;
    isLate = true;
    await session.append([said('late')]);
  });
  const loaded = await loadUIMessages(session);
  assert.deepEqual([isLate, loaded.length, shown(loaded).at(-1)], [true, 1101, 'user: late']);
});

test('r53 after the output of a tool only the end of a long session is read', async () => {
  const { session, server, newPage } = await chatOf(ai);
  await session.append(many(150));
  server.answers.push(whole('m1', step(call('c1'))), whole('m1', step(text(['Seven.']))));
  const page = newPage(await loadUIMessages(session));
  await page.sendMessage({ text: 'hi' });
  const limits = [];
  watched(session, async ({ limit }) => {
    limits.push(limit);
  });
  await page.addToolOutput({ tool: 'look', toolCallId: 'c1', output: 7 });
  await page.sendMessage();
  assert.ok(limits.length > 0);
  assert.deepEqual(
    limits.filter((limit) => !(limit <= 100)),
    [],
  );
  delete session.messages;
  assert.equal(shown(await loadUIMessages(session)).at(-1), 'assistant: c1 output-available: Seven.');
  assert.equal((await stored(session)).length, 152);
});
