// The parameters of the SDKs' own types, as a body and as `params`: `tests/types/sdks.ts` has the types, this has what
// becomes of them.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { convert, open, validate } from 'rethread';

const REQUESTS = {
  'openai-chat': { model: 'gpt-5', messages: [{ role: 'user', content: 'Hi' }], temperature: 0 },
  'openai-responses': { model: 'gpt-5', input: 'Hi', instructions: null, previous_response_id: null, temperature: 0 },
  anthropic: { model: 'claude-x', max_tokens: 9, messages: [{ role: 'user', content: 'Hi' }], temperature: 0 },
  gemini: { model: 'gemini-x', contents: 'Hi', config: { temperature: 0 } },
  mistral: { model: 'mistral-x', messages: [{ role: 'user', content: 'Hi' }], temperature: 0 },
};
const LISTS = { 'openai-responses': 'input', gemini: 'contents' };
const listOf = (dialect) => LISTS[dialect] ?? 'messages';
const parse = (body) => JSON.parse(new TextDecoder().decode(body));

const withSession = async (work) => {
  const store = await open({ store: 'memory' });
  await work(await store.session('s'));
  await store.close();
};

test('r57 requests of the SDKs are appended completely', async () => {
  for (const [dialect, request] of Object.entries(REQUESTS)) {
    await withSession(async (session) => {
      await session.append(request, dialect);
      const { items } = await session.messages();
      assert.deepEqual(
        items.map(({ role, parts }) => [role, parts]),
        [['user', [{ type: 'text', text: 'Hi' }]]],
        dialect,
      );
    });
  }
});

test('r55 requests of the SDKs are accepted as `params` without the members that the session writes', async () => {
  for (const [dialect, request] of Object.entries(REQUESTS)) {
    await withSession(async (session) => {
      const { [listOf(dialect)]: _, ...params } = request;
      const { body } = await session.render({ dialect, params, input: 'And now?' });
      const rendered = parse(body);
      assert.equal(JSON.stringify(rendered).includes('And now?'), true);
      assert.equal(rendered[listOf(dialect)].length, 1, dialect);
      assert.equal((rendered.generationConfig ?? rendered).temperature, 0, dialect);
      for (const key of ['config', 'instructions', 'previous_response_id'])
        assert.equal(key in rendered, false, `${dialect} ${key}`);
      assert.deepEqual(
        validate(body, dialect).filter(({ severity }) => severity === 'error'),
        [],
      );
      // Messages in `params` would be lost beside the session's.
      await assert.rejects(
        session.render({ dialect, params: request, input: 'And now?' }),
        { code: 'config_invalid', message: /is written by the session/ },
        dialect,
      );
    });
  }
});

test('r57 every form of contents and config of `@google/genai` is read without loss', async () => {
  const config = {
    systemInstruction: ['Be', { text: 'brief.' }],
    temperature: 0,
    topK: 4,
    tools: [{ functionDeclarations: [{ name: 'f', parametersJsonSchema: { type: 'object' } }] }],
    httpOptions: { headers: { 'x-goog-api-key': 'secret' } },
  };
  for (const contents of [
    'Hi',
    ['Hi'],
    { text: 'Hi' },
    [{ text: 'Hi' }],
    { role: 'user', parts: [{ text: 'Hi' }] },
    [{ role: 'user', parts: [{ text: 'Hi' }] }],
  ]) {
    const request = { model: 'gemini-x', contents, config };
    await withSession(async (session) => {
      await session.append(request, 'gemini');
      const { items } = await session.messages();
      assert.deepEqual(
        items.map(({ role, parts }) => [role, parts.map(({ text }) => text)]),
        [
          ['system', ['Be', 'brief.']],
          ['user', ['Hi']],
        ],
        JSON.stringify(contents),
      );
    });
    const { body } = convert(request, 'gemini', 'openai-chat');
    assert.deepEqual(
      body.messages.map(({ role }) => role),
      ['system', 'user'],
      JSON.stringify(contents),
    );
    assert.deepEqual([body.temperature, body.tools[0].function.name], [0, 'f']);
    assert.equal(JSON.stringify(body).includes('secret'), false);
  }
  await withSession(async (session) => {
    const { systemInstruction: _, ...settings } = config;
    const rendered = parse(
      (await session.render({ dialect: 'gemini', params: { model: 'gemini-x', config: settings }, input: 'Hi' })).body,
    );
    assert.deepEqual(Object.keys(rendered).toSorted(), ['contents', 'generationConfig', 'tools']);
    assert.deepEqual(rendered.generationConfig, { temperature: 0, topK: 4 });
    await assert.rejects(session.render({ dialect: 'gemini', params: { config }, input: 'Hi' }), {
      code: 'config_invalid',
      message: /instructions/,
    });
  });
});
