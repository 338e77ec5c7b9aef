// `awaitsAnswer`, and requests that leave the stored history out, with `ai` 6 and 7.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { awaitsAnswer, durableTools, fromUIMessages, historyMiddleware, resumeUIMessages } from 'rethread/ai-sdk';
import { z } from 'zod';
import { shown, until } from './ai-sdk-chat.mjs';
import { HANGS, VERSIONS, called, modelOf, newSession, said } from './ai-sdk-models.mjs';
import { servedChat } from './ai-sdk-served.mjs';

const input = z.object({}).loose();
const tools = { look: { inputSchema: input, execute: () => 7 }, ask: { inputSchema: input } };
const text = (said, state = 'done') => ({ type: 'text', text: said, state });
const call = (name, state, more = {}) => ({ type: `tool-${name}`, toolCallId: 'c1', state, input: {}, ...more });
const ofProvider = { providerExecuted: true };
const look7 = call('look', 'output-available', { output: 7 });
const web7 = call('web', 'output-available', { output: 7, ...ofProvider });
const source = { type: 'source-url', sourceId: 's', url: 'https://a.test/' };
const user = { id: 'u', role: 'user', parts: [{ type: 'text', text: 'hi' }] };
const answer = (...parts) => ({ id: 'a', role: 'assistant', parts: [{ type: 'step-start' }, ...parts] });

test('r53 a chat waits for an answer if it ends with a question, with a cut answer or with a call of its tools', async () => {
  for (const [messages, expected] of [
    [[], false],
    [[user], true],
    [[user, answer(text('Hello'))], false],
    [[user, answer(text('Hel', 'streaming'))], true],
    [[user, answer(call('look', 'output-available', { output: 7 }))], true],
    [[user, answer(call('look', 'output-error', { errorText: 'no' }))], true],
    [[user, answer(call('look', 'output-available', { output: 7 }), text('Seven.'))], false],
    [[user, answer({ type: 'reasoning', text: 'Hm.', state: 'done' })], true],
    // What the provider executes is answered in the same answer.
    [[user, answer(call('web', 'output-available', { output: 7, ...ofProvider }))], false],
    [[user, answer(call('web', 'output-error', { errorText: 'no', ...ofProvider }), source)], false],
    [[user, answer(call('web', 'output-available', { output: 7, preliminary: true, ...ofProvider }))], true],
    [[user, answer(call('web', 'input-available', ofProvider))], true],
    [[user, answer(look7, { ...web7, toolCallId: 'c2' })], true],
    [[user, answer(look7, { type: 'step-start' }, { ...web7, toolCallId: 'c2' })], false],
    [[user, answer({ ...web7, toolCallId: 'c2' }, look7)], true],
    [[user, answer(call('look', 'input-available'))], true],
    [[user, answer(call('ask', 'input-available'))], false],
    [[user, answer(call('look', 'approval-requested', { approval: { id: 'p' } }))], false],
    [[user, answer(call('look', 'approval-responded', { approval: { id: 'p', approved: true } }))], true],
    [[user, answer(text('Hello')), { ...user, id: 'u2' }], true],
  ]) {
    const session = await newSession();
    await session.append(fromUIMessages(messages));
    assert.equal(await awaitsAnswer(session, { tools }), expected, JSON.stringify(messages.at(-1)?.parts));
  }
  for (const part of [text('Hello'), web7]) {
    const session = await newSession();
    await session.append(fromUIMessages([user, answer(part)]).map((one) => ({ ...one, status: 'failed' })));
    assert.equal(await awaitsAnswer(session), true);
  }
  const session = await newSession();
  await assert.rejects(awaitsAnswer({}), { code: 'config_invalid' });
  await assert.rejects(awaitsAnswer(session, { tolls: tools }), { code: 'config_invalid' });
});

for (const version of VERSIONS) {
  const [number, ai, Model] = version;
  describe(`ai ${number}`, { timeout: 30_000 }, () => {
    test(`r53 a chat does not wait while its server answers, with ai ${number}`, async () => {
      const half = [
        { type: 'text-start', id: 't' },
        { type: 'text-delta', id: 't', delta: 'Hel' },
      ];
      const { page, session, stop } = await servedChat(version, [[...half, HANGS]]);
      const sent = page.sendMessage({ text: 'hi' });
      await until(() => shown(page.messages)[1] === 'assistant: Hel');
      assert.equal(await awaitsAnswer(session), false);
      await stop();
      await sent;
      assert.equal(await awaitsAnswer(session), true);
    });

    test(`r53 a request that leaves the stored answers out is warned of, and one with them is not, with ai ${number}`, async () => {
      const session = await newSession();
      const { model } = modelOf(Model, [called(['c1', 'look']), said('Seven.'), said('a'), said('b'), said('c')]);
      const agent = {
        model: ai.wrapLanguageModel({ model, middleware: historyMiddleware(session) }),
        tools: durableTools({ look: tools.look }, session),
        stopWhen: ai.stepCountIs(3),
      };
      const own = ({ warnings }) => (warnings ?? []).filter(({ message }) => /has none of its answers/.test(message));
      const first = await ai.generateText({ ...agent, prompt: 'How many?' });
      assert.deepEqual(first.steps.flatMap(own), []);
      const alone = await ai.generateText({ ...agent, prompt: 'And?' });
      assert.match(own(alone)[0].message, /2 earlier messages.*resumeUIMessages/);
      const streamed = ai.streamText({ ...agent, prompt: 'And?' });
      assert.equal(own({ warnings: await streamed.warnings }).length, 1);
      const messages = await ai.convertToModelMessages(await resumeUIMessages(session, { tools: agent.tools }));
      const next = await ai.generateText({ ...agent, messages: [...messages, { role: 'user', content: 'And?' }] });
      assert.deepEqual(own(next), []);
    });
  });
}
