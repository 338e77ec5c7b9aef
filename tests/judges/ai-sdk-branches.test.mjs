// `withSession` under the chat of `ai` 6 and 7: where branches begin, and what a page may show beside the session.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import * as ai6 from 'ai';
import * as ai7 from 'ai-7';
import { loadUIMessages, toUIMessages } from 'rethread/ai-sdk';
import { chatOf, shown, stored } from './ai-sdk-chat.mjs';
import { step, text, whole } from './ai-sdk-page.mjs';

const says = (words) => whole(undefined, step(text([words])));
const ofBranch = async (session, branch) => toUIMessages((await session.messages({ branch })).items);

const looked = { type: 'tool-look', toolCallId: 'late', state: 'output-available', input: { of: 1 }, output: 7 };

/** A chat with two turns, and a rating of the first answer that came after both. */
async function ratedChat(ai) {
  const chat = await chatOf(ai);
  const { page, server } = chat;
  server.answers.push(says('One.'), says('Two.'), says('Three.'));
  await page.sendMessage({ text: 'first' });
  await page.sendMessage({ text: 'second' });
  page.messages = page.messages.with(1, {
    ...page.messages[1],
    metadata: { rating: 1 },
    parts: [...page.messages[1].parts, looked, { type: 'data-note', data: 'good' }],
  });
  await page.sendMessage({ text: 'third' });
  return chat;
}

const rated = ({ metadata, parts }) => [metadata?.rating, parts.at(-1).data];

for (const [version, ai] of [
  ['6', ai6],
  ['7', ai7],
])
  describe(`ai ${version}`, { timeout: 60_000 }, () => {
    test('r53 an edit after a late change of an older answer begins its branch at the question', async () => {
      const { session, server, page, reload } = await ratedChat(ai);
      server.answers.push(says('Else.'), says('Again.'));
      await page.sendMessage({ text: 'edited', messageId: page.messages[2].id });
      assert.equal(page.error, undefined);
      const edited = ['user: first', 'assistant: One.: late output-available', 'user: edited', 'assistant: Else.'];
      assert.deepEqual(shown(await stored(session)), edited);
      assert.deepEqual(rated((await stored(session))[1]), [1, 'good'], 'the change is on the new branch');
      assert.equal((await ofBranch(session, 'main')).length, 6);
      const next = await reload();
      await next.regenerate();
      assert.deepEqual(shown(await stored(session)), [...edited.slice(0, 3), 'assistant: Again.']);
      assert.deepEqual(rated((await stored(session))[1]), [1, 'good']);
      assert.equal((await session.branches()).length, 3);
    });

    test('r53 another answer to an older question leaves out what followed it', async () => {
      const { session, server, page } = await ratedChat(ai);
      server.answers.push(says('Else.'));
      await page.regenerate({ messageId: page.messages[3].id });
      assert.deepEqual(shown(await stored(session)), [
        'user: first',
        'assistant: One.: late output-available',
        'user: second',
        'assistant: Else.',
      ]);
      assert.deepEqual(rated((await stored(session))[1]), [1, 'good']);
    });

    test('r53 a stale tab begins one branch, although an older answer was changed late', async () => {
      const { session, server, page, reload } = await chatOf(ai);
      server.answers.push(...['One.', 'Two.', 'Three.', 'Four.', 'Five.'].map(says));
      await page.sendMessage({ text: 'first' });
      const other = await reload();
      await page.sendMessage({ text: 'second' });
      page.messages = page.messages.with(1, { ...page.messages[1], metadata: { rating: 1 } });
      await page.sendMessage({ text: 'third' });
      await other.sendMessage({ text: 'else' });
      await other.sendMessage({ text: 'more' });
      assert.deepEqual(shown(await stored(session)), shown(other.messages));
      assert.equal((await stored(session))[1].metadata.rating, 1);
      assert.equal((await session.branches()).length, 2);
    });

    test("r53 a message that the page shows before those of the session is the page's own", async () => {
      const { session, server, page, newPage } = await chatOf(ai);
      server.answers.push(...['One.', 'Two.', 'Three.'].map(says));
      await page.sendMessage({ text: 'first' });
      const welcome = { id: 'welcome', role: 'assistant', parts: [{ type: 'text', text: 'Welcome!' }] };
      const next = newPage([welcome, ...(await loadUIMessages(session))]);
      await next.sendMessage({ text: 'second' });
      assert.deepEqual(shown(await stored(session)), shown(next.messages.slice(1)));
      assert.equal((await session.branches()).length, 1);
      await next.sendMessage({ text: 'edited', messageId: next.messages[3].id });
      assert.deepEqual(shown(await stored(session)), shown(next.messages.slice(1)));
      assert.equal((await session.branches()).length, 2);
    });
  });
