// `withSession` under the chat of `ai` 6 and 7: a store that fails while an answer arrives.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import * as ai6 from 'ai';
import * as ai7 from 'ai-7';
import { loadUIMessages, toUIMessages } from 'rethread/ai-sdk';
import { chatOf, client, items, keeps, openAnswer, shown, start, stored, until } from './ai-sdk-chat.mjs';
import { step, text, whole } from './ai-sdk-page.mjs';

/** Lets the store of a session fail. Returns the number of writes that failed so far. */
function failing(session) {
  let failed = 0;
  session.append = async () => {
    failed += 1;
    throw Object.assign(new Error('full'), { code: 'quota_exceeded' });
  };
  return () => failed;
}

for (const [version, ai] of [
  ['6', ai6],
  ['7', ai7],
])
  describe(`ai ${version}`, { timeout: 60_000 }, () => {
    test('r53 an answer whose step cannot be stored is still kept', async () => {
      const { session, server, page } = await chatOf(ai);
      const { answer, send } = openAnswer();
      server.answers.push(answer);
      void page.sendMessage({ text: 'hi' });
      send(start('m1'), text(['Hello']));
      await keeps(session, 'Hello');
      const failed = failing(session);
      send({ type: 'finish-step' });
      await until(() => failed() > 0);
      await session.save();
      const loaded = await loadUIMessages(await client.session(session.id));
      assert.deepEqual(shown(loaded), ['user: hi', 'assistant: Hello']);
    });

    test('r53 what a stopped answer had is stored with the next request, or that is not sent', async () => {
      const { session, server, page } = await chatOf(ai);
      const { answer, send } = openAnswer();
      server.answers.push(answer, whole('m2', step(text(['Else.']))));
      void page.sendMessage({ text: 'hi' });
      send(start('m1'), { type: 'text-start', id: 't' }, { type: 'text-delta', id: 't', delta: 'Hel' });
      await until(() => shown(page.messages)[1] === 'assistant: Hel');
      const failed = failing(session);
      await page.stop();
      await until(() => failed() > 0);
      await page.regenerate();
      assert.deepEqual([page.error?.code, server.requests.length], ['quota_exceeded', 1]);
      delete session.append;
      await page.regenerate();
      assert.deepEqual([page.error, shown(page.messages)], [undefined, ['user: hi', 'assistant: Else.']]);
      assert.deepEqual(shown(await stored(session)), ['user: hi', 'assistant: Else.']);
      const main = (await session.messages({ branch: 'main' })).items;
      assert.deepEqual(shown(toUIMessages(main)), ['user: hi', 'assistant: Hel']);
      assert.equal(main[1].status, 'stopped');
      assert.equal((await items(session)).length, 2);
    });
  });
