// `withSession` before a server whose loop is `streamText` of `ai` 6 and 7: a tool of the server, and one that a person
// approves.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as ai6 from 'ai';
import * as ai7 from 'ai-7';
import { MockLanguageModelV4 } from 'ai-7/test';
import { MockLanguageModelV3 } from 'ai/test';
import { open } from 'rethread';
import { loadUIMessages, toUIMessages, withSession } from 'rethread/ai-sdk';
import { z } from 'zod';
import { Server, pageOf } from './ai-sdk-page.mjs';

const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };
const finish = (unified) => ({ type: 'finish', finishReason: { unified, raw: undefined }, usage });
const said = (delta) => [
  { type: 'text-start', id: 't' },
  { type: 'text-delta', id: 't', delta },
  { type: 'text-end', id: 't' },
  finish('stop'),
];
const called = (...names) => [
  ...names.map((toolName) => ({ type: 'tool-call', toolCallId: `call-${toolName}`, toolName, input: '{"of":1}' })),
  finish('tool-calls'),
];

function modelOf(Model, answers) {
  return new Model({
    doStream: async () => {
      const chunks = [{ type: 'stream-start', warnings: [] }, ...answers.shift()];
      return { stream: ReadableStream.from(chunks) };
    },
  });
}

for (const [version, ai, Model] of [
  [6, ai6, MockLanguageModelV3],
  [7, ai7, MockLanguageModelV4],
])
  test(`r53 a loop of streamText with an approval is stored once, over a reload, with ai ${version}`, {
    timeout: 30_000,
  }, async () => {
    const ran = [];
    const tool = (name, more = {}) => ({
      inputSchema: z.object({ of: z.number() }),
      execute: async ({ of }) => {
        ran.push(name);
        return { of };
      },
      ...more,
    });
    const tools = { look: tool('look'), pay: tool('pay', { needsApproval: true }) };
    const model = modelOf(Model, [called('look'), called('pay'), said('Paid.'), said('Bye.')]);
    const session = await (await open({ store: 'memory' })).session('s');
    const server = new Server(ai);
    const answer = async ({ messages }) => {
      const valid = await ai.validateUIMessages({ messages, tools });
      const result = ai.streamText({
        model,
        tools,
        messages: await ai.convertToModelMessages(valid),
        stopWhen: ai.stepCountIs(4),
      });
      return result.toUIMessageStreamResponse({ originalMessages: valid });
    };
    server.answers.push(answer, answer, answer);
    const sendAutomaticallyWhen = ai.lastAssistantMessageIsCompleteWithApprovalResponses;
    const newPage = async () =>
      pageOf(ai, {
        transport: withSession(server.transport, session),
        messages: await loadUIMessages(session),
        sendAutomaticallyWhen,
      });

    const page = await newPage();
    await page.sendMessage({ text: 'Pay.' });
    assert.deepEqual([page.error, ran], [undefined, ['look']]);
    const next = await newPage();
    const asked = next.messages.at(-1).parts.at(-1);
    assert.equal(asked.state, 'approval-requested');
    await next.addToolApprovalResponse({ id: asked.approval.id, approved: true });
    for (let waited = 0; next.messages.at(-1).parts.at(-1).text !== 'Paid.' || next.status !== 'ready'; waited += 5) {
      assert.ok(waited < 10_000 && !next.error, `no answer: ${next.error}`);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    assert.deepEqual(ran, ['look', 'pay']);
    const last = await newPage();
    assert.deepEqual(
      last.messages[1].parts.map(({ type, state, text }) => text ?? state ?? type),
      ['step-start', 'output-available', 'step-start', 'output-available', 'step-start', 'Paid.'],
    );
    assert.deepEqual(
      (await session.invocations()).items.map(({ status }) => status),
      ['ok', 'ok'],
    );
    await last.sendMessage({ text: 'Thanks.' });
    assert.deepEqual([last.error, last.messages.at(-1).parts.at(-1).text], [undefined, 'Bye.']);
    assert.equal(toUIMessages((await session.messages()).items).length, 4);
    assert.equal((await session.branches()).length, 1);
  });
