// Whole tool loops in the dialects whose answers go back as they came: streamed and not, each with its own end.

import assert from 'node:assert/strict';
import test, { after, before } from 'node:test';
import { startStandIn } from './server.mjs';

let standIn;
before(async () => {
  standIn = await startStandIn();
});
after(() => standIn.close());

const city = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
const NAMES = ['get_weather', 'get_time', 'book_table'];
const json = (response) => response.json();
/** The data of every event of a stream. */
const events = async (response) =>
  (await response.text())
    .split(/\r?\n/)
    .filter((line) => line.startsWith('data: {'))
    .map((line) => JSON.parse(line.slice(6)));

/** By dialect: the address, the body, an answer's calls and text, and what goes into the next body. */
const WIRES = {
  'openai-responses': {
    path: () => 'v1/responses',
    body: (input, stream) => ({
      model: 'gpt-x',
      input,
      stream,
      tools: NAMES.map((name) => ({ type: 'function', name, parameters: city })),
    }),
    question: (content) => ({ role: 'user', content }),
    whole: async (response) => (await json(response)).output,
    streamed: async (response) => {
      const all = await events(response);
      assert.deepEqual(
        all.map((event) => event.sequence_number),
        all.map((_, i) => i),
      );
      const last = all.at(-1);
      assert.equal(last.type, 'response.completed');
      const text = all
        .filter((event) => event.type === 'response.output_text.delta')
        .map((event) => event.delta)
        .join('');
      assert.equal(
        text,
        last.response.output
          .flatMap((item) => item.content ?? [])
          .map((part) => part.text)
          .join(''),
      );
      for (const item of last.response.output.filter((one) => one.type === 'function_call')) {
        assert.equal(
          all
            .filter((event) => event.item_id === item.id && /arguments\.delta$/.test(event.type))
            .map((event) => event.delta)
            .join(''),
          item.arguments,
        );
      }
      return last.response.output;
    },
    calls: (output) =>
      output
        .filter((item) => item.type === 'function_call')
        .map((item) => ({ id: item.call_id, name: item.name, input: JSON.parse(item.arguments) })),
    text: (output) =>
      output
        .filter((item) => item.type === 'message')
        .map((item) => item.content[0].text)
        .join(''),
    next: (output, results) => [
      ...output,
      ...results.map(({ id, text }) => ({ type: 'function_call_output', call_id: id, output: text })),
    ],
  },
  gemini: {
    path: (stream) =>
      `v1beta/models/gemini-3-pro-preview:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
    body: (contents) => ({
      contents,
      tools: [{ functionDeclarations: NAMES.map((name) => ({ name, parametersJsonSchema: city })) }],
    }),
    question: (text) => ({ role: 'user', parts: [{ text }] }),
    whole: async (response) => (await json(response)).candidates[0].content,
    streamed: async (response) => {
      const chunks = await events(response);
      assert.equal(chunks.at(-1).candidates[0].finishReason, 'STOP');
      return { role: 'model', parts: chunks.flatMap((chunk) => chunk.candidates[0].content.parts) };
    },
    calls: ({ parts }) =>
      parts
        .filter((part) => part.functionCall)
        .map(({ functionCall: { id, name, args } }) => ({ id, name, input: args })),
    text: ({ parts }) => parts.map((part) => part.text ?? '').join(''),
    next: (content, results) => [
      content,
      {
        role: 'user',
        parts: results.map(({ id, name, text }) => ({ functionResponse: { id, name, response: { result: text } } })),
      },
    ],
  },
  mistral: {
    path: () => 'mistral/v1/chat/completions',
    body: (messages, stream) => ({
      model: 'mistral-small-latest',
      messages,
      stream,
      tools: NAMES.map((name) => ({ type: 'function', function: { name, parameters: city } })),
    }),
    question: (content) => ({ role: 'user', content }),
    whole: async (response) => {
      const [{ message, finish_reason: reason }] = (await json(response)).choices;
      assert.equal(reason, message.tool_calls ? 'tool_calls' : 'stop');
      return message;
    },
    streamed: async (response) => {
      const choices = (await events(response)).map((chunk) => chunk.choices[0]);
      const calls = choices.flatMap(({ delta }) => delta.tool_calls ?? []);
      assert.equal(choices.at(-1).finish_reason, calls.length ? 'tool_calls' : 'stop');
      return {
        role: 'assistant',
        content: choices.map(({ delta }) => delta.content ?? '').join(''),
        ...(calls.length && { tool_calls: calls }),
      };
    },
    calls: ({ tool_calls: calls }) =>
      (calls ?? []).map((call) => ({
        id: call.id,
        name: call.function.name,
        input: JSON.parse(call.function.arguments),
      })),
    text: ({ content }) => content,
    next: (message, results) => [
      message,
      ...results.map(({ id, name, text }) => ({ role: 'tool', tool_call_id: id, name, content: text })),
    ],
  },
};

for (const [dialect, wire] of Object.entries(WIRES)) {
  for (const stream of [true, false]) {
    test(`${dialect}: two calls, one call, then the answer that quotes the results, ${stream ? 'streamed' : 'whole'}`, async () => {
      const base = `${standIn.url}/lane/${dialect}-${stream}`;
      await fetch(`${base}/control/options`, { method: 'POST', body: '{"delayMs":0,"chunkBytes":11}' });
      const send = (list) =>
        fetch(`${base}/${wire.path(stream)}`, { method: 'POST', body: JSON.stringify(wire.body(list, stream)) });
      const list = [wire.question('Weather in Oslo, please')];
      for (const count of [2, 1]) {
        const answer = await (stream ? wire.streamed : wire.whole)(await send(list));
        const calls = wire.calls(answer);
        assert.deepEqual(
          calls.map(({ input }) => input),
          Array(count).fill({ city: 'Oslo' }),
        );
        const results = calls.map((call) => ({ ...call, text: `RESULT-${call.name}` }));
        // Without the last result, it is refused.
        const refused = await send([...list, ...wire.next(answer, results.slice(1))]);
        assert.equal(refused.status, 400);
        await refused.text();
        list.push(...wire.next(answer, results));
      }
      const last = await (stream ? wire.streamed : wire.whole)(await send(list));
      assert.deepEqual(wire.calls(last), []);
      for (const name of NAMES) assert.match(wire.text(last), new RegExp(`RESULT-${name}`));
      const requests = await json(await fetch(`${base}/control/requests`));
      assert.deepEqual(
        requests.map((one) => [one.dialect, one.stream, one.status]),
        [200, 400, 200, 400, 200].map((status) => [dialect, stream, status]),
      );
    });
  }
}

test('openai-responses: continues from a stored response, with reasoning', async () => {
  const base = `${standIn.url}/lane/held`;
  const { body, calls } = WIRES['openai-responses'];
  const send = (input, more) =>
    fetch(`${base}/v1/responses`, {
      method: 'POST',
      body: JSON.stringify({
        ...body(input),
        include: ['reasoning.encrypted_content'],
        reasoning: { effort: 'low' },
        ...more,
      }),
    });
  const first = await json(await send('Weather in Oslo?'));
  assert.equal(first.output[0].type, 'reasoning');
  assert.ok(first.output[0].encrypted_content);
  const outputs = calls(first.output).map(({ id }) => ({ type: 'function_call_output', call_id: id, output: 'sunny' }));
  const open = await send(outputs.slice(1), { previous_response_id: first.id });
  assert.match((await json(open)).error.message, /^No tool output found for function call /);
  assert.equal((await send(outputs, { previous_response_id: first.id })).status, 200);
});

test('openai-responses: keeps a conversation, and takes nothing twice', async () => {
  const base = `${standIn.url}/lane/conversation`;
  const { body, calls } = WIRES['openai-responses'];
  const post = (path, content) => fetch(`${base}/${path}`, { method: 'POST', body: JSON.stringify(content) });
  const { id: conversation } = await json(await post('v1/conversations', {}));
  const send = (input, more) => post('v1/responses', { ...body(input), conversation, ...more });
  const first = await json(await send('Weather in Oslo?'));
  assert.deepEqual(first.conversation, { id: conversation });
  const outputs = calls(first.output).map(({ id }) => ({ type: 'function_call_output', call_id: id, output: 'sunny' }));
  const refusals = [
    [outputs.slice(1), {}, 400, /^No tool output found for function call /],
    [
      [first.output.find(({ type }) => type === 'function_call'), ...outputs],
      {},
      400,
      /^Duplicate item found with id fc_/,
    ],
    [outputs, { previous_response_id: first.id }, 400, /^Mutually exclusive parameters/],
    [outputs, { conversation: 'conv_0' }, 404, /^Conversation with id 'conv_0' not found\.$/],
  ];
  for (const [input, more, status, message] of refusals) {
    const refused = await send(input, more);
    assert.equal(refused.status, status);
    assert.match((await json(refused)).error.message, message);
  }
  const second = await json(await send(outputs));
  assert.match((await json(await send(outputs))).error.message, /^No tool call found for function call output/);
  const stored = (await json(await fetch(`${base}/control/conversations`)))[conversation];
  assert.deepEqual(
    stored.map(({ type, role }) => type ?? role),
    [
      'user',
      ...first.output.map(({ type }) => type),
      ...outputs.map(({ type }) => type),
      ...second.output.map(({ type }) => type),
    ],
  );
});

test('gemini: without alt=sse a stream is one JSON array, refusals too', async () => {
  const base = `${standIn.url}/lane/array/v1/projects/p/locations/l/publishers/google/models/gemini-2.5-flash:streamGenerateContent`;
  const { body, question } = WIRES.gemini;
  const send = async (...contents) =>
    (await fetch(base, { method: 'POST', body: JSON.stringify(body(contents)) })).json();
  const chunks = await send(question('Weather in Oslo?'));
  const parts = chunks.flatMap((chunk) => chunk.candidates[0].content.parts);
  assert.deepEqual(
    parts.filter((part) => part.functionCall).map((part) => Object.keys(part)),
    [['functionCall'], ['functionCall']],
    'no signatures before Gemini 3',
  );
  assert.equal((await send({ role: 'model', parts }))[0].error.status, 'INVALID_ARGUMENT');
});

test('anthropic at Vertex: the address names the model', async () => {
  const base = `${standIn.url}/lane/vertex/v1/projects/p/locations/l/publishers/anthropic/models/claude-x:rawPredict`;
  const send = (more) =>
    fetch(base, {
      method: 'POST',
      body: JSON.stringify({ max_tokens: 9, messages: [{ role: 'user', content: 'q' }], ...more }),
    });
  assert.equal((await send({ anthropic_version: 'vertex-2023-10-16' })).status, 200);
  assert.match(
    (await json(await send({ model: 'claude-x', anthropic_version: 'vertex-2023-10-16' }))).error.message,
    /^model: Extra inputs are not permitted$/,
  );
});
