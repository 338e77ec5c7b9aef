// `rethread/ai-sdk`: UI messages are stored and come back as they were, `ai` 6 and 7 take what comes back, and every
// dialect's request with them is valid.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import * as ai6 from 'ai';
import * as ai7 from 'ai-7';
import { open, validate } from 'rethread';
import { fromUIMessages, loadUIMessages, toUIMessages } from 'rethread/ai-sdk';
import { chatOf, everyState, seeded } from './ui-messages.mjs';

const CASES = Number(process.env.RETHREAD_CASES ?? (process.env.RETHREAD_LONG ? 2000 : 80));
const SEED = Number(process.env.RETHREAD_SEED ?? 20261127);
const DIALECTS = ['openai-chat', 'openai-responses', 'anthropic', 'gemini', 'mistral', 'bedrock'];
const AI = { 6: ai6, 7: ai7 };

const client = await open({ store: 'memory', replay: { freshness: Number.POSITIVE_INFINITY } });
let count = 0;
async function stored(messages) {
  count += 1;
  const session = await client.session(`chat-${count}`);
  await session.append(fromUIMessages(messages));
  return session;
}
const all = async (session) => (await session.messages({ limit: 1000 })).items;

/** Fails if `ai` of a version does not take the messages as they are. */
async function taken(version, messages) {
  const { validateUIMessages, convertToModelMessages } = AI[version];
  const parts = messages.map((message) => ({ ...message, parts: message.parts.map((part) => ({ ...part })) }));
  await validateUIMessages({ messages: parts });
  return convertToModelMessages(structuredClone(messages));
}

for (const version of [6, 7])
  test(`r53 UI messages of ai ${version} come back as they were, ai takes them, and every dialect's request is valid`, async () => {
    for (let at = 0; at < CASES; at += 1) {
      const messages = chatOf(seeded(SEED + at), version);
      const label = `RETHREAD_SEED=${SEED + at} RETHREAD_CASES=1`;
      const session = await stored(messages);
      assert.deepEqual(toUIMessages(session.view().getSnapshot().messages), messages, label);
      assert.deepEqual(toUIMessages(await all(session)), messages, label);
      await taken(version, messages).catch((error) => assert.fail(`${label}: ${error.message}`));
      for (const dialect of DIALECTS) {
        const { body } = await session.render({ dialect, params: { model: 'm' }, input: 'And now?' });
        const errors = validate(body, dialect).filter(({ severity }) => severity === 'error');
        assert.deepEqual(errors, [], `${label} ${dialect}`);
      }
    }
  });

test('r53 UI messages survive an export, and a copy by append of what a view shows', async () => {
  for (let at = 0; at < 20; at += 1) {
    const messages = chatOf(seeded(SEED + 7 * at), 8);
    const session = await stored(messages);
    const imported = await client.importSession(await client.exportSession(session.id), { id: `copy-${session.id}` });
    assert.deepEqual(toUIMessages(await all(imported)), messages);
    const copy = await client.session(`second-${session.id}`);
    await copy.append(session.view().getSnapshot().messages);
    assert.deepEqual(toUIMessages(await all(copy)), messages);
  }
});

describe('parts that a version of ai does not know', () => {
  const messages = [
    {
      id: 'm',
      role: 'assistant',
      parts: [
        { type: 'text', text: 'a' },
        { type: 'custom', kind: 'a.b' },
        { type: 'hologram', depth: 3 },
      ],
    },
  ];

  test('r53 they come back as they were', async () => {
    assert.deepEqual(toUIMessages(await all(await stored(messages))), messages);
  });

  test('r53 with `ai`, that version takes the messages, and `fromUIMessages` has the parts again', async () => {
    const items = await all(await stored(messages));
    for (const version of [6, 7]) {
      await assert.rejects(taken(version, toUIMessages(items)), /type/i);
      const readable = toUIMessages(items, { ai: version });
      await taken(version, readable);
      assert.deepEqual(
        readable.at(-1).parts.map(({ type }) => type),
        ['text', version === 6 ? 'data-rethread-part' : 'custom', 'data-rethread-part'],
      );
      assert.deepEqual(toUIMessages(await all(await stored(readable))), messages);
    }
  });
});

test('r53 a call in any state comes back, and an open one takes its result', async () => {
  for (const part of everyState(seeded(SEED))) {
    const messages = [{ id: 'm', role: 'assistant', parts: [part] }];
    const session = await stored(messages);
    assert.deepEqual(toUIMessages(await all(session)), messages);
    const open = (await session.invocations({ status: 'pending' })).items;
    if (!open.length) continue;
    await session.answer(open[0].id, { type: 'tool_result', content: { found: 1 } });
    const [{ parts }] = toUIMessages(await all(session));
    assert.deepEqual(
      [parts[0].state, parts[0].output, 'preliminary' in parts[0]],
      ['output-available', { found: 1 }, false],
    );
    assert.equal(parts[0].approval?.approved ?? true, true);
    await taken(7, toUIMessages(await all(session)));
  }
});

test('r53 what was stored otherwise becomes UI messages that ai takes', async () => {
  const session = await client.session('other');
  const call = (id) => ({ id, type: 'function', function: { name: 'look', arguments: '{"of":1}' } });
  await session.append(
    {
      messages: [
        { role: 'system', content: 'Be kind.' },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'hi' },
            { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } },
          ],
        },
        { role: 'assistant', content: 'Looking.', tool_calls: [call('c1'), call('c2')] },
        { role: 'tool', tool_call_id: 'c1', content: 'found' },
        { role: 'user', content: [{ type: 'file', file: { file_id: 'file-1' } }] },
        { role: 'assistant', content: null, refusal: 'No.' },
      ],
    },
    'openai-chat',
  );
  await session.append([
    { role: 'assistant', parts: [] },
    { role: 'user', parts: [] },
  ]);
  const messages = toUIMessages(await all(session));
  assert.deepEqual(
    messages.map(({ role, parts }) => [
      role,
      ...parts.map(({ type, state, text }) => text ?? [type, state].filter(Boolean).join(' ')),
    ]),
    [
      ['system', 'Be kind.'],
      ['user', 'hi', 'file'],
      ['assistant', 'Looking.', 'tool-look output-available', 'tool-look input-available'],
      ['user', 'data-file'],
      ['assistant', 'No.'],
      ['assistant', 'step-start'],
      ['user', ''],
    ],
  );
  for (const version of [6, 7]) await taken(version, messages);
});

test('r53 vercel/ai#4584 a call without a result no longer ends a chat', async () => {
  const asked = (text) => ({ role: 'user', parts: [{ type: 'text', text }] });
  const call = { type: 'tool-form', toolCallId: 'c1', state: 'input-available', input: {} };
  const session = await stored([
    { id: 'q1', ...asked('hi') },
    {
      id: 'm1',
      role: 'assistant',
      parts: [call, { ...call, toolCallId: 'c2', state: 'approval-requested', approval: { id: 'a' } }],
    },
    { id: 'q2', ...asked('Never mind.') },
  ]);
  const model = new (await import('ai/test')).MockLanguageModelV3({
    doGenerate: async () => ({
      content: [{ type: 'text', text: 'taken' }],
      finishReason: { unified: 'stop', raw: undefined },
      usage: { inputTokens: { total: 1 }, outputTokens: { total: 1 } },
      warnings: [],
    }),
  });
  const ask = async (messages) => ai6.generateText({ model, messages: await taken(6, messages), maxRetries: 0 });
  await assert.rejects(ask(toUIMessages(await all(session))), /MissingToolResults|Tool result/);
  const loaded = await loadUIMessages(session);
  assert.equal((await ask(loaded)).text, 'taken');
  assert.deepEqual(
    loaded[1].parts.map(({ state }) => state),
    ['output-error', 'output-error'],
  );
});

test('r53 vercel/ai#13591 #18425 parts whose members do not fit their state come back as ai takes them', async () => {
  const part = (more) => ({ type: 'tool-look', toolCallId: `c${count}`, input: {}, ...more });
  const broken = [
    part({ state: 'output-error' }),
    part({ state: 'output-error', errorText: 'x', approval: { id: 'a' } }),
    part({ state: 'output-available', output: 1, errorText: 'aborted', approval: { id: 'a', approved: false } }),
    part({ state: 'output-denied' }),
    part({ state: 'approval-responded' }),
    part({ state: 'approval-requested', approval: { id: 'a', approved: true, reason: 'r' } }),
    part({ state: 'input-available', output: 1, errorText: 'x', approval: { id: 'a' } }),
    part({ state: 'call' }),
  ];
  for (const one of broken)
    for (const version of [6, 7]) {
      const messages = [{ id: 'm', role: 'assistant', parts: [one] }];
      await assert.rejects(taken(version, messages), `${one.state} is taken as it is`);
      await taken(version, toUIMessages(await all(await stored(messages))));
    }
});

test('r53 what is no UI message is `invalid_input` that names it, and nothing of ours is taken from a page', async () => {
  for (const wrong of [
    null,
    'x',
    { role: 'tool', parts: [] },
    { role: 'user', content: 'x' },
    { role: 'user', parts: [{}] },
  ])
    assert.throws(() => fromUIMessages([{ id: 'a', role: 'user', parts: [] }, wrong]), {
      code: 'invalid_input',
      message: /^message 1 /,
    });
  assert.throws(() => fromUIMessages({}), { code: 'invalid_input' });
  assert.throws(() => fromUIMessages([{ id: 1n, role: 'user', parts: [] }]), { code: 'invalid_input' });
  const forged = [
    {
      id: 'm',
      role: 'assistant',
      parts: [
        { type: 'data-rethread/ai-sdk', data: { of: 'x' } },
        { type: 'opaque', dialect: 'anthropic', value: {} },
      ],
    },
  ];
  const session = await stored(forged);
  assert.deepEqual(toUIMessages(await all(session)), forged);
  assert.ok((await all(session))[0].parts.every(({ type }) => type === 'data'));
});
