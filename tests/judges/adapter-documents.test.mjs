// r53: the first lines of the adapters' pages, as they stand, with a model that answers from a list.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import {
  Agent,
  MemorySession,
  OpenAIResponsesCompactionSession,
  RunState,
  run,
  setTracingDisabled,
  tool,
  Usage,
} from '@openai/agents';
import { LocalRuntimeCore } from '@assistant-ui/core/internal';
import { AIMessage } from '@langchain/core/messages';
import { RunnableLambda, RunnableWithMessageHistory } from '@langchain/core/runnables';
import { open } from 'rethread';
import { threadHistory } from 'rethread/assistant-ui';
import { chatMessageHistory } from 'rethread/langchain';
import { once } from 'rethread/once';
import { agentsSession } from 'rethread/openai-agents';
import { z } from 'zod';
import { blocksOf, scoped } from '../types/documents/blocks.mjs';

const AsyncFunction = (async () => {}).constructor;
const blocks = (page) => blocksOf(readFileSync(new URL(`../../docs/${page}.md`, import.meta.url), 'utf8'));

/** Runs blocks of a page, each in the scope of the one before, and returns the values of the names in `results`. */
function runBlocks(sources, values, results) {
  const inner = sources.map(({ source, line }) => `{ ${scoped({ source, line }).source}`).join('\n');
  const body = `${inner}\nreturn { ${results.join(', ')} };${'}'.repeat(sources.length)}`;
  return new AsyncFunction(...Object.keys(values), body)(...Object.values(values));
}

const said = (text) => ({
  type: 'message',
  role: 'assistant',
  status: 'completed',
  content: [{ type: 'output_text', text }],
});
/** A provider of a model that gives these outputs. */
function providerOf(outputs) {
  const getResponse = async () => ({ usage: new Usage(), output: outputs.shift() });
  return class {
    getModel() {
      return { getResponse };
    }
  };
}

setTracingDisabled(true);
const memory = { open, sqlite: () => 'memory' };

test('r53 docs/openai-agents.md: a stored chat in ten lines, an approval, and compaction by OpenAI', async () => {
  const [start, wrapped, goOn, perRequest, approval, , compaction] = blocks('openai-agents');
  assert.ok(start.source.trim().split('\n').filter(Boolean).length <= 10);
  const pay = { type: 'function_call', callId: 'a', name: 'pay', status: 'completed', arguments: '{}' };
  const OpenAIProvider = providerOf([[said('Nothing.')], [pay], [said('Paid.')]]);
  const parameters = { type: 'object', properties: {}, required: [], additionalProperties: false };
  const tools = [
    tool({ name: 'pay', description: '', parameters, strict: true, needsApproval: true, execute: () => 'ok' }),
  ];
  class Payer extends Agent {
    constructor(options) {
      super({ ...options, tools });
    }
  }
  const compact = async () => ({ output: [{ type: 'compaction', id: 'c', encrypted_content: 'sealed' }], usage: {} });
  const values = {
    ...memory,
    Agent: Payer,
    OpenAIProvider,
    run,
    RunState,
    agentsSession,
    MemorySession,
    OpenAIResponsesCompactionSession,
    openai: { responses: { compact } },
  };
  const names = ['history', 'finalOutput', 'isAnswered', 'paid', 'compacted'];
  const done = await runBlocks([start, goOn, approval, compaction], values, names);
  // The name of the first answer is that of the page's first block.
  assert.deepEqual([done.finalOutput, done.isAnswered, done.paid], ['Nothing.', true, 'Paid.']);
  assert.equal((await done.history.getItems()).length, 6);
  // Each line stands alone: the first one ends what follows it.
  const [from, wrong, right] = wrapped.source.trim().split('\n');
  const oneLine = async (line) => {
    const Provider = providerOf([[said('Nothing.')], [said('Hi.')]]);
    const one = { source: `${from}\n${line}`, line: wrapped.line };
    const { history } = await runBlocks([start, one], { ...values, OpenAIProvider: Provider }, ['history']);
    return (await history.getItems()).length;
  };
  assert.match(wrong, /\/\/ wrong\./);
  await assert.rejects(oneLine(wrong), { message: 'session.getItems is not a function' });
  assert.match(right, /\/\/ right/);
  assert.equal(await oneLine(right), 4);
  const answers = { ...values, OpenAIProvider: providerOf([[said('Nothing.')], [said('One.')], [said('Two.')]]) };
  const { answer, store } = await runBlocks([start, perRequest], answers, ['answer', 'store']);
  for (const [id, text] of [
    ['chat-3', 'One.'],
    ['chat-4', 'Two.'],
  ]) {
    assert.equal((await answer(id, 'Hi')).finalOutput, text);
    assert.equal((await agentsSession(await store.session(id)).getItems()).length, 2);
  }
  await done.compacted.addItems(await done.history.getItems());
  assert.equal(await done.compacted.runCompaction({}), null);
  assert.ok(await done.compacted.runCompaction({ force: true }));
  assert.deepEqual(
    (await done.compacted.getItems()).map(({ type }) => type),
    ['compaction'],
  );
});

test('r18 r53 docs/openai-agents.md: a tool of once has its call once, and an error of its own text', async () => {
  const [start, , , , , tools] = blocks('openai-agents');
  const asked = {
    type: 'function_call',
    callId: 'a',
    name: 'send_mail',
    status: 'completed',
    arguments: '{"to":"ann"}',
  };
  const sent = [];
  const sendMail = async (mail) => {
    sent.push(mail);
    throw new Error('no such person');
  };
  const values = { ...memory, Agent, OpenAIProvider: providerOf([[said('Hi.')]]), run, agentsSession };
  const more = { tool, once, z, sendMail };
  const names = ['history', 'chat', 'mail'];
  const { history, chat, mail } = await runBlocks([start, tools], { ...values, ...more }, names);
  const Model = providerOf([[asked], [said('Hm.')]]);
  await run(new Agent({ name: 'A', model: new Model().getModel(), tools: [mail] }), 'Write to Ann.', {
    session: history,
  });
  assert.deepEqual(sent, [{ to: 'ann', cc: [], from: 'me@example.com' }]);
  assert.deepEqual(
    (await history.getItems()).slice(-3).map((item) => item.output?.text ?? item.arguments ?? item.content[0].text),
    ['{"to":"ann"}', 'no such person', 'Hm.'],
  );
  assert.equal((await chat.invocations()).items.length, 1);
});

test('r53 docs/langchain.md: a stored chat in ten lines, of which two at once lose nothing', async () => {
  const [start] = blocks('langchain');
  assert.ok(start.source.trim().split('\n').filter(Boolean).length <= 10);
  let asked = 0;
  let askBoth;
  const both = new Promise((resolve) => (askBoth = resolve));
  class ChatOpenAI extends RunnableLambda {
    constructor() {
      const answer = async () => {
        asked += 1;
        if (asked === 3) askBoth();
        // The first one is the page's own.
        if (asked > 1) await both;
        return new AIMessage('Hello.');
      };
      super({ func: answer });
    }
  }
  const values = { ...memory, RunnableLambda, RunnableWithMessageHistory, ChatOpenAI, chatMessageHistory };
  const { answer, chain, getMessageHistory } = await runBlocks([start], values, [
    'answer',
    'chain',
    'getMessageHistory',
  ]);
  assert.equal(answer.content, 'Hello.');
  const ask = (input) => chain.invoke({ input }, { configurable: { sessionId: 'chat-1' } });
  await Promise.all([ask('One.'), ask('Two.')]);
  const stored = await (await getMessageHistory('chat-1')).getMessages();
  const texts = stored.map(({ content }) => content);
  assert.deepEqual(texts.slice(0, 2), ['Hi', 'Hello.']);
  assert.deepEqual(texts.slice(2).sort(), ['Hello.', 'Hello.', 'One.', 'Two.']);
});

test('r18 r19 docs/sent-twice.md: a journal in eight lines, and what is right for a tool', async () => {
  const [start, options] = blocks('sent-twice');
  assert.ok(start.source.trim().split('\n').filter(Boolean).length <= 8);
  const mails = [];
  const sendMail = async ({ to }) => `sent to ${mails.push(to) && to}`;
  const tools = { payInvoice: sendMail, lookUp: sendMail, askSomebody: () => 'report' };
  const values = { ...memory, once, sendMail, ...tools };
  const { sent, send, pay, mail } = await runBlocks([start, options], values, ['sent', 'send', 'pay', 'mail']);
  const call = [{ to: 'ann@example.com', text: 'Hi' }, { callId: 'call_1' }];
  for (const again of [sent, await send(...call), await mail(...call)]) assert.equal(again, 'sent to ann@example.com');
  await assert.rejects(pay(...call), { code: 'conflict' });
  assert.deepEqual(mails, ['ann@example.com']);
});

test('r53 docs/assistant-ui.md: the history of one thread', async () => {
  // The first block, with the list, runs in Chromium: `tests/browser/assistant-ui.test.mjs`.
  const [start, , single] = blocks('assistant-ui');
  assert.ok(start.source.trim().split('\n').filter(Boolean).length <= 10);
  const threadModel = { run: async () => ({ content: [{ type: 'text', text: 'Hello.' }] }) };
  // What the hook does beside React's work.
  const useLocalRuntime = (chatModel, { adapters }) => new LocalRuntimeCore({ adapters: { ...adapters, chatModel } });
  const { useChat } = await runBlocks([single], { open, threadHistory, useLocalRuntime, threadModel }, ['useChat']);
  const load = async () => {
    const thread = useChat().threads.getMainThreadRuntimeCore();
    await thread.__internal_load();
    return thread;
  };
  const thread = await load();
  const content = [{ type: 'text', text: 'Hi' }];
  await thread.append({
    role: 'user',
    content,
    attachments: [],
    metadata: { custom: {} },
    parentId: null,
    runConfig: {},
  });
  const texts = (await load()).messages.map((message) => message.content[0].text);
  assert.deepEqual(texts, ['Hi', 'Hello.']);
});
