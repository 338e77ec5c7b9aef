// `historyMiddleware`, `durableTools` and `resumeUIMessages` of `rethread/ai-sdk` under `streamText` and `generateText`
// of `ai` 6 and 7.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { durableTools, historyMiddleware, resumeUIMessages, toUIMessages } from 'rethread/ai-sdk';
import { z } from 'zod';
import { shown } from './ai-sdk-chat.mjs';
import { HANGS, VERSIONS, called, inShort, modelOf, newSession, said } from './ai-sdk-models.mjs';

const items = async (session) => (await session.messages({ limit: 1000 })).items;
const stored = async (session) => toUIMessages(await items(session));
const noInput = z.object({}).loose();
const tool = (execute, more = {}) => ({ inputSchema: noInput, execute, ...more });
const INTERRUPTED = /^Interrupted: .*may or may not have run/;

for (const [version, ai, Model] of VERSIONS)
  describe(`ai ${version}`, { timeout: 60_000 }, () => {
    /** A loop over a session. `ask` runs it to its end. */
    function loopOf(session, answers, tools = {}, options = {}) {
      const { model, prompts } = modelOf(Model, answers);
      const wrapped = ai.wrapLanguageModel({ model, middleware: historyMiddleware(session) });
      const durable = durableTools(tools, session, options);
      const settings = { model: wrapped, tools: durable, stopWhen: ai.stepCountIs(5), maxRetries: 0 };
      const messages = async () => ai.convertToModelMessages(await resumeUIMessages(session, { tools: durable }));
      const ask = async (question, more = {}) => {
        const asked = question === undefined ? [] : [{ role: 'user', content: question }];
        const all = [...(await messages()), ...asked];
        const errors = [];
        const onError = ({ error }) => errors.push(error);
        const result = ai.streamText({ ...settings, messages: all, onError, ...more });
        const text = await result.text.then(
          (said) => said,
          () => undefined,
        );
        return { text, errors };
      };
      return { ask, prompts, settings, messages, durable };
    }

    test(`r53 a loop stores the question before its request, the answer before its tools, and a result when it is there, with ai ${version}`, async () => {
      const session = await newSession();
      const seen = [];
      const look = tool(async () => {
        seen.push(shown(await stored(session)));
        return { of: 7 };
      });
      const answers = [called(['c1', 'look']), said('Seven.')];
      const { ask, prompts } = loopOf(session, answers, { look });
      assert.deepEqual(await ask('How many?'), { text: 'Seven.', errors: [] });
      assert.deepEqual(seen, [['user: How many?', 'assistant: c1 input-available']]);
      assert.deepEqual(inShort(prompts[1]), ['user: How many?', 'assistant: c1', 'tool: c1 = {"of":7}']);
      const told = ['user: How many?', 'assistant: c1 output-available: Seven.'];
      assert.deepEqual(shown(await stored(session)), told);
      // The next question, over the stored messages, is stored once, and nothing of the old ones again.
      const next = loopOf(session, [said('Bye.')]);
      await next.ask('Thanks.');
      assert.deepEqual(inShort(next.prompts[0]), [
        'user: How many?',
        'assistant: c1',
        'tool: c1 = {"of":7}',
        'assistant: Seven.',
        'user: Thanks.',
      ]);
      assert.deepEqual(shown(await stored(session)), [...told, 'user: Thanks.', 'assistant: Bye.']);
    });

    test(`r53 generateText is journaled as streamText is, with ai ${version}`, async () => {
      const session = await newSession();
      const { settings } = loopOf(session, [called(['c1', 'look']), said('Seven.')], { look: tool(() => 7) });
      const { text } = await ai.generateText({ ...settings, prompt: 'How many?' });
      assert.equal(text, 'Seven.');
      assert.deepEqual(shown(await stored(session)), ['user: How many?', 'assistant: c1 output-available: Seven.']);
    });

    test(`r53 a question that cannot be stored is not sent, and an answer that cannot be stored runs no tool, with ai ${version}`, async () => {
      const session = await newSession();
      let ran = 0;
      const look = tool(() => (ran += 1));
      const { ask, prompts } = loopOf(session, [called(['c1', 'look']), said('No.')], { look });
      const append = session.append.bind(session);
      const full = async () => Promise.reject(Object.assign(new Error('full'), { code: 'quota_exceeded' }));
      session.append = full;
      const first = await ask('hi');
      assert.deepEqual([first.errors[0].code, prompts.length], ['quota_exceeded', 0]);
      let left = 1;
      session.append = (...args) => (left-- > 0 ? append(...args) : full());
      const second = await ask('hi');
      assert.equal(second.errors[0].code, 'quota_exceeded');
      assert.deepEqual([prompts.length, ran], [1, 0]);
    });

    test(`r53 a result that cannot be stored when it is there is stored before the next request, with ai ${version}`, async () => {
      const session = await newSession();
      const append = session.append.bind(session);
      const look = tool(() => {
        session.append = async () => {
          session.append = append;
          throw Object.assign(new Error('full'), { code: 'quota_exceeded' });
        };
        return 7;
      });
      const { ask } = loopOf(session, [called(['c1', 'look']), said('Seven.')], { look });
      assert.deepEqual(await ask('hi'), { text: 'Seven.', errors: [] });
      assert.deepEqual(shown(await stored(session)), ['user: hi', 'assistant: c1 output-available: Seven.']);
    });

    test(`r53 r55 a pruned prompt, a doubled result and a torn pair are repaired before they are sent, with ai ${version}`, async () => {
      const call = (toolCallId) => ({ type: 'tool-call', toolCallId, toolName: 'look', input: {} });
      const result = (toolCallId, value = 'x') => ({
        type: 'tool-result',
        toolCallId,
        toolName: 'look',
        output: { type: 'text', value },
      });
      const user = { role: 'user', content: [{ type: 'text', text: 'q' }] };
      for (const [messages, sent] of [
        [
          [user, { role: 'tool', content: [result('a')] }, user],
          ['user: q', 'user: q'],
        ],
        [
          [
            user,
            { role: 'assistant', content: [call('a')] },
            { role: 'tool', content: [result('a'), result('a', 'y')] },
          ],
          ['user: q', 'assistant: a', 'tool: a = "x"'],
        ],
        [
          [
            user,
            { role: 'assistant', content: [call('a')] },
            { role: 'assistant', content: [{ type: 'text', text: 'hm' }] },
            { role: 'tool', content: [result('a')] },
          ],
          ['user: q', 'assistant: a', 'tool: a = "x"', 'assistant: hm'],
        ],
      ]) {
        const session = await newSession();
        const { model, prompts } = modelOf(Model, [said('ok'), said('ok')]);
        await ai.generateText({ model, messages });
        assert.notDeepEqual(inShort(prompts[0]), sent, 'the SDK sends it as it is');
        const wrapped = ai.wrapLanguageModel({ model, middleware: historyMiddleware(session) });
        await ai.generateText({ model: wrapped, messages });
        assert.deepEqual(inShort(prompts[1]), sent);
      }
    });

    test(`r53 a valid prompt is sent as it is, with ai ${version}`, async () => {
      const { transformParams } = historyMiddleware(await newSession());
      const prompt = [
        { role: 'system', content: 's' },
        { role: 'user', content: [{ type: 'text', text: 'q' }] },
      ];
      assert.equal((await transformParams({ params: { prompt } })).prompt, prompt);
    });

    test(`r53 a loop that ended in a tool goes on: "may have run", unless the tool may run again, with ai ${version}`, async () => {
      for (const onInterrupted of ['report', 'rerun']) {
        const session = await newSession();
        let ran = 0;
        const slow = tool(() => {
          ran += 1;
          // As a process that dies in it.
          return ran === 1 ? new Promise(() => {}) : 'done';
        });
        const quick = tool(() => 'quick');
        const tools = { slow, quick };
        const first = loopOf(session, [called(['c1', 'slow'], ['c2', 'quick'])], tools);
        void first.ask('Go.');
        const isSettled = async () => (await session.invocations({ status: 'ok' })).items.length === 1;
        while (!(await isSettled())) await new Promise((resolve) => setTimeout(resolve, 5));
        // Another process: it knows nothing of the running tool.
        const { open } = await import('rethread');
        const bytes = await session.serialize();
        const copy = await (await open({ store: 'memory' })).restore(bytes);
        const next = loopOf(copy, [said('So.')], tools, { onInterrupted: { slow: onInterrupted } });
        assert.deepEqual(await next.ask(), { text: 'So.', errors: [] });
        const [, , results] = inShort(next.prompts[0]);
        assert.equal(next.prompts.length, 1);
        assert.match(results, /c2 = "quick"/);
        if (onInterrupted === 'rerun') assert.match(results, /c1 = "done"/);
        else
          assert.match(
            next.prompts[0][2].content.find(({ toolCallId }) => toolCallId === 'c1').output.value,
            INTERRUPTED,
          );
        assert.equal(ran, onInterrupted === 'rerun' ? 2 : 1);
        assert.equal(shown(await stored(copy)).length, 2);
      }
    });

    test(`r53 calls whose ids come again in an answer each run, and none of one that was aborted, with ai ${version}`, async () => {
      let ran = 0;
      const look = tool(async () => (ran += 1));
      const session = await newSession();
      const answers = [called(['c1', 'look']), called(['c1', 'look']), said('Two.'), called(['c2', 'look'])];
      const { ask, prompts, durable } = loopOf(session, answers, { look });
      await ask('hi');
      const told = ['user: hi', 'assistant: c1', 'tool: c1 = 1', 'assistant: c1', 'tool: c1 = 2'];
      assert.deepEqual([ran, inShort(prompts[2])], [2, told]);
      // As a process that dies when the answer is stored, before its tool begins.
      const asked = { prompt: [], tools: [{ name: 'look', providerOptions: durable.look.providerOptions }] };
      const [call] = called(['c2', 'look']);
      const doGenerate = async () => ({ content: [call], finishReason: { unified: 'tool-calls' } });
      await historyMiddleware(session).wrapGenerate({ doGenerate, params: asked });
      const details = { toolCallId: 'c2', messages: [], abortSignal: AbortSignal.abort() };
      await assert.rejects(durable.look.execute({}, details), { name: 'AbortError' });
      await resumeUIMessages(session, { tools: durable });
      assert.match(JSON.stringify(await stored(session)), /Not run: /);
      // Whether a tool that is not durable was started, nobody knows.
      const other = await newSession();
      const own = { type: 'tool', callId: 'c3', name: 'own', arguments: '{}' };
      await other.append([{ role: 'assistant', parts: [own] }]);
      await resumeUIMessages(other, { tools: durable });
      assert.match(JSON.stringify(await stored(other)), /may or may not have run/);
      // One that comes late finds the note.
      await assert.rejects(durable.look.execute({}, { toolCallId: 'c2', messages: [] }), /^Error: Not run: /);
      assert.equal(ran, 2);
    });

    test(`r53 a stopped answer is kept and marked, and a cut one runs no tool, with ai ${version}`, async () => {
      const session = await newSession();
      const stop = new AbortController();
      const half = [
        { type: 'text-start', id: 't' },
        { type: 'text-delta', id: 't', delta: 'Hel' },
      ];
      const { settings } = loopOf(session, [[...half, HANGS]]);
      const result = ai.streamText({ ...settings, prompt: 'hi', abortSignal: stop.signal, onError: () => {} });
      for await (const delta of result.textStream) if (delta === 'Hel') stop.abort();
      await until(async () => (await items(session)).length === 2);
      assert.equal((await items(session))[1].status, 'stopped');
      assert.deepEqual(shown(await stored(session)), ['user: hi', 'assistant: Hel']);

      let ran = 0;
      const cut = loopOf(session, [[...half, ...called(['c1', 'look']).slice(0, 1), new Error('broken')]], {
        look: tool(() => (ran += 1)),
      });
      await cut.ask('again');
      const next = loopOf(session, [said('So.')]);
      await next.ask('and?');
      assert.equal(ran, 0);
      assert.match(inShort(next.prompts[0]).join('\n'), /c1 = /);
    });

    test(`r53 options that do not exist, and a model that is not wrapped, are config_invalid, with ai ${version}`, async () => {
      const session = await newSession();
      const invalid = { code: 'config_invalid' };
      const tools = { look: tool(() => 7) };
      assert.throws(() => historyMiddleware({}), invalid);
      assert.throws(() => historyMiddleware(session, {}), invalid);
      assert.throws(() => durableTools(tools, session, { onInterrupted: { look: 'again' } }), invalid);
      assert.throws(() => durableTools(tools, session, { onInterrupted: { other: 'rerun' } }), invalid);
      assert.throws(() => durableTools(tools, session, { rerun: true }), invalid);
      await assert.rejects(resumeUIMessages(session, { tolls: tools }), invalid);
      await assert.rejects(durableTools(tools, session).look.execute({}, { toolCallId: 'c1' }), invalid);
    });
  });

async function until(isSo) {
  while (!(await isSo())) await new Promise((resolve) => setTimeout(resolve, 5));
}
