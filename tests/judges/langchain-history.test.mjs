// r53: `rethread/langchain` with LangChain itself.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ChatAnthropic } from '@langchain/anthropic';
import { InMemoryChatMessageHistory } from '@langchain/core/chat_history';
import {
  AIMessage,
  AIMessageChunk,
  ChatMessage,
  FunctionMessage,
  HumanMessage,
  RemoveMessage,
  SystemMessage,
  ToolMessage,
  trimMessages,
} from '@langchain/core/messages';
import { ChatPromptTemplate, MessagesPlaceholder } from '@langchain/core/prompts';
import { RunnableLambda, RunnableWithMessageHistory } from '@langchain/core/runnables';
import { ChatOpenAI } from '@langchain/openai';
import { open, validate } from 'rethread';
import { chatMessageHistory } from 'rethread/langchain';

const LONG = 'A long text, which the record of a message need not have a second time.';
const call = (id, args = { city: 'Paris' }) => ({ type: 'tool_call', id, name: 'weather', args });
const asking = (...ids) => new AIMessage({ content: '', tool_calls: ids.map((id) => call(id)) });
const result = (id, content = `result of ${id}`) => new ToolMessage({ content, tool_call_id: id, name: 'weather' });

const MESSAGES = [
  new SystemMessage('Be brief.'),
  new HumanMessage({ content: 'Hi', id: 'h1', name: 'ada', additional_kwargs: { at: 5 } }),
  new HumanMessage({
    content: [
      { type: 'text', text: LONG },
      { type: 'image_url', image_url: { url: `data:image/png;base64,${'iVBORw0K'.repeat(9)}`, detail: 'low' } },
    ],
  }),
  new AIMessage({
    content: [
      { type: 'thinking', thinking: 'Let me see.', signature: 'c2lnbmVk' },
      { type: 'text', text: LONG },
    ],
    id: 'run-1',
    tool_calls: [call('call_1'), call('call_2', {})],
    invalid_tool_calls: [{ type: 'invalid_tool_call', id: 'call_x', name: 'weather', args: '{', error: 'no JSON' }],
    additional_kwargs: { reasoning: { id: 'rs_1', encrypted_content: 'sealed' } },
    response_metadata: { model_name: 'm-1', finish_reason: 'tool_calls' },
    usage_metadata: { input_tokens: 10, output_tokens: 5, total_tokens: 15, input_token_details: { cache_read: 3 } },
  }),
  new ToolMessage({ content: LONG, tool_call_id: 'call_1', name: 'weather', artifact: { raw: [1, 2] }, id: 't1' }),
  new ToolMessage({ content: 'no such city', tool_call_id: 'call_2', status: 'error' }),
  new AIMessage('Sunny.'),
  new ChatMessage({ content: 'A note.', role: 'critic' }),
  new FunctionMessage({ content: '7', name: 'add' }),
];

async function newHistory(options) {
  const store = await open();
  const session = await store.session('chat');
  return { session, history: chatMessageHistory(session, options) };
}

/** The session, of which somebody else is first when it appends for the first time. */
function beaten(session, first) {
  let isFirst = true;
  return new Proxy(session, {
    get(target, name) {
      const member = target[name];
      if (typeof member !== 'function') return member;
      if (name !== 'append') return member.bind(target);
      return async (...args) => {
        if (isFirst) {
          isFirst = false;
          await first();
        }
        return target.append(...args);
      };
    },
  });
}

const dicts = (messages) => JSON.parse(JSON.stringify(messages.map((message) => message.toDict())));
const shown = (messages) =>
  messages.map((message) => message.tool_call_id ?? message.tool_calls?.[0]?.id ?? message.content);

/** A model that answers with the next message. */
function scriptedModel(answers) {
  const requests = [];
  const model = RunnableLambda.from((input) => {
    requests.push(input.toChatMessages());
    return answers.shift();
  });
  return { requests, model };
}

/** A fetch that answers with this body, and keeps what it was sent. */
function answering(reply) {
  const bodies = [];
  const fetch = async (_url, { body }) => {
    bodies.push(JSON.parse(body));
    return new Response(JSON.stringify(reply), { headers: { 'content-type': 'application/json' } });
  };
  return { bodies, fetch };
}

function openAI(message) {
  const { bodies, fetch } = answering({ id: 'c', model: 'm', choices: [{ index: 0, message }], usage: {} });
  return { bodies, model: new ChatOpenAI({ model: 'm', apiKey: 'k', maxRetries: 0, configuration: { fetch } }) };
}

/** An answer of OpenAI with calls that have these arguments. */
function askOpenAI(...texts) {
  const calls = texts.map((text, at) => ({
    id: `call_${at}`,
    type: 'function',
    function: { name: 'weather', arguments: text },
  }));
  return openAI({ role: 'assistant', content: null, tool_calls: calls }).model.invoke('q');
}

async function sentToOpenAI(messages) {
  const { bodies, model } = openAI({ role: 'assistant', content: 'ok' });
  await model.invoke(messages);
  return { dialect: 'openai-chat', body: bodies[0] };
}

async function sentToAnthropic(messages) {
  const content = [{ type: 'text', text: 'ok' }];
  const reply = {
    id: 'a',
    type: 'message',
    role: 'assistant',
    model: 'm',
    content,
    usage: {},
    stop_reason: 'end_turn',
  };
  const { bodies, fetch } = answering(reply);
  const options = { model: 'm', apiKey: 'k', maxTokens: 9, maxRetries: 0, clientOptions: { fetch } };
  await new ChatAnthropic(options).invoke(messages);
  return { dialect: 'anthropic', body: bodies[0] };
}

describe('r53 a chat message history of LangChain', () => {
  test('r53 messages come back with calls, results, ids and metadata, added at once or one by one', async () => {
    const { history, session } = await newHistory();
    await history.addMessages(MESSAGES);
    const back = await history.getMessages();
    assert.deepEqual(dicts(back), dicts(MESSAGES));
    assert.deepEqual(back.map(Object.getPrototypeOf), MESSAGES.map(Object.getPrototypeOf));
    assert.equal(session.revision, 1, 'one append');
    const stored = JSON.stringify((await session.messages()).items);
    assert.equal(stored.split(LONG).length - 1, 3, 'a long text is stored once: two texts and a result');
    await history.clear();
    assert.deepEqual(await history.getMessages(), []);
    for (const message of MESSAGES) await history.addMessage(message);
    assert.deepEqual(dicts(await history.getMessages()), dicts(MESSAGES));
  });

  test('r53 what LangChain sets after a message was made, and chunks of a stream, are kept', async () => {
    const { history } = await newHistory();
    const late = new AIMessage('Hi');
    late.usage_metadata = { input_tokens: 1, output_tokens: 2, total_tokens: 3 };
    const chunk = new AIMessageChunk({
      content: 'Looking',
      tool_call_chunks: [{ type: 'tool_call_chunk', index: 0, id: 'call_1', name: 'weather', args: '{"city":"Rome"}' }],
    });
    await history.addMessages([late, chunk, result('call_1')]);
    const [first, second] = await history.getMessages();
    assert.deepEqual(first.usage_metadata, late.usage_metadata);
    assert.deepEqual(second.tool_calls, [call('call_1', { city: 'Rome' })]);
    assert.ok(AIMessage.isInstance(second));
    await assert.rejects(history.addMessage(new RemoveMessage({ id: 'a' })), { code: 'invalid_input' });
    const before = await history.getMessages();
    for (const method of ['addMessages', 'addMissing'])
      for (const one of [new HumanMessage('Hi'), 'Hi', undefined, {}])
        await assert.rejects(history[method](one), {
          code: 'invalid_input',
          message: `\`${method}\` takes a list of messages: \`[message]\`; for one there is \`addMessage\``,
        });
    for (const one of [{ role: 'user', content: 'Hi' }, ['human', 'Hi'], 'Hi', null])
      await assert.rejects(history.addMessages([new HumanMessage('a'), one]), {
        code: 'invalid_input',
        message:
          /^a history keeps messages of LangChain, such as `new HumanMessage\("Hi"\)`.*coerceMessageLikeToMessage/,
      });
    assert.deepEqual(await history.getMessages(), before, 'nothing is stored');
    assert.equal((await history.getMessages()).length, 3);
  });

  test('r53 no request bricks: each call has its result beside it, and no result is without a call', async () => {
    const { history, session } = await newHistory();
    await history.addMessages([
      result('nothing'),
      new HumanMessage('q'),
      asking('a', 'b'),
      result('b'),
      new HumanMessage('q 2'),
    ]);
    await history.addMessages([result('a'), asking('c'), new HumanMessage('q 3'), asking('d')]);
    const messages = await history.getMessages();
    assert.deepEqual(shown(messages), ['q', 'a', 'a', 'b', 'q 2', 'c', 'c', 'q 3', 'd', 'd']);
    for (const at of [6, 9]) assert.match(messages[at].content, /^Interrupted: /);
    assert.equal(messages[9].status, 'error');
    const kept = await chatMessageHistory(session, { openCalls: 'keep' }).getMessages();
    assert.deepEqual(shown(kept), shown(messages).slice(0, -1));
    await history.addMessages([result('d'), new AIMessage('Done.')]);
    assert.deepEqual(shown(await history.getMessages()).slice(-3), ['d', 'd', 'Done.']);
    assert.equal((await history.getMessages()).at(-2).content, 'result of d');

    const { body } = await session.render({ dialect: 'openai-chat', params: { model: 'm' } });
    assert.deepEqual(
      validate(body, 'openai-chat').filter(({ severity }) => severity === 'error'),
      [],
    );
  });

  const CUT = '{"city":';
  const UNPARSED = {
    'an answer of OpenAI': { answer: () => askOpenAI(CUT), result: 'call_0' },
    'an answer of OpenAI, beside one that was': { answer: () => askOpenAI(CUT, '{"city":"Rome"}'), result: 'call_1' },
    'an answer of Anthropic': {
      answer: () => new AIMessage({ content: [{ type: 'tool_use', id: 'call_0', name: 'weather', input: CUT }] }),
      result: 'call_0',
      ask: sentToAnthropic,
    },
  };
  for (const [name, { answer, result: expected, ask = sentToOpenAI }] of Object.entries(UNPARSED)) {
    test(`r53 a call that was not parsed has a result if it is sent: ${name}`, async () => {
      for (const added of [[], [result('call_0', 'no JSON')]]) {
        const { history, session } = await newHistory();
        await history.addMessages([new HumanMessage('q'), await answer()]);
        await history.addMessages([...added, new HumanMessage('q 2')]);
        const messages = await history.getMessages();
        const results = messages.filter(({ type }) => type === 'tool');
        assert.deepEqual(
          results.map(({ tool_call_id: id }) => id),
          [expected],
        );
        assert.equal(results[0].content === 'no JSON', expected === 'call_0' && added.length > 0);
        const { dialect, body } = await ask(messages);
        assert.deepEqual(
          validate(body, dialect).filter(({ severity }) => severity === 'error'),
          [],
        );
        const { report } = await session.render({ dialect, params: { model: 'm', max_tokens: 9 } });
        assert.ok(!report.some(({ severity }) => severity === 'error'));
      }
    });
  }

  test('r53 an id that a later answer uses again has the result of its own answer', async () => {
    const { history } = await newHistory();
    const messages = [asking('a'), result('a', 'first'), new AIMessage('ok'), asking('a'), result('a', 'second')];
    await history.addMessages(messages);
    assert.deepEqual(dicts(await history.getMessages()), dicts(messages));
  });

  test("r53 a result that is added with a later answer of its id is not that one's", async () => {
    const [first, second] = [asking('call_0'), asking('call_0')];
    const added = [
      [
        [new HumanMessage('q'), first],
        [result('call_0', 'one'), second],
      ],
      [[new HumanMessage('q'), first, result('call_0', 'one'), second]],
      [[new HumanMessage('q'), first], [result('call_0', 'one')], [second]],
    ];
    for (const lists of added) {
      const { session, history } = await newHistory({ openCalls: 'keep' });
      for (const list of lists) await history.addMessages(list);
      const texts = async () =>
        (await history.getMessages()).map((message) => `${message.getType()} ${message.content}`);
      assert.deepEqual(await texts(), ['human q', 'ai ', 'tool one', 'ai ']);
      const { items } = await session.invocations({ payload: true });
      assert.deepEqual(items.map(({ status, result: told }) => [status, told?.content]).sort(), [
        ['ok', 'one'],
        ['pending', undefined],
      ]);
      await history.addMessage(result('call_0', 'two'));
      assert.deepEqual((await texts()).slice(2), ['tool one', 'ai ', 'tool two']);
    }
  });

  test('r53 what other parts of rethread have stored are messages', async () => {
    const { history, session } = await newHistory();
    const messages = [
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'Hi' },
      {
        role: 'assistant',
        content: null,
        tool_calls: [{ id: 'a', type: 'function', function: { name: 'weather', arguments: '{"city":"Paris"}' } }],
      },
      { role: 'tool', tool_call_id: 'a', content: 'sunny' },
      { role: 'assistant', content: 'Sunny.' },
    ];
    await session.append({ messages }, 'openai-chat');
    await history.addUserMessage('Thanks');
    await history.addAIMessage('Welcome.');
    const back = await history.getMessages();
    assert.deepEqual(
      back.map(({ type, content }) => `${type}: ${content}`),
      ['system: Be brief.', 'human: Hi', 'ai: ', 'tool: sunny', 'ai: Sunny.', 'human: Thanks', 'ai: Welcome.'],
    );
    assert.deepEqual(back[2].tool_calls, [call('a')]);
  });

  test('r53 RunnableWithMessageHistory stores turns with tools, as with its own history', async () => {
    const outcomes = [];
    for (const kind of ['memory', 'rethread']) {
      const history =
        kind === 'memory' ? new InMemoryChatMessageHistory() : (await newHistory({ openCalls: 'keep' })).history;
      const { requests, model } = scriptedModel([asking('a'), new AIMessage('Sunny.'), new AIMessage('Bye.')]);
      const prompt = ChatPromptTemplate.fromMessages([
        new MessagesPlaceholder('past'),
        new MessagesPlaceholder('input'),
      ]);
      const chain = new RunnableWithMessageHistory({
        runnable: prompt.pipe(model),
        getMessageHistory: () => history,
        inputMessagesKey: 'input',
        historyMessagesKey: 'past',
      });
      const config = { configurable: { sessionId: 'chat' } };
      for (const input of [new HumanMessage('q'), result('a'), new HumanMessage('Bye')]) {
        await chain.invoke({ input: [input] }, config);
      }
      outcomes.push({ stored: dicts(await history.getMessages()), requests: requests.map(dicts) });
    }
    assert.deepEqual(outcomes[1], outcomes[0]);
    assert.equal(outcomes[1].stored.length, 6);
  });

  test('r53 trimMessages takes what the history gives', async () => {
    const { history } = await newHistory();
    await history.addMessages(MESSAGES);
    const trimmed = await trimMessages(await history.getMessages(), {
      maxTokens: 3,
      strategy: 'last',
      tokenCounter: (messages) => messages.length,
    });
    assert.deepEqual(shown(trimmed), shown(MESSAGES.slice(-3)));
  });

  test('r53 only results make an append read the history', async () => {
    const { session, history } = await newHistory();
    const read = [];
    const watched = new Proxy(session, {
      get(target, name) {
        read.push(name);
        return typeof target[name] === 'function' ? target[name].bind(target) : target[name];
      },
    });
    const appending = chatMessageHistory(watched);
    await appending.addMessages([new HumanMessage('q'), asking('a')]);
    assert.ok(!read.includes('messages'));
    await appending.addMessages([result('a'), new AIMessage('ok')]);
    assert.ok(read.includes('messages'));
    assert.deepEqual(shown(await history.getMessages()), ['q', 'a', 'a', 'ok']);
  });

  test('r53 addMissing stores each message of a state once, also after an older call that has no result', async () => {
    const { session, history } = await newHistory();
    const state = [new HumanMessage({ content: 'mail?', id: 'h1' }), new AIMessage({ ...asking('c1'), id: 'a1' })];
    await history.addMissing(state);
    state.push(new HumanMessage({ content: 'hello?', id: 'h2' }));
    await history.addMissing(state);
    state.push(new AIMessage({ content: 'Here I am.', id: 'a2' }));
    for (const _ of [1, 2]) await history.addMissing([...state, ...state]);
    const texts = (await history.getMessages()).map(({ type, content }) => [type, content]);
    assert.deepEqual([texts.length, texts.at(-1)], [5, ['ai', 'Here I am.']]);
    // A result that comes late, and one whose call is not in the state.
    state.push(new ToolMessage({ content: 'sent', tool_call_id: 'c1', id: 't1' }));
    state.push(new ToolMessage({ content: 'what?', tool_call_id: 'unknown', id: 't2' }));
    await history.addMissing(state);
    const { revision } = session;
    await history.addMissing(state);
    assert.equal(session.revision, revision);
    assert.equal((await history.getMessages())[2].content, 'sent');
    await assert.rejects(history.addMissing([new HumanMessage('no id')]), { code: 'invalid_input' });
    // Another process was first with the same state.
    const own = chatMessageHistory(await (await open()).session('chat'));
    await own.addMissing(state);
    const { session: other } = await newHistory();
    const first = chatMessageHistory(other);
    await chatMessageHistory(beaten(other, () => first.addMissing(state))).addMissing(state);
    assert.deepEqual(
      (await first.getMessages()).map(({ id }) => id),
      (await own.getMessages()).map(({ id }) => id),
    );
  });

  test('r53 two writers lose nothing', async () => {
    const { session } = await newHistory();
    const [one, two] = [chatMessageHistory(session), chatMessageHistory(session)];
    const add = (history, name) => history.addMessages([asking(name), result(name)]);
    await Promise.all([add(one, 'a'), add(two, 'b'), add(one, 'c')]);
    assert.deepEqual(shown(await one.getMessages()).sort(), ['a', 'a', 'b', 'b', 'c', 'c']);
    await one.addMessage(asking('d'));
    const late = chatMessageHistory(beaten(session, () => one.addMessage(result('d', 'the first'))));
    await late.addMessage(result('d', 'the second'));
    assert.equal((await two.getMessages()).at(-1).content, 'the first');
  });

  test('r53 what is no session, and an unknown option, is refused', async () => {
    const { session, history } = await newHistory();
    assert.deepEqual(history.lc_namespace, ['rethread', 'langchain']);
    assert.throws(() => chatMessageHistory({}), { code: 'config_invalid' });
    assert.throws(() => chatMessageHistory(session, { openCalls: 'drop' }), { code: 'config_invalid' });
    assert.throws(() => chatMessageHistory(session, { sessionId: 'a' }), { code: 'config_invalid' });
  });
});

test('r45 r53 a call whose arguments are no object is sent as one, and is stored as the model wrote it', async () => {
  const written = ['{"city":', '["Paris"]', '"Paris"', '', '{"city":"Paris"}'];
  const { session, history } = await newHistory();
  const parts = written.map((text, at) => ({
    type: 'tool',
    callId: `c${at}`,
    name: 'weather',
    arguments: text,
    result: 'r',
  }));
  await session.append([
    { role: 'user', parts: [{ type: 'text', text: 'q' }] },
    { role: 'assistant', parts },
  ]);
  await history.addMessages([new HumanMessage('q 2')]);
  const messages = await history.getMessages();
  const objects = [{ invalid_json: '{"city":' }, { value: ['Paris'] }, { value: 'Paris' }, {}, { city: 'Paris' }];
  assert.deepEqual(
    messages[1].tool_calls.map(({ args }) => args),
    objects,
  );
  for (const { dialect, body } of [await sentToOpenAI(messages), await sentToAnthropic(messages)]) {
    assert.deepEqual(
      validate(body, dialect).filter(({ severity }) => severity === 'error'),
      [],
      dialect,
    );
  }
  const { items } = await session.invocations({ payload: true });
  assert.deepEqual(items.map(({ argumentsText }) => argumentsText).toReversed(), written);
});
