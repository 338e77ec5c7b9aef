// R61: input in a shape that the dialect does not have, in Node: nothing of it is stored, sent or emptied without an
// error.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { convert, open, repair, validate } from 'rethread';

const LISTS = {
  'openai-chat': 'messages',
  mistral: 'messages',
  anthropic: 'messages',
  gemini: 'contents',
  'openai-responses': 'input',
};
const bodyOf = (dialect, items) => ({ model: 'm', [LISTS[dialect]]: items });

const ui = [
  { id: '1', role: 'user', parts: [{ type: 'text', text: 'What is on?' }] },
  {
    id: '2',
    role: 'assistant',
    parts: [
      { type: 'step-start' },
      { type: 'tool-look', toolCallId: 'c1', state: 'output-available', input: {}, output: 'a film' },
      { type: 'text', text: 'A film.' },
    ],
  },
  { id: '3', role: 'user', parts: [{ type: 'text', text: 'And then?' }] },
];
const model = [
  { role: 'user', content: 'What is on?' },
  { role: 'assistant', content: [{ type: 'tool-call', toolCallId: 'c1', toolName: 'look', input: {} }] },
  {
    role: 'tool',
    content: [{ type: 'tool-result', toolCallId: 'c1', toolName: 'look', output: { type: 'text', value: 'a film' } }],
  },
];

/** What `@langchain/core` makes of a message: `toJSON` gives the serialised form, the members are those of the
 *  instance. */
class HumanMessage {
  constructor(content) {
    Object.assign(this, {
      lc_serializable: true,
      lc_kwargs: { content },
      lc_namespace: ['langchain_core', 'messages'],
      content,
      additional_kwargs: {},
      response_metadata: {},
    });
  }

  toJSON() {
    return { lc: 1, type: 'constructor', id: ['langchain_core', 'messages', 'HumanMessage'], kwargs: this.lc_kwargs };
  }
}
const langchain = [
  [new HumanMessage('hi')],
  [{ ...new HumanMessage('hi') }],
  [
    { type: 'human', data: { content: 'hi' } },
    { type: 'ai', data: { content: 'yo' } },
  ],
  [
    { type: 'human', content: 'hi' },
    { type: 'ai', content: '', tool_calls: [{ name: 'look', args: {}, id: 'c1', type: 'tool_call' }] },
  ],
  [
    ['human', 'hi'],
    ['ai', 'yo'],
  ],
];
const agents = [
  { type: 'message', role: 'user', content: 'What is on?' },
  { type: 'function_call', callId: 'c1', name: 'look', status: 'completed', arguments: '{}' },
  {
    type: 'function_call_result',
    callId: 'c1',
    name: 'look',
    status: 'completed',
    output: { type: 'text', text: 'a film' },
  },
];
const foreign = [
  ['AI SDK UIMessages', ui, /UIMessage of the AI SDK/, 'ai-sdk-ui'],
  ['AI SDK ModelMessages', model, /ModelMessage of the AI SDK/, 'ai-sdk-model'],
  ...langchain.map((messages, at) => [`LangChain messages, form ${at + 1}`, messages, /LangChain/, 'langchain']),
  ['OpenAI Agents items', agents, /OpenAI Agents/, 'openai-agents'],
];

describe('r61 messages of another SDK', () => {
  for (const [name, messages, word, shape] of foreign) {
    test(`${name}: append stores nothing and names their format`, async () => {
      const store = await open({ store: 'memory' });
      for (const dialect of Object.keys(LISTS)) {
        const session = await store.session(dialect);
        for (const body of [bodyOf(dialect, messages), messages]) {
          await assert.rejects(session.append(body, dialect), (error) => {
            assert.equal(error.code, 'invalid_input');
            assert.match(error.message, word);
            assert.equal(error.details.shape, shape);
            return true;
          });
        }
        assert.deepEqual((await session.messages()).items, []);
      }
      await store.close();
    });

    test(`${name}: validate reports them, repair and convert throw`, () => {
      for (const dialect of Object.keys(LISTS)) {
        const body = bodyOf(dialect, messages);
        const before = JSON.stringify(body);
        const errors = validate(body, dialect).filter(({ severity }) => severity === 'error');
        assert.ok(
          errors.some(
            ({ code, message, path }) =>
              code === 'unknown_shape' && word.test(message) && path.startsWith(`/${LISTS[dialect]}/`),
          ),
          `${dialect} ${JSON.stringify(errors)}`,
        );
        const refused = { code: 'invalid_input', message: word };
        assert.throws(() => repair(body, dialect), refused);
        assert.throws(() => repair(body, dialect, { danglingCalls: 'omit' }), refused);
        assert.throws(() => convert(body, dialect, 'anthropic'), refused);
        assert.equal(JSON.stringify(body), before);
      }
    });
  }
});

const own = {
  'openai-chat': [
    { role: 'user', content: 'q' },
    {
      role: 'assistant',
      content: null,
      tool_calls: [{ id: 'c1', type: 'function', function: { name: 'look', arguments: '{}' } }],
    },
    { role: 'tool', tool_call_id: 'c1', content: 'x' },
  ],
  anthropic: [
    { role: 'user', content: 'q' },
    { role: 'assistant', content: [{ type: 'tool_use', id: 'c1', name: 'look', input: {} }] },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'c1', content: 'x' }] },
  ],
  gemini: [
    { role: 'user', parts: [{ text: 'q' }] },
    { role: 'model', parts: [{ functionCall: { name: 'look', args: {} } }] },
    { role: 'user', parts: [{ functionResponse: { name: 'look', response: { result: 'x' } } }] },
  ],
  'openai-responses': [
    { role: 'user', content: 'q' },
    { type: 'function_call', call_id: 'c1', name: 'look', arguments: '{}' },
    { type: 'function_call_output', call_id: 'c1', output: 'x' },
  ],
};

test('r61 a body of another dialect is recognized, and the error names that dialect', () => {
  for (const [from, items] of Object.entries(own)) {
    for (const named of Object.keys(own).filter((dialect) => dialect !== from)) {
      for (const body of [bodyOf(from, items), bodyOf(named, items), items]) {
        const advice = new RegExp(`name the dialect "${from}", or call convert\\(body, "${from}", "${named}"\\) first`);
        assert.ok(
          validate(body, named).some(({ code, message }) => code === 'unknown_shape' && advice.test(message)),
          `${from} as ${named}`,
        );
        assert.throws(() => repair(body, named), { code: 'invalid_input', message: advice });
      }
      const { body } = convert(bodyOf(from, items), from, named);
      assert.deepEqual(
        validate(body, named).filter(({ severity }) => severity === 'error'),
        [],
        'what was said to do works',
      );
    }
  }
});

test('r61 append stores a broken sequence of known items, and all or nothing of other items', async () => {
  const store = await open({ store: 'memory' });
  const session = await store.session('s');
  const [question, call, result] = own['openai-chat'];
  await session.append({ messages: [result, question, call] }, 'openai-chat');
  const { items } = await session.messages();
  assert.equal(items.length, 2);
  for (const item of [{ foo: 1 }, { role: 'alien', content: 'x' }, 7, null, { content: 'no role' }]) {
    await assert.rejects(session.append({ messages: [question, item] }, 'openai-chat'), {
      code: 'invalid_input',
      message: /^messages\[1\] /,
    });
  }
  await assert.rejects(session.append(bodyOf('gemini', own.gemini), 'openai-chat'), {
    code: 'invalid_input',
    message: /name the dialect "gemini"/,
  });
  assert.deepEqual((await session.messages()).items, items);
  await store.close();
});

test('r61 no result is synthesized for a call whose id occurs elsewhere in the body', () => {
  const [question, call] = own['openai-chat'];
  for (const spelling of ['callId', 'call_id', 'toolCallId', 'tool_use_id', 'id']) {
    const body = { messages: [question, call, { kind: 'outcome', [spelling]: 'c1', text: 'done' }, question] };
    assert.throws(
      () => repair(body, 'openai-chat'),
      { code: 'invalid_input', message: /c1|OpenAI Agents|TanStack/ },
      spelling,
    );
    assert.ok(
      validate(body, 'openai-chat').some(
        ({ code, callId, path }) => code === 'unknown_shape' && callId === 'c1' && path === `/messages/2/${spelling}`,
      ),
      spelling,
    );
  }
  const { body, report } = repair({ messages: [question, call, question] }, 'openai-chat');
  assert.equal(body.messages[2].tool_call_id, 'c1');
  assert.equal(report[0].action, 'synthesized');
});

test('r61 an unknown block type is kept with a warning, one of another format is an error', () => {
  const body = (block) => ({
    model: 'm',
    max_tokens: 9,
    messages: [
      ...own.anthropic,
      { role: 'assistant', content: [{ type: 'text', text: 'x' }, block] },
      { role: 'user', content: 'p' },
    ],
  });
  const shapes = (block) => validate(body(block), 'anthropic').filter(({ code }) => code === 'unknown_shape');
  for (const type of ['nonsense', 'some_new_block']) {
    assert.deepEqual(
      shapes({ type, value: 1 }).map(({ severity, path }) => [severity, path]),
      [['warning', '/messages/3/content/1']],
    );
    assert.deepEqual(repair(body({ type, value: 1 }), 'anthropic').body, body({ type, value: 1 }));
  }
  for (const type of ['tool-call', 'dynamic-tool', 'toolUse']) {
    assert.deepEqual(
      shapes({ type, toolCallId: 'c9' }).map(({ severity }) => severity),
      ['error'],
      type,
    );
    const { body: left } = repair(body({ type, toolCallId: 'c9' }), 'anthropic');
    assert.deepEqual(
      validate(left, 'anthropic').filter(({ severity }) => severity === 'error'),
      [],
    );
    assert.equal(left.messages.length, 5);
  }
});

test('r61 text and bytes are rejected in the same way as objects', () => {
  const text = JSON.stringify({ messages: ui });
  for (const body of [text, new TextEncoder().encode(text)])
    assert.throws(() => repair(body, 'openai-chat'), { code: 'invalid_input', message: /UIMessage/ });
});
