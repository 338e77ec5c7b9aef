// R24 through JavaScript: what a filter of requests sees, what is sent, and what it must not return.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { drive } from 'rethread/host';
import { open } from 'rethread';

const decode = (bytes) => JSON.parse(new TextDecoder().decode(bytes));
const provider = { dialect: 'openai-responses', url: 'https://service.example/v1/responses', params: { model: 'm' } };
const tools = { now: { execute: () => 'noon' } };

/** A service that asks for one tool before each answer, streamed or not. */
function service(stream = false) {
  const bodies = [];
  const answer = async (_url, init) => {
    const body = decode(init.body);
    bodies.push({ body, bytes: new TextDecoder().decode(init.body) });
    const at = bodies.length;
    const isQuestion = body.input.at(-1).role === 'user';
    const output = isQuestion
      ? [
          {
            type: 'function_call',
            id: `fc_${at}`,
            call_id: `call_${at}`,
            name: 'now',
            arguments: '{}',
            status: 'completed',
          },
        ]
      : [
          {
            type: 'message',
            id: `msg_${at}`,
            role: 'assistant',
            status: 'completed',
            content: [{ type: 'output_text', text: 'Noon.', annotations: [] }],
          },
        ];
    const conversation = body.conversation ? { id: body.conversation } : null;
    const response = {
      id: `resp_${at}`,
      object: 'response',
      model: 'm',
      status: 'completed',
      error: null,
      conversation,
      output,
      usage: { input_tokens: 1, output_tokens: 1 },
    };
    if (!stream) return Response.json(response);
    const items = output.map((item, index) => ({ type: 'response.output_item.done', output_index: index, item }));
    const events = [
      { type: 'response.created', response: { ...response, status: 'in_progress', output: [] } },
      ...items,
      { type: 'response.completed', response },
    ];
    return new Response(events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join(''), {
      headers: { 'content-type': 'text/event-stream' },
    });
  };
  return { bodies, fetch: answer };
}

const two = {
  input: [
    { role: 'user', content: 'One' },
    { role: 'user', content: 'Two' },
  ],
};
const words = ({ body }) => body.input.map((item) => item.content ?? item.type);
const withoutOne = (body) => ({ ...body, input: body.input.filter(({ content }) => content !== 'One') });

async function opened(step, owner) {
  const rethread = await open({ store: 'memory' });
  step.after(() => rethread.close());
  return { rethread, session: await rethread.session('s', owner && { owner }) };
}

test('r24 filters of requests through JavaScript', async (t) => {
  for (const stream of [false, true]) {
    await t.test(
      `so_12 so_24 what is held back stays pending, ${stream ? 'streamed' : 'whole'}, over serialize and restore`,
      async (step) => {
        const { rethread, session } = await opened(step, { kind: 'conversation', conversationId: 'conv_1' });
        const { bodies, fetch } = service(stream);
        const request = { provider: { ...provider, stream }, tools };
        const run = await session.run({ ...request, input: two, inputFilter: async (body) => withoutOne(body) });
        assert.equal((await drive(run, { fetch }).result).status, 'finished');
        assert.deepEqual(bodies.map(words), [['Two'], ['function_call_output']]);
        const copy = await rethread.restore(await session.serialize(), { id: 'copy' });
        await drive(await copy.run({ ...request, input: 'Three' }), { fetch }).result;
        assert.deepEqual(words(bodies[2]), ['One', 'Three']);
        const again = await rethread.importSession(await rethread.exportSession('copy'), { id: 'again' });
        await drive(await again.run({ ...request, input: 'Four' }), { fetch }).result;
        assert.deepEqual(words(bodies[4]), ['Four']);
      },
    );
  }

  await t.test('so_23 of two equal messages each is delivered once', async (step) => {
    const { session } = await opened(step, { kind: 'response', auto: true });
    const { bodies, fetch } = service();
    const input = {
      input: [
        { role: 'user', content: 'Same' },
        { role: 'user', content: 'Same' },
      ],
    };
    let calls = 0;
    const inputFilter = (body) => (calls++ === 0 ? { ...body, input: body.input.slice(1) } : body);
    await drive(await session.run({ provider, tools, input, inputFilter }), { fetch }).result;
    await drive(await session.run({ provider, tools, input: 'More' }), { fetch }).result;
    assert.deepEqual(bodies.map(words), [
      ['Same'],
      ['Same', 'function_call_output'],
      ['More'],
      ['function_call_output'],
    ]);
  });

  await t.test('what is left unchanged keeps its bytes, also those that JavaScript changes', async (step) => {
    const { session } = await opened(step);
    const { bodies, fetch } = service();
    const stored =
      '{"input":[{"role":"user","content":"caf\\u00e9 \\/ 1"},{"content":"A","role":"assistant","n":12345678901234567890}]}';
    await session.append(stored, 'openai-responses');
    const plain = await session.run({ provider, input: 'Go', onStop: 'discard' });
    await drive(plain, {
      fetch: (...call) => {
        fetch(...call);
        return Response.json({}, { status: 400 });
      },
    }).result;
    for (const inputFilter of [
      (body) => body,
      (body) => structuredClone(body),
      (body) => Object.fromEntries(Object.entries(body).reverse()),
    ]) {
      await drive(await session.run({ provider, input: 'Go', inputFilter }), {
        fetch: (...call) => {
          fetch(...call);
          return Response.json({}, { status: 400 });
        },
      }).result;
    }
    assert.ok(bodies[0].bytes.includes('12345678901234567890'), bodies[0].bytes);
    assert.equal(bodies.length, 4);
    for (const { bytes } of bodies) assert.equal(bytes, bodies[0].bytes);
  });

  await t.test('a filter that fails, or returns what cannot be sent', async (step) => {
    const { session } = await opened(step);
    const { bodies, fetch } = service();
    const cyclic = {};
    cyclic.self = cyclic;
    const cases = [
      [
        'callback_failed',
        () => {
          throw new Error('oops');
        },
      ],
      [
        'callback_failed',
        async () => {
          throw new Error('oops');
        },
      ],
      ['callback_failed', () => undefined],
      ['callback_failed', () => cyclic],
      ['callback_failed', () => 'body'],
      ['invalid_input', (body) => ({ ...body, input: [] })],
      ['invalid_input', (body) => ({ ...body, input: [...body.input, body.input[0]] })],
      ['invalid_input', (body) => ({ ...body, input: [{ type: 'function_call_output', call_id: 'c', output: 'x' }] })],
      ['invalid_input', (body) => ({ ...body, stream: true })],
      ['state_owner_conflict', (body) => ({ ...body, previous_response_id: 'resp_9' })],
    ];
    for (const [code, inputFilter] of cases) {
      const { status, error } = await drive(await session.run({ provider, input: 'Go', inputFilter }), { fetch })
        .result;
      assert.deepEqual([status, error.code], ['failed', code], inputFilter.toString());
    }
    assert.equal(bodies.length, 0);
    assert.equal((await session.messages()).items.length, 0);
    assert.equal(session.revision, 0);
  });

  await t.test('a resumed run gets its filter again, and a cancelled one does not wait for it', async (step) => {
    const { session } = await opened(step);
    const { bodies, fetch } = service();
    const failed = await session.run({ provider, tools, input: two, inputFilter: () => null });
    assert.equal((await drive(failed, { fetch }).result).error.code, 'callback_failed');
    const resumed = await session.resume(failed.id, { provider, tools, inputFilter: withoutOne });
    assert.equal((await drive(resumed, { fetch }).result).status, 'finished');
    assert.deepEqual(words(bodies[0]), ['Two']);
    assert.equal((await session.messages()).items.length, 4);
    const waiting = await session.run({ provider, input: 'Go', inputFilter: () => new Promise(() => {}) });
    assert.deepEqual(waiting.effects(), []);
    await waiting.cancel();
    assert.equal(waiting.result().status, 'cancelled');
  });
});
