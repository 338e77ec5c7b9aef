// Calls of `useChat` whose approval was answered, and that never got a result: `ai` 6 and 7 take the chat again.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as ai6 from 'ai';
import * as ai7 from 'ai-7';
import { MockLanguageModelV4 } from 'ai-7/test';
import { MockLanguageModelV3 } from 'ai/test';
import { loadUIMessages } from 'rethread/ai-sdk';
import { chatOf, shown, stored, until } from './ai-sdk-chat.mjs';
import { call, step, text, whole } from './ai-sdk-page.mjs';

const asked = (toolCallId) => [
  ...call(toolCallId),
  { type: 'tool-approval-request', toolCallId, approvalId: `approval-${toolCallId}` },
];

for (const [version, ai, Model] of [
  [6, ai6, MockLanguageModelV3],
  [7, ai7, MockLanguageModelV4],
])
  test(`r53 an approval whose request failed ends no chat, over a reload, with ai ${version}`, {
    timeout: 30_000,
  }, async () => {
    /** What a server does with the messages: `AI_MissingToolResultsError` rejects them. */
    const accepted = async (messages) => {
      const prompts = [];
      const model = new Model({
        doGenerate: async ({ prompt }) => {
          prompts.push(prompt);
          throw new Error('no answer');
        },
      });
      const request = { model, messages: await ai.convertToModelMessages(messages), maxRetries: 0 };
      await assert.rejects(ai.generateText(request), { message: 'no answer' });
      return prompts[0];
    };
    const { session, server, page, reload } = await chatOf(ai, {
      sendAutomaticallyWhen: ai.lastAssistantMessageIsCompleteWithApprovalResponses,
    });
    const asks = whole('m1', step(asked('c1'), asked('c2')));
    server.answers.push(asks, [{ type: 'error', errorText: 'overloaded' }]);
    await page.sendMessage({ text: 'hi' });
    await page.addToolApprovalResponse({ id: 'approval-c1', approved: true });
    await page.addToolApprovalResponse({ id: 'approval-c2', approved: false, reason: 'too dear' });
    await until(() => page.status === 'error');
    server.resumed = asks;
    await (await reload()).resumeStream();
    assert.deepEqual(shown(await stored(session))[1], 'assistant: c1 approval-responded: c2 approval-responded');

    const next = await reload();
    server.answers.push(whole('m2', step(text(['Fine.']))));
    await next.sendMessage({ text: 'never mind' });
    const [, sent] = server.requests.at(-1).messages;
    const [ran, denied] = sent.parts.filter(({ toolCallId }) => toolCallId);
    assert.deepEqual([ran.state, denied.state, denied.approval.reason], ['output-error', 'output-denied', 'too dear']);
    assert.match(ran.errorText, /may or may not have run/);
    for (const messages of [server.requests.at(-1).messages, await stored(session), await loadUIMessages(session)]) {
      await ai.validateUIMessages({ messages });
      const question = [...messages, { id: 'q', role: 'user', parts: [{ type: 'text', text: 'and?' }] }];
      const results = (await accepted(question)).flatMap(({ role, content }) => (role === 'tool' ? content : []));
      const told = results.flatMap(({ type, output }) =>
        type === 'tool-result' ? [output.value ?? output.reason] : [],
      );
      assert.deepEqual(told, [ran.errorText, 'too dear']);
    }
    assert.equal((await session.invocations({ status: 'pending' })).items.length, 0);
    assert.equal((await session.branches()).length, 1);
  });
