// The program of docs/tanstack-ai.md, as it stands.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { ChatClient } from '@tanstack/ai-client';
import { chatPersistence } from 'rethread/tanstack-ai';
import { blocksOf, scoped } from '../types/documents/blocks.mjs';
import { answer, connection, says, settled, sharedStore, shown, until } from './tanstack.mjs';

const AsyncFunction = (async () => {}).constructor;
const [block] = blocksOf(readFileSync(new URL('../../docs/tanstack-ai.md', import.meta.url), 'utf8'));

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
