// The program of docs/tanstack-ai.md, as it stands.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { chat as answerWith, toolDefinition } from '@tanstack/ai';
import { ChatClient } from '@tanstack/ai-client';
import { open } from 'rethread';
import { once } from 'rethread/once';
import { chatPersistence } from 'rethread/tanstack-ai';
import { blocksOf, scoped } from '../types/documents/blocks.mjs';
import { z } from 'zod';
import { answer, connection, says, scripted, settled, sharedStore, shown, until } from './tanstack.mjs';

const AsyncFunction = (async () => {}).constructor;
const [block, server] = blocksOf(readFileSync(new URL('../../docs/tanstack-ai.md', import.meta.url), 'utf8'));

test('r53 docs/tanstack-ai.md: a stored chat in ten lines, which lives over a reload', async () => {
  assert.ok(block.source.trim().split('\n').filter(Boolean).length <= 10);
  const { tab } = sharedStore();
  const names = {
    ChatClient,
    chatPersistence,
    open: tab,
    fetchServerSentEvents: () => connection([answer('r1', says('a1', 'Hello.'))]),
  };
  const run = new AsyncFunction(...Object.keys(names), `${scoped(block).source}\nreturn { chat, persistence };`);
  const { chat, persistence } = await run(...Object.values(names));
  assert.deepEqual(shown(chat.getMessages()), ['user: Hi', 'assistant: Hello.']);
  await persistence.flush();
  const again = new ChatClient({
    threadId: 'chat-1',
    persistence: chatPersistence(await tab()),
    connection: connection([]),
  });
  await until(() => again.getMessages().length > 0);
  await settled();
  assert.deepEqual(again.getMessages(), chat.getMessages());
});

test('r18 r53 docs/tanstack-ai.md: a call without a result that is sent again does not send its mail again', async () => {
  const { sent, adapter } = scripted([[says('a2', 'Done.')], [says('a3', 'Done.')]]);
  const mails = [];
  const names = {
    answer: answerWith,
    toolDefinition,
    z,
    once,
    open: () => open(),
    sqlite: () => {},
    repairing: () => {},
    createOpenaiChatCompletions: () => adapter,
    sendMail: async ({ to }) => `sent to ${mails.push(to) && to}`,
    process: { env: {} },
  };
  const run = new AsyncFunction(...Object.keys(names), `${scoped(server).source}\nreturn { respond };`);
  const { respond } = await run(...Object.values(names));
  const call = { type: 'tool-call', id: 'c1', name: 'send_mail', arguments: '{"to":"ann"}', state: 'input-complete' };
  const messages = [
    { id: 'u1', role: 'user', parts: [{ type: 'text', content: 'Write to Ann.' }] },
    { id: 'a1', role: 'assistant', parts: [call] },
  ];
  for (const _ of [1, 2]) for await (const _chunk of await respond(messages, 'chat-1'));
  assert.deepEqual(mails, ['ann']);
  const results = sent.map((own) => own.find(({ role }) => role === 'tool')?.content);
  assert.deepEqual(
    results.map((content) => /sent to ann/.test(content)),
    [true, true],
  );
});
