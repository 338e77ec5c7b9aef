// `withSession` of `rethread/ai-sdk` under the chat of `ai` 6 and 7: what a page shows is stored, once.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import * as ai6 from 'ai';
import * as ai7 from 'ai-7';
import { validate } from 'rethread';
import { toUIMessages } from 'rethread/ai-sdk';
import { chatOf, items, shown, stored, until } from './ai-sdk-chat.mjs';
import { BREAKS, STALLS, call, step, text, whole } from './ai-sdk-page.mjs';

const plain = (value) => JSON.parse(JSON.stringify(value));
const sendWhenDone = ({ messages }) => {
  const parts = messages.at(-1).parts.filter(({ toolCallId }) => toolCallId);
  return (
    messages.at(-1).role === 'assistant' &&
    parts.length > 0 &&
    parts.every(({ state }) => state.startsWith('output') || state === 'approval-responded') &&
    messages.at(-1).parts.at(-1).type !== 'text'
  );
};

for (const [version, ai] of [
  ['6', ai6],
  ['7', ai7],
])
  describe(`ai ${version}`, { timeout: 60_000 }, () => {
    test('r53 a question is stored before it is sent, and the answer as it came', async () => {
      const { session, server, page, reload } = await chatOf(ai);
      server.answers.push(async () => {
        assert.deepEqual(shown(await stored(session)), ['user: hi'], 'stored before it is sent');
        const chunks = whole(
          'm1',
          step(text(['Hel', 'lo'])),
          step(call('c1'), { type: 'tool-output-available', toolCallId: 'c1', output: 7 }),
          step(text(['Seven.'], 'u')),
        );
        chunks.splice(-1, 1, { type: 'finish', messageMetadata: { tokens: 3 } });
        return new Response(chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join(''));
      });
      await page.sendMessage({ text: 'hi' });
      assert.deepEqual([page.status, page.error], ['ready', undefined]);
      assert.deepEqual(shown(page.messages), ['user: hi', 'assistant: Hello: c1 output-available: Seven.']);
      assert.deepEqual(shown(await stored(session)), shown(page.messages));
      const loaded = await reload();
      assert.deepEqual(shown(loaded.messages), shown(page.messages));
      assert.deepEqual(
        loaded.messages.map(({ id, metadata }) => [id, metadata]),
        plain(page.messages.map(({ id, metadata }) => [id, metadata])).map(([id, metadata]) => [
          id,
          metadata ?? undefined,
        ]),
      );
      await ai.validateUIMessages({ messages: loaded.messages });
      server.answers.push(whole(undefined, step(text(['Fine.']))));
      await loaded.sendMessage({ text: 'more' });
      assert.deepEqual(
        server.requests[1].messages.map(({ id }) => id),
        loaded.messages.slice(0, 3).map(({ id }) => id),
      );
      assert.deepEqual(
        (await stored(session)).map(({ id }) => id),
        loaded.messages.map(({ id }) => id),
        'an answer without an id has one',
      );
      assert.equal((await session.branches()).length, 1);
      const { body } = await session.render({ dialect: 'anthropic', params: { model: 'm' } });
      assert.deepEqual(
        validate(body, 'anthropic').filter(({ severity }) => severity === 'error'),
        [],
      );
    });

    test('r53 a question that cannot be stored is not sent', async () => {
      const { session, server, page } = await chatOf(ai);
      session.append = async () => Promise.reject(Object.assign(new Error('full'), { code: 'quota_exceeded' }));
      await page.sendMessage({ text: 'hi' });
      assert.deepEqual([page.status, page.error.code, server.requests.length], ['error', 'quota_exceeded', 0]);
    });

    test('r53 an answer that cannot be stored is shown with the error, and stored with the next question', async () => {
      const { session, server, page } = await chatOf(ai);
      server.answers.push(async () => {
        session.append = async () => Promise.reject(Object.assign(new Error('full'), { code: 'quota_exceeded' }));
        return new Response(
          whole('m1', step(text(['Hello'])))
            .map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`)
            .join(''),
        );
      });
      await page.sendMessage({ text: 'hi' });
      assert.deepEqual(
        [page.status, page.error.code, shown(page.messages)[1]],
        ['error', 'quota_exceeded', 'assistant: Hello'],
      );
      delete session.append;
      server.answers.push(whole('m2', step(text(['Yes.']))));
      await page.sendMessage({ text: 'still there?' });
      assert.deepEqual(shown(await stored(session)), shown(page.messages));
    });

    test('r53 vercel/ai#7900 mastra#17510 stop and disconnect keep the partial answer, marked', async () => {
      for (const [end, status] of [
        [STALLS, 'stopped'],
        [BREAKS, 'stopped'],
        [{ type: 'error', errorText: 'overloaded' }, 'failed'],
      ]) {
        const { session, server, page, reload } = await chatOf(ai);
        server.answers.push([
          { type: 'start', messageId: 'm1' },
          { type: 'start-step' },
          { type: 'text-start', id: 't' },
          { type: 'text-delta', id: 't', delta: 'Hel' },
          end,
        ]);
        const sent = page.sendMessage({ text: 'hi' });
        if (end === STALLS) {
          await until(() => shown(page.messages)[1] === 'assistant: Hel');
          await page.stop();
        }
        await sent;
        await until(async () => (await items(session)).length === 2);
        assert.deepEqual(shown(await stored(session)), ['user: hi', 'assistant: Hel']);
        assert.equal((await items(session))[1].status, status);
        const next = await reload();
        server.answers.push(whole('m2', step(text(['Yes.']))));
        await next.sendMessage({ text: 'go on' });
        assert.deepEqual(shown(await stored(session)), [
          'user: hi',
          'assistant: Hel',
          'user: go on',
          'assistant: Yes.',
        ]);
        assert.equal((await session.branches()).length, 1);
      }
    });

    test('r53 vercel/ai#14688 #18107 #18457 a reconnect continues the answer, and nothing is stored twice', async () => {
      for (const id of ['m1', undefined])
        for (const cutAt of [3, 5, 8, 9]) {
          const answer = whole(id, step(text(['One.'])), step(text(['Hel', 'lo'], 'u')));
          const { session, server, page, reload } = await chatOf(ai);
          server.answers.push([...answer.slice(0, cutAt), BREAKS]);
          await page.sendMessage({ text: 'hi' });
          assert.equal(page.status, 'error');
          const next = await reload();
          server.resumed = answer;
          await next.resumeStream();
          assert.deepEqual(shown(await stored(session)), ['user: hi', 'assistant: One.: Hello'], `cut at ${cutAt}`);
          await next.resumeStream();
          assert.deepEqual(shown(await stored(session)), ['user: hi', 'assistant: One.: Hello'], 'and again');
          assert.deepEqual(shown(next.messages), ['user: hi', 'assistant: One.: Hello']);
          const last = await reload();
          assert.deepEqual(shown(last.messages), ['user: hi', 'assistant: One.: Hello']);
          server.answers.push(whole('m2', step(text(['Yes.']))));
          await last.sendMessage({ text: 'more' });
          assert.deepEqual(shown(await stored(session)), [
            'user: hi',
            'assistant: One.: Hello',
            'user: more',
            'assistant: Yes.',
          ]);
          assert.equal((await session.branches()).length, 1);
        }
    });

    test('r53 an answer is continued whose page ended between two steps', async () => {
      for (const id of ['m1', undefined]) {
        const looks = step(call('c1'), { type: 'tool-output-available', toolCallId: 'c1', output: 7 });
        const answer = whole(id, looks, step(text(['Seven.'])));
        const { session, server, page, reload } = await chatOf(ai);
        server.answers.push([...answer.slice(0, looks.length + 1), STALLS]);
        void page.sendMessage({ text: 'hi' });
        await until(async () => (await items(session)).length === 2);
        for (const when of ['between two steps', 'complete']) {
          const next = await reload();
          server.resumed = answer;
          await next.resumeStream();
          const told = ['user: hi', 'assistant: c1 output-available: Seven.'];
          assert.deepEqual(shown(await stored(session)), told, when);
          assert.deepEqual(shown(next.messages), told, when);
        }
        assert.equal((await session.invocations()).items.length, 1);
        assert.equal(session.state.get('rethread/ai-sdk'), null, 'nothing is kept of an answer that is complete');
      }
    });

    test('r53 a stream that repeats no stored answer is another one', async () => {
      for (const words of ['One more.', 'One', 'Two.']) {
        const { session, server, page, reload } = await chatOf(ai);
        server.answers.push(whole(undefined, step(text(['One.']))));
        await page.sendMessage({ text: 'hi' });
        const next = await reload();
        server.resumed = whole(undefined, step(text([words.slice(0, 1), words.slice(1)])));
        await next.resumeStream();
        assert.equal((await stored(session)).length, 3, words);
        assert.deepEqual(shown(await stored(session))[1], 'assistant: One.');
        assert.deepEqual(shown(next.messages), shown(await stored(session)));
      }
    });

    test('r53 a page that is closed loses no question and no step, and text that was kept is loaded', async () => {
      for (const id of ['m1', undefined])
        for (const first of [[], step(text(['One.']))])
          for (const isResumed of [false, true]) {
            const { session, server, page, reload } = await chatOf(ai);
            const answer = whole(id, first, step(text(['Two.'], 'u'), text([' Three.'], 'v')));
            server.answers.push([...answer.slice(0, first.length + 5), STALLS]);
            void page.sendMessage({ text: 'hi' });
            await until(() => session.state.get('rethread/ai-sdk')?.message?.parts.at(-1).state === 'done');
            const steps = first.length ? ['assistant: One.'] : [];
            assert.deepEqual(shown(await stored(session)), ['user: hi', ...steps], 'a step is stored as it ends');
            const next = await reload();
            const told = first.length ? 'One.: Two.' : 'Two.';
            assert.deepEqual(shown(next.messages), ['user: hi', `assistant: ${told}`]);
            if (isResumed) {
              server.resumed = answer;
              await next.resumeStream();
              assert.deepEqual(shown(await stored(session)), ['user: hi', `assistant: ${told}:  Three.`]);
            } else {
              server.answers.push(whole('m2', step(text(['Yes.']))));
              await next.sendMessage({ text: 'go on' });
              const asked = ['user: go on', 'assistant: Yes.'];
              assert.deepEqual(shown(await stored(session)), ['user: hi', `assistant: ${told}`, ...asked]);
            }
            assert.equal((await session.branches()).length, 1);
          }
    });

    test('r53 another answer and an edited question are branches, and the old ones stay', async () => {
      const { session, server, page, reload } = await chatOf(ai);
      const ask = async (words, send) => {
        server.answers.push(whole(undefined, step(text([words]))));
        await send();
      };
      await ask('One.', () => page.sendMessage({ text: 'hi' }));
      await ask('Two.', () => page.regenerate());
      assert.deepEqual(shown(await stored(session)), ['user: hi', 'assistant: Two.']);
      const [question, answer] = await items(session);
      assert.equal(answer.siblings.ids.length, 2);
      await ask('Three.', () => page.sendMessage({ text: 'hello', messageId: question.id }));
      assert.deepEqual(shown(await stored(session)), ['user: hello', 'assistant: Three.']);
      assert.deepEqual(
        (await stored(session)).map(({ id }) => id),
        page.messages.map(({ id }) => id),
      );
      const loaded = await reload();
      await ask('Four.', () => loaded.sendMessage({ text: 'hey', messageId: question.id }));
      assert.deepEqual(shown(await stored(session)), ['user: hey', 'assistant: Four.']);
      const branches = await session.branches();
      const all = await Promise.all(
        branches.map(async ({ branch }) => shown(toUIMessages((await session.messages({ branch })).items)).join(' ')),
      );
      assert.deepEqual(all, [
        'user: hi assistant: One.',
        'user: hi assistant: Two.',
        'user: hello assistant: Three.',
        'user: hey assistant: Four.',
      ]);
    });

    test('r53 another answer that fails leaves the stored one', async () => {
      const { session, server, page } = await chatOf(ai);
      server.answers.push(whole('m1', step(text(['One.']))), [{ type: 'error', errorText: 'overloaded' }]);
      await page.sendMessage({ text: 'hi' });
      await page.regenerate();
      assert.equal(page.status, 'error');
      assert.deepEqual(shown(await stored(session)), ['user: hi', 'assistant: One.']);
      assert.equal((await session.branches()).length, 1);
    });

    test('r53 the output of a tool of the page is stored before it is sent, and the answer continues', async () => {
      const { session, server, page, reload } = await chatOf(ai, { sendAutomaticallyWhen: sendWhenDone });
      server.answers.push(whole('m1', step(call('c1'), call('c2'))));
      await page.sendMessage({ text: 'hi' });
      assert.equal((await session.invocations({ status: 'pending' })).items.length, 2);
      const next = await reload();
      assert.deepEqual(
        shown(next.messages)[1],
        'assistant: c1 input-available: c2 input-available',
        'open calls live over a reload',
      );
      server.answers.push(async () => {
        const { items: calls } = await session.invocations({ payload: true });
        assert.deepEqual(
          calls.map(({ callId, status }) => [callId, status]).sort(),
          [
            ['c1', 'ok'],
            ['c2', 'error'],
          ],
          'stored before it is sent',
        );
        return new Response(
          whole('m1', step(text(['Done.'])))
            .map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`)
            .join(''),
        );
      });
      await next.addToolOutput({ tool: 'look', toolCallId: 'c1', output: { found: 1 } });
      await next.addToolOutput({ tool: 'look', toolCallId: 'c2', state: 'output-error', errorText: 'no' });
      await until(() => next.status === 'ready' && shown(next.messages)[1].endsWith('Done.'));
      assert.deepEqual(shown(await stored(session)), [
        'user: hi',
        'assistant: c1 output-available: c2 output-error: Done.',
      ]);
      assert.equal((await session.branches()).length, 1);
    });

    test('r53 vercel/ai#16334 mastra#15476 an approval lives over a reload, with its signature', async () => {
      const { session, server, page, reload } = await chatOf(ai, { sendAutomaticallyWhen: sendWhenDone });
      server.answers.push(
        whole(
          'm1',
          step(call('c1'), { type: 'tool-approval-request', toolCallId: 'c1', approvalId: 'a1', signature: 'c2ln' }),
        ),
      );
      await page.sendMessage({ text: 'hi' });
      const next = await reload();
      const asked = next.messages[1].parts.at(-1);
      assert.deepEqual([asked.state, asked.approval], ['approval-requested', { id: 'a1', signature: 'c2ln' }]);
      server.answers.push(async (request) => {
        const [, { parts }] = await stored(session);
        assert.deepEqual(
          [parts.at(-1).state, parts.at(-1).approval],
          ['approval-responded', { id: 'a1', signature: 'c2ln', approved: true, reason: 'ok' }],
          'stored before it is sent',
        );
        assert.equal(request.messages[1].parts.at(-1).approval.signature, 'c2ln');
        return new Response(
          whole('m1', [{ type: 'tool-output-available', toolCallId: 'c1', output: 7 }], step(text(['Seven.'])))
            .map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`)
            .join(''),
        );
      });
      await next.addToolApprovalResponse({ id: 'a1', approved: true, reason: 'ok' });
      await until(() => next.status === 'ready' && shown(next.messages)[1].endsWith('Seven.'));
      const [, { parts }] = await stored(session);
      assert.deepEqual(shown(await stored(session)), ['user: hi', 'assistant: c1 output-available: Seven.']);
      assert.deepEqual(parts.find(({ toolCallId }) => toolCallId).approval, {
        id: 'a1',
        signature: 'c2ln',
        approved: true,
        reason: 'ok',
      });
      await ai.validateUIMessages({ messages: await stored(session) });
    });

    test('r53 a question after an open call is answered: the call is closed for the server and in the store', async () => {
      const { session, server, page } = await chatOf(ai);
      server.answers.push(
        whole('m1', step(call('c1'))),
        whole('m2', step(text(['Fine.']))),
        whole('m3', step(text(['Good.']))),
      );
      await page.sendMessage({ text: 'hi' });
      await page.sendMessage({ text: 'never mind' });
      assert.equal(server.requests[1].messages[1].parts.at(-1).state, 'output-error');
      assert.equal((await session.invocations({ status: 'pending' })).items.length, 0);
      await page.sendMessage({ text: 'and now?' });
      assert.equal((await stored(session)).length, 6);
      assert.equal((await session.branches()).length, 1);
    });

    test('r53 two tabs of one session lose nothing: a stale one begins a branch', async () => {
      const { session, server, page, reload } = await chatOf(ai);
      server.answers.push(
        whole('m1', step(text(['One.']))),
        whole('m2', step(text(['Two.']))),
        whole('m3', step(text(['Three.']))),
      );
      await page.sendMessage({ text: 'hi' });
      const other = await reload();
      await page.sendMessage({ text: 'more' });
      await other.sendMessage({ text: 'else' });
      assert.deepEqual(shown(await stored(session)), [
        'user: hi',
        'assistant: One.',
        'user: else',
        'assistant: Three.',
      ]);
      const main = toUIMessages((await session.messages({ branch: 'main' })).items);
      assert.deepEqual(shown(main), ['user: hi', 'assistant: One.', 'user: more', 'assistant: Two.']);
    });
  });
