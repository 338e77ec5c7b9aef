// `chatHandler` and `sessionTransport` of `rethread/ai-sdk`: chats whose loop runs on a server, with `ai` 6 and 7.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { historyMiddleware, loadUIMessages, sessionTransport, toUIMessages } from 'rethread/ai-sdk';
import { z } from 'zod';
import { shown, until } from './ai-sdk-chat.mjs';
import { HANGS, VERSIONS, again, called, inShort, modelOf, newSession, said } from './ai-sdk-models.mjs';
import { pageOf } from './ai-sdk-page.mjs';
import { servedChat } from './ai-sdk-served.mjs';

const items = async (session) => (await (await again(session)).messages({ limit: 1000 })).items;
const stored = async (session) => toUIMessages(await items(session));
const tool = (execute, more = {}) => ({ inputSchema: z.object({}).loose(), execute, ...more });
const half = [
  { type: 'text-start', id: 't' },
  { type: 'text-delta', id: 't', delta: 'Hel' },
];
/** A place in an answer that is passed when the test says so. */
function gate() {
  let open;
  const passed = new Promise((resolve) => (open = resolve));
  return { passed, open };
}

for (const version of VERSIONS) {
  const [number, ai, Model] = version;
  describe(`ai ${number}`, { timeout: 60_000 }, () => {
    test(`r53 a server stores the question before its request, calls before their tools and steps as they end, with ai ${number}`, async () => {
      const seen = [];
      const tools = {
        look: tool(async () => {
          seen.push(shown(await stored(chat.session)));
          return 7;
        }),
      };
      const chat = await servedChat(version, [called(['c1', 'look']), said('Seven.'), said('Bye.')], { tools });
      const { page, prompts, session, reload } = chat;
      await page.sendMessage({ text: 'hi' });
      assert.deepEqual([page.status, page.error], ['ready', undefined]);
      assert.deepEqual(seen, [['user: hi', 'assistant: c1 input-available']]);
      const told = ['user: hi', 'assistant: c1 output-available: Seven.'];
      assert.deepEqual([shown(page.messages), shown(await stored(session))], [told, told]);
      const next = await reload();
      assert.deepEqual(
        next.messages.map(({ id }) => id),
        page.messages.map(({ id }) => id),
      );
      await next.sendMessage({ text: 'Thanks.' });
      assert.deepEqual(inShort(prompts[2]).slice(-3), ['tool: c1 = 7', 'assistant: Seven.', 'user: Thanks.']);
      assert.deepEqual(shown(await stored(session)), shown(next.messages));
      assert.equal((await session.branches()).length, 1);
    });

    test(`r53 mastra#17510 a page that leaves is a disconnect: the answer goes on, and a reconnect finds it once, with ai ${number}`, async () => {
      const { passed, open } = gate();
      const chat = await servedChat(version, [
        [...half, passed, { type: 'text-delta', id: 't', delta: 'lo' }, ...said('').slice(2)],
      ]);
      const { page, session, reload } = chat;
      void page.sendMessage({ text: 'hi' });
      await until(() => shown(page.messages)[1] === 'assistant: Hel');
      await page.stop();
      const [first, second] = [await reload(), await reload()];
      const resumed = [first, second].map((one) => one.resumeStream());
      await until(
        () => shown(first.messages)[1] === 'assistant: Hel' && shown(second.messages)[1] === 'assistant: Hel',
      );
      open();
      await Promise.all(resumed);
      const told = ['user: hi', 'assistant: Hello'];
      for (const one of [first, second, await reload()]) assert.deepEqual(shown(one.messages), told);
      assert.deepEqual(shown(await stored(session)), told);
      assert.deepEqual(
        (await items(session)).map(({ status }) => status),
        ['complete', 'complete'],
      );
      await first.resumeStream();
      assert.deepEqual(shown(first.messages), told, 'nothing is under way');
    });

    test(`r53 a stop ends the model and the answer on every page, and what has come is kept and marked, with ai ${number}`, async () => {
      const chat = await servedChat(version, [[...half, HANGS], said('Yes.')]);
      const { page, session, reload, stop } = chat;
      const sent = page.sendMessage({ text: 'hi' });
      await until(() => shown(page.messages)[1] === 'assistant: Hel');
      assert.equal((await stop()).status, 204);
      await sent;
      assert.deepEqual([page.status, shown(page.messages)], ['ready', ['user: hi', 'assistant: Hel']]);
      assert.deepEqual(
        (await items(session)).map(({ status }) => status),
        ['complete', 'stopped'],
      );
      const next = await reload();
      assert.deepEqual(shown(next.messages), shown(page.messages));
      await next.sendMessage({ text: 'go on' });
      assert.deepEqual(shown(await stored(session)), ['user: hi', 'assistant: Hel', 'user: go on', 'assistant: Yes.']);
      assert.equal((await session.branches()).length, 1);
    });

    test(`r53 a question takes the place of an answer that its page has left, with ai ${number}`, async () => {
      const chat = await servedChat(version, [[...half, HANGS], said('Yes.')]);
      const { page, session } = chat;
      void page.sendMessage({ text: 'hi' });
      await until(() => shown(page.messages)[1] === 'assistant: Hel');
      await page.stop();
      await page.sendMessage({ text: 'another' });
      assert.deepEqual(shown(page.messages), ['user: hi', 'assistant: Hel', 'user: another', 'assistant: Yes.']);
      assert.deepEqual(shown(await stored(session)), shown(page.messages));
      assert.deepEqual(
        (await items(session)).map(({ status }) => status),
        ['complete', 'stopped', 'complete', 'complete'],
      );
      assert.equal((await session.branches()).length, 1);
    });

    test(`r53 vercel/ai#16334 an approval waits over a reload with its signature, and its tool runs once, with ai ${number}`, async () => {
      const { passed, open } = gate();
      const ran = [];
      const tools = { pay: tool(() => ran.push('pay'), { needsApproval: true }) };
      const secret =
        number === 6 ? { experimental_toolApprovalSecret: 's3cret' } : { experimental_toolApprovalSecret: 's3cret' };
      const answers = [called(['c1', 'pay']), [...half, passed, ...said('').slice(2)]];
      const sendAutomaticallyWhen = ai.lastAssistantMessageIsCompleteWithApprovalResponses;
      const chat = await servedChat(version, answers, { tools, settings: secret });
      const { page, session, reload } = chat;
      await page.sendMessage({ text: 'Pay.' });
      const next = await reload({ sendAutomaticallyWhen });
      const asked = next.messages[1].parts.at(-1);
      assert.equal(asked.state, 'approval-requested');
      assert.ok(asked.approval.signature);
      await next.addToolApprovalResponse({ id: asked.approval.id, approved: true });
      await until(() => shown(next.messages)[1].endsWith('Hel'));
      // Another page connects in the middle of the message.
      const other = await reload();
      const resumed = other.resumeStream();
      await until(() => shown(other.messages)[1].endsWith('Hel'));
      open();
      await resumed;
      await until(() => next.status === 'ready');
      const told = ['user: Pay.', 'assistant: c1 output-available: Hel'];
      assert.deepEqual([shown(next.messages), shown(other.messages), shown(await stored(session))], [told, told, told]);
      const { approval } = (await stored(session))[1].parts.find(({ toolCallId }) => toolCallId);
      assert.deepEqual([approval.approved, approval.signature], [true, asked.approval.signature]);
      assert.deepEqual(ran, ['pay']);
    });

    test(`r53 vercel/ai#19358 a chat goes on whose tool has another schema now, with ai ${number}`, async () => {
      const call = ['c1', 'look', '{"city":"Oslo"}'];
      const { page, session } = await servedChat(version, [called(call), said('Cold.')], {
        tools: { look: tool(async () => 'cold') },
      });
      await page.sendMessage({ text: 'Oslo?' });
      const ran = [];
      const look = tool(async (input) => ran.push(input) && 'warm', { inputSchema: z.object({ place: z.string() }) });
      // What the documentation of `ai` does with the messages of a store.
      await assert.rejects(ai.validateUIMessages({ messages: await stored(session), tools: { look } }), /place/);
      const answers = [called(['c2', 'look', '{"place":"Rome"}']), said('Warm.')];
      const next = await servedChat(version, answers, { tools: { look }, session: async () => again(session) });
      await next.page.sendMessage({ text: 'Rome?' });
      assert.deepEqual([next.page.status, next.page.error], ['ready', undefined]);
      assert.deepEqual(inShort(next.prompts[0]), [
        'user: Oslo?',
        'assistant: c1',
        'tool: c1 = "cold"',
        'assistant: Cold.',
        'user: Rome?',
      ]);
      assert.deepEqual(ran, [{ place: 'Rome' }]);
      const told = [
        'user: Oslo?',
        'assistant: c1 output-available: Cold.',
        'user: Rome?',
        'assistant: c2 output-available: Warm.',
      ];
      assert.deepEqual(shown(await stored(session)), told);
    });

    test(`r53 regenerate and an edit are branches on a server, with ai ${number}`, async () => {
      const chat = await servedChat(version, [said('One.'), said('Two.'), said('Three.')]);
      const { page, prompts, session } = chat;
      await page.sendMessage({ text: 'hi' });
      await page.regenerate();
      assert.deepEqual(inShort(prompts[1]), ['user: hi']);
      assert.deepEqual(shown(await stored(session)), ['user: hi', 'assistant: Two.']);
      await page.sendMessage({ text: 'hello', messageId: page.messages[0].id });
      assert.deepEqual(shown(await stored(session)), ['user: hello', 'assistant: Three.']);
      assert.deepEqual(shown(page.messages), ['user: hello', 'assistant: Three.']);
      assert.equal((await session.branches()).length, 3);
    });

    test(`r53 a page may send its question alone, with ai ${number}`, async () => {
      const { page, handler, prompts, session } = await servedChat(version, [said('One.'), said('Two.')]);
      await page.sendMessage({ text: 'hi' });
      const messages = [{ id: 'u2', role: 'user', parts: [{ type: 'text', text: 'more' }] }];
      const body = JSON.stringify({ id: session.id, trigger: 'submit-message', messages });
      await (await handler(new Request('https://server.test/api/chat', { method: 'POST', body }))).text();
      assert.deepEqual(inShort(prompts[1]), ['user: hi', 'assistant: One.', 'user: more']);
      assert.deepEqual(shown(await stored(session)), [...inShort(prompts[1]), 'assistant: Two.']);
    });

    test(`r53 calls whose ids come again in an answer each run, with ai ${number}`, async () => {
      let ran = 0;
      const tools = { look: tool(async () => (ran += 1)) };
      const chat = await servedChat(version, [called(['c1', 'look']), called(['c1', 'look']), said('Two.')], { tools });
      await chat.page.sendMessage({ text: 'hi' });
      const told = ['user: hi', 'assistant: c1', 'tool: c1 = 1', 'assistant: c1', 'tool: c1 = 2'];
      assert.deepEqual([ran, inShort(chat.prompts[2])], [2, told]);
    });

    test(`r53 a tool that runs on when a question takes its place "may have run", until its result is there, with ai ${number}`, async () => {
      const [begun, end] = [gate(), gate()];
      const execute = async () => {
        begun.open();
        await end.passed;
        return 'paid';
      };
      const answers = [called(['p1', 'pay']), said('Soon.'), said('Paid.')];
      const { page, prompts, session, stop } = await servedChat(version, answers, { tools: { pay: tool(execute) } });
      void page.sendMessage({ text: 'Pay.' });
      await begun.passed;
      await stop();
      await page.sendMessage({ text: 'And?' });
      assert.match(inShort(prompts[1])[2], /^tool: p1 = .*may or may not have run/);
      end.open();
      await until(async () => shown(await stored(session))[1].includes('output-available'));
      await page.sendMessage({ text: 'Now?' });
      assert.equal(inShort(prompts[2])[2], 'tool: p1 = "paid"');
      assert.equal((await session.branches()).length, 1);
    });

    test(`r53 an answer that is never begun is stopped by a question, and by a stop, with ai ${number}`, async () => {
      const session = await newSession();
      const waits = [];
      let asked = 0;
      const answer = ({ abortSignal, messages }) => {
        asked += 1;
        if (messages.length > 1) return ReadableStream.from([{ type: 'start' }, ...half, { type: 'finish' }]);
        waits.push(abortSignal);
        return new Promise(() => {});
      };
      const transport = sessionTransport(session, { answer });
      const first = pageOf(ai, { transport });
      const sent = first.sendMessage({ text: 'hi' });
      await until(() => waits.length === 1);
      const other = pageOf(ai, { transport, messages: first.messages });
      await other.sendMessage({ text: 'hello?' });
      await sent;
      assert.deepEqual([waits[0].aborted, first.status, other.status], [true, 'ready', 'ready']);
      assert.deepEqual(shown(await stored(session)), ['user: hi', 'user: hello?', 'assistant: Hel']);
      // A stop that comes before the question is stored.
      const question = { id: 'no', role: 'user', parts: [{ type: 'text', text: 'no' }] };
      const late = transport.sendMessages({ messages: [...other.messages, question], trigger: 'submit-message' });
      assert.equal(await transport.stop(), true);
      const types = [];
      for await (const { type } of await late) types.push(type);
      assert.deepEqual(types, ['start', 'abort']);
      assert.equal(asked, 2);
      assert.deepEqual(shown(await stored(session)).slice(3), ['user: no']);
    });

    test(`r53 a store that fails stops a question, and is reported to the page for an answer, with ai ${number}`, async () => {
      const session = await newSession();
      const { model, prompts } = modelOf(Model, [said('One.'), said('Two.')]);
      const answer = async ({ messages }) => {
        if (isFull) session.append = full;
        return ai.streamText({ model, messages: await ai.convertToModelMessages(messages), maxRetries: 0 });
      };
      const transport = sessionTransport(session, { answer });
      const page = pageOf(ai, { transport });
      const full = async () => Promise.reject(Object.assign(new Error('full'), { code: 'quota_exceeded' }));
      let isFull = false;
      session.append = full;
      await page.sendMessage({ text: 'hi' });
      assert.deepEqual([page.status, page.error.code, prompts.length], ['error', 'quota_exceeded', 0]);
      delete session.append;
      isFull = true;
      await page.sendMessage({ text: 'again' });
      assert.equal(page.status, 'error');
      delete session.append;
      isFull = false;
      await page.sendMessage({ text: 'more' });
      assert.deepEqual(shown(await stored(session)), shown(page.messages));
    });

    test(`r53 a stop that comes before the stream of a complete answer is closed marks nothing, with ai ${number}`, async () => {
      const session = await newSession();
      const parts = [{ type: 'start' }, ...half, { type: 'text-end', id: 't' }, { type: 'finish' }];
      const answer = () =>
        new ReadableStream({ start: (controller) => parts.forEach((part) => controller.enqueue(part)) });
      const transport = sessionTransport(session, { answer });
      const page = pageOf(ai, { transport });
      const sent = page.sendMessage({ text: 'hi' });
      await until(async () => page.messages[1]?.parts.at(-1)?.state === 'done');
      await until(async () => (await loadUIMessages(await again(session))).length === 2);
      assert.equal(await transport.stop(), true);
      await sent;
      const statuses = (await items(session)).map(({ status }) => status);
      assert.deepEqual([statuses, page.error], [['complete', 'complete'], undefined]);
    });

    test(`r53 an answer that throws, and a stream that breaks, end on the page with an error, with ai ${number}`, async () => {
      let made = () => {
        throw new Error('no model');
      };
      const session = await newSession();
      const transport = sessionTransport(session, { answer: () => made() });
      const page = pageOf(ai, { transport });
      await page.sendMessage({ text: 'hi' });
      assert.equal(page.error.message, 'no model');
      assert.equal(await transport.reconnectToStream({}), null);
      made = () =>
        ReadableStream.from(
          (async function* () {
            yield* [{ type: 'start' }, { type: 'start-step' }, ...half];
            throw new Error('secret of the server');
          })(),
        );
      await page.sendMessage({ text: 'again' });
      assert.equal(page.error.message, 'An error occurred.');
      assert.deepEqual((await items(session)).at(-1).status, 'failed');
      assert.deepEqual(shown(await stored(session)), shown(page.messages));
    });

    test(`r53 a server's model may be wrapped: its prompts are repaired, and nothing is stored twice, with ai ${number}`, async () => {
      const session = await newSession();
      const { model, prompts } = modelOf(Model, [said('One.')]);
      const answer = ({ session: own, messages }) => {
        const wrapped = ai.wrapLanguageModel({ model, middleware: historyMiddleware(own) });
        const orphan = { type: 'tool-result', toolCallId: 'a', toolName: 'look', output: { type: 'text', value: 'x' } };
        const asked = messages.map(({ role, parts }) => ({ role, content: parts[0].text }));
        return ai.streamText({ model: wrapped, messages: [...asked, { role: 'tool', content: [orphan] }, ...asked] });
      };
      const page = pageOf(ai, { transport: sessionTransport(session, { answer }) });
      await page.sendMessage({ text: 'hi' });
      assert.deepEqual(inShort(prompts[0]), ['user: hi', 'user: hi']);
      assert.deepEqual(shown(await stored(session)), ['user: hi', 'assistant: One.']);
    });

    test(`r53 requests that are none of useChat's are refused, with ai ${number}`, async () => {
      const { handler, session } = await servedChat(version, []);
      const status = async (path, init) => (await handler(new Request(`https://server.test${path}`, init))).status;
      assert.equal(await status('/api/chat', { method: 'POST', body: 'no JSON' }), 400);
      assert.equal(await status('/api/chat', { method: 'POST', body: JSON.stringify({ id: session.id }) }), 400);
      const body = JSON.stringify({ id: session.id, messages: [{ role: 'user' }] });
      assert.equal(await status('/api/chat', { method: 'POST', body }), 400);
      assert.equal(await status(`/api/chat/${session.id}/stream`, { method: 'GET' }), 204);
      assert.equal(await status('/api/chat/%E0%A4/stop', { method: 'POST' }), 400);
      assert.equal(await status('/api/chat', { method: 'PUT' }), 405);
      assert.deepEqual(await loadUIMessages(session), []);
    });
  });
}
