// Chats that were stored elsewhere: `fromModelMessages` and `fromUIMessages`, and what the model is told of calls whose
// result they do not have, with `ai` 6 and 7.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  durableTools,
  fromModelMessages,
  fromUIMessages,
  historyMiddleware,
  loadUIMessages,
  resumeUIMessages,
  toUIMessages,
} from 'rethread/ai-sdk';
import { z } from 'zod';
import { VERSIONS, called, modelOf, newSession, said } from './ai-sdk-models.mjs';
import { servedChat } from './ai-sdk-served.mjs';

const INTERRUPTED = /^Interrupted: .*may or may not have run/;
const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAAB';
const ui = (id, role, ...parts) => ({ id, role, parts });
const open = { type: 'tool-pay', toolCallId: 'c1', state: 'input-available', input: { of: 7 } };
const savedUi = [ui('u1', 'user', { type: 'text', text: 'Pay.' }), ui('a1', 'assistant', { type: 'step-start' }, open)];
const call = (toolCallId, more = {}) => ({ type: 'tool-call', toolCallId, toolName: 'pay', input: { of: 7 }, ...more });
const result = (toolCallId, output) => ({ type: 'tool-result', toolCallId, toolName: 'pay', output });
const savedModel = [
  { role: 'user', content: 'Pay.' },
  { role: 'assistant', content: [call('c1')] },
];
const question = { role: 'user', content: 'And?' };

const resultsOf = (prompt) => prompt.flatMap(({ role, content }) => (role === 'tool' ? content : []));
const items = async (session) => (await session.messages({ limit: 1000 })).items;
const toolOf = (ran) => ({
  inputSchema: z.object({ of: z.number() }),
  execute: () => {
    ran.push('pay');
    return 'paid';
  },
});

for (const version of VERSIONS) {
  const [number, ai, Model] = version;
  describe(`ai ${number}`, { timeout: 60_000 }, () => {
    const loopOf = (session, answers, tools) => {
      const { model, prompts } = modelOf(Model, answers);
      const wrapped = ai.wrapLanguageModel({ model, middleware: historyMiddleware(session) });
      return { agent: { model: wrapped, tools, stopWhen: ai.stepCountIs(3), maxRetries: 0 }, prompts };
    };

    test(`r53 of an imported call without a result the model is told that it may have run, with ai ${number}`, async () => {
      for (const saved of [fromUIMessages(savedUi), fromModelMessages(savedModel)])
        for (const isDurable of [true, false, undefined]) {
          const session = await newSession();
          await session.append(saved);
          const ran = [];
          const tools = { pay: toolOf(ran) };
          const own = isDurable ? durableTools(tools, session) : tools;
          const { agent, prompts } = loopOf(session, [said('So.')], own);
          const options = isDurable === undefined ? {} : { tools: own };
          const messages = await ai.convertToModelMessages(await resumeUIMessages(session, options));
          await ai.generateText({ ...agent, messages: [...messages, question] });
          const [told] = resultsOf(prompts[0]);
          assert.match(told.output.value, INTERRUPTED);
          assert.deepEqual(ran, []);
        }
    });

    test(`r53 an imported call may run again if its tool may, with ai ${number}`, async () => {
      const session = await newSession();
      await session.append(fromModelMessages(savedModel));
      const ran = [];
      const tools = durableTools({ pay: toolOf(ran) }, session, { onInterrupted: { pay: 'rerun' } });
      const [, { parts }] = await resumeUIMessages(session, { tools });
      assert.deepEqual([parts.at(-1).output, ran], ['paid', ['pay']]);
    });

    test(`r53 a server tells of an imported call that it may have run, with ai ${number}`, async () => {
      for (const sends of [{ text: 'And?' }, undefined]) {
        const ran = [];
        const chat = await servedChat(version, [said('So.')], { tools: { pay: toolOf(ran) } });
        await chat.session.append(fromUIMessages(savedUi));
        await (await chat.reload()).sendMessage(sends);
        assert.match(resultsOf(chat.prompts[0])[0].output.value, INTERRUPTED);
        assert.deepEqual(ran, []);
      }
    });

    test(`r53 a history of streamText comes back as it was, with ai ${number}`, async () => {
      const session = await newSession();
      const tools = { look: { inputSchema: z.object({}).loose(), execute: () => ({ of: 7 }) } };
      const { agent } = loopOf(session, [], tools);
      const { model } = modelOf(Model, [called(['c1', 'look'], ['c2', 'look']), said('Seven.')]);
      const asked = [question];
      const { response } = await ai.generateText({ ...agent, model, messages: asked });
      const history = [...asked, ...response.messages];
      await session.append(fromModelMessages(history));
      const { agent: next, prompts } = loopOf(session, [said('Bye.')], tools);
      const messages = await ai.convertToModelMessages(await resumeUIMessages(session));
      await ai.generateText({ ...next, messages: [...messages, question] });
      const other = modelOf(Model, [said('Bye.')]);
      await ai.generateText({ ...next, model: other.model, messages: [...history, question] });
      assert.equal(JSON.stringify(prompts[0]), JSON.stringify(other.prompts[0]));
    });

    test(`r53 every part of a model message is kept, with ai ${number}`, async () => {
      const options = { acme: { cache: true } };
      const outputs = [
        { type: 'text', value: 'paid' },
        { type: 'json', value: { of: 7 } },
        { type: 'error-text', value: 'no' },
        { type: 'error-json', value: { code: 1 } },
        { type: 'content', value: [{ type: 'text', text: 'a' }] },
        { type: 'execution-denied', reason: 'too dear' },
      ];
      const all = [
        { role: 'system', content: 'Be brief.', providerOptions: options },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'See.', providerOptions: options },
            { type: 'image', image: PNG },
            { type: 'image', image: new URL('https://a.test/b.png') },
            { type: 'file', data: new Uint8Array([104, 105]), mediaType: 'text/plain', filename: 'a.txt' },
          ],
        },
        {
          role: 'assistant',
          content: [
            { type: 'reasoning', text: 'Hm.', providerOptions: options },
            { type: 'text', text: 'One moment.' },
            { type: 'file', data: PNG, mediaType: 'image/png' },
            call('web', { providerExecuted: true }),
            result('web', { type: 'json', value: [1] }),
            ...outputs.map((_, at) => call(`c${at}`)),
            call('asked'),
            { type: 'tool-approval-request', approvalId: 'p1', toolCallId: 'asked' },
          ],
        },
        {
          role: 'tool',
          content: [
            { type: 'tool-approval-response', approvalId: 'p1', approved: true },
            ...outputs.map((output, at) => result(`c${at}`, output)),
          ],
        },
      ];
      const session = await newSession();
      await session.append(fromModelMessages(all));
      const messages = await loadUIMessages(session);
      await ai.validateUIMessages({ messages });
      const [system, user, { parts }] = messages;
      assert.deepEqual(system.parts, [{ type: 'text', text: 'Be brief.', providerMetadata: options }]);
      assert.deepEqual(user.parts, [
        { type: 'text', text: 'See.', providerMetadata: options },
        { type: 'file', mediaType: 'image/png', url: `data:image/png;base64,${PNG}` },
        { type: 'file', mediaType: 'image/*', url: 'https://a.test/b.png' },
        { type: 'file', mediaType: 'text/plain', filename: 'a.txt', url: 'data:text/plain;base64,aGk=' },
      ]);
      const told = parts.map(
        ({ type, state, text, url, output, errorText, approval }) =>
          output ?? errorText ?? approval?.reason ?? text ?? url ?? state ?? type,
      );
      assert.deepEqual(told, [
        'step-start',
        'Hm.',
        'One moment.',
        `data:image/png;base64,${PNG}`,
        [1],
        'paid',
        { of: 7 },
        'no',
        '{"code":1}',
        [{ type: 'text', text: 'a' }],
        'too dear',
        'approval-responded',
      ]);
      const states = (await session.invocations()).items.map(({ callId, status }) => `${callId} ${status}`).sort();
      assert.deepEqual(states.slice(0, 3), ['asked pending', 'c0 ok', 'c1 ok']);
      // Once more by way of the SDK: nothing changes any more.
      const again = fromModelMessages(await ai.convertToModelMessages(messages.slice(0, 2)));
      assert.deepEqual(
        toUIMessages(await stored(again)).map((message) => message.parts),
        [system.parts, user.parts],
      );
    });

    test(`r53 results of calls with one id in one answer are not swapped, with ai ${number}`, async () => {
      const text = (value) => ({ type: 'text', value });
      const pay = (of) => call('c1', { input: { of } });
      const look = { ...pay(3), toolName: 'look' };
      const resultsOfCalls = async (...messages) => {
        const session = await newSession();
        await session.append(fromModelMessages([question, ...messages]));
        const [, { parts }] = await loadUIMessages(session);
        await ai.validateUIMessages({ messages: await loadUIMessages(session) });
        return parts.flatMap(({ input, output, errorText, state }) =>
          input ? [[input.of, output ?? errorText ?? state]] : [],
        );
      };
      const asked = { role: 'assistant', content: [pay(1), pay(2), look] };
      const told = (...content) => ({ role: 'tool', content });
      const first = result('c1', text('one'));
      const second = result('c1', text('two'));
      const third = { ...result('c1', text('three')), toolName: 'look' };
      const all = [
        [1, 'one'],
        [2, 'two'],
        [3, 'three'],
      ];
      assert.deepEqual(await resultsOfCalls(asked, told(first, second, third)), all);
      assert.deepEqual(await resultsOfCalls(asked, told(third), told(first), told(second)), all, 'told apart by name');
      assert.deepEqual(
        await resultsOfCalls(asked, told(third, first, second, second)),
        all,
        'of two results the first one counts',
      );
      const waits = [2, 'input-available'];
      assert.deepEqual(await resultsOfCalls(asked, told(first, third)), [[1, 'one'], waits, [3, 'three']]);
      // An id that comes again in a later answer is that one's.
      const later = [{ role: 'assistant', content: [pay(1)] }, told(first), { role: 'assistant', content: [pay(2)] }];
      assert.deepEqual(await resultsOfCalls(...later, told(second)), [
        [1, 'one'],
        [2, 'two'],
      ]);
      // What the provider executes has its result beside it.
      const own = { providerExecuted: true };
      const web = { role: 'assistant', content: [{ ...pay(1), ...own }, first, { ...pay(2), ...own }, second] };
      assert.deepEqual(await resultsOfCalls(web), [
        [1, 'one'],
        [2, 'two'],
      ]);
      // Approvals, too, are each call's own.
      const ask = (approvalId) => ({ type: 'tool-approval-request', approvalId, toolCallId: 'c1' });
      const say = (approvalId, approved) => ({ type: 'tool-approval-response', approvalId, approved });
      const asking = { role: 'assistant', content: [pay(1), ask('p1'), pay(2), ask('p2')] };
      const denied = result('c1', { type: 'execution-denied', reason: 'no' });
      assert.deepEqual(await resultsOfCalls(asking, told(say('p1', false), say('p2', true), denied, second)), [
        [1, 'output-denied'],
        [2, 'two'],
      ]);
      assert.deepEqual(await resultsOfCalls(asking, told(say('p2', true))), [
        [1, 'approval-requested'],
        [2, 'approval-responded'],
      ]);
    });

    test(`r53 what is no model message is named, with ai ${number}`, async () => {
      const wrong = (messages, message) =>
        assert.throws(() => fromModelMessages(messages), { code: 'invalid_input', message });
      wrong({}, /are a list/);
      wrong(savedUi, /message 0 .*`fromUIMessages`/);
      wrong([{ role: 'user', content: [{ type: 'video' }] }], /message 0 .*"video"/);
      wrong([{ role: 'tool', content: [result('c9', { type: 'text', value: '' })] }], /message 0 .*the call "c9"/);
      wrong([...savedModel, { role: 'tool', content: [result('c1', { type: 'odd' })] }], /message 2 .*`output`/);
      wrong(
        [{ role: 'tool', content: [{ type: 'tool-approval-response', approvalId: 'p', approved: true }] }],
        /approval "p"/,
      );
      for (const message of [...savedModel, { role: 'tool', content: [] }])
        assert.throws(() => fromUIMessages([message]), { code: 'invalid_input', message: /`fromModelMessages`/ });
      const ofFour = { id: 'm', role: 'user', content: 'hi' };
      assert.throws(() => fromUIMessages([ofFour]), { code: 'invalid_input', message: /messages of `ai` 4/ });
    });
  });
}

async function stored(messages) {
  const session = await newSession();
  await session.append(messages);
  return items(session);
}
