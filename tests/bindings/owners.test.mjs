// R22 to R26 through JavaScript: the options, their errors, what is sent and what is stored.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { drive } from 'rethread/host';
import { open } from 'rethread';
import { keyValueService } from './key-value-service.mjs';

const decode = (bytes) => JSON.parse(new TextDecoder().decode(bytes));
const code = (expected) => (error) => error.code === expected;

/** A service with conversations: it stores what it is sent, and asks for one tool before each answer. */
function service() {
  const bodies = [];
  const answer = async (_url, init) => {
    const body = decode(init.body);
    bodies.push(body);
    const id = `resp_${bodies.length}`;
    const isQuestion = body.input.at(-1).role === 'user';
    const output = isQuestion
      ? [
          {
            type: 'function_call',
            id: `fc_${bodies.length}`,
            call_id: `call_${bodies.length}`,
            name: 'now',
            arguments: '{}',
            status: 'completed',
          },
        ]
      : [
          {
            type: 'message',
            id: `msg_${bodies.length}`,
            role: 'assistant',
            status: 'completed',
            content: [{ type: 'output_text', text: 'Noon.', annotations: [] }],
          },
        ];
    const conversation = body.conversation ? { id: body.conversation } : null;
    return Response.json({
      id,
      object: 'response',
      model: 'm',
      status: 'completed',
      error: null,
      conversation,
      output,
      usage: { input_tokens: 1, output_tokens: 1 },
    });
  };
  return { bodies, fetch: answer };
}

const request = (input, more = {}) => ({
  input,
  provider: { dialect: 'openai-responses', url: 'https://service.example/v1/responses', params: { model: 'm' } },
  tools: { now: { execute: () => 'noon' } },
  ...more,
});

async function ask(session, fetch, input) {
  const run = await session.run(request(input));
  return drive(run, { fetch }).result;
}

test('r22 r26 owners through JavaScript', async (t) => {
  await t.test('a conversation gets what is new, and the session keeps all of it', async (step) => {
    const rethread = await open({ store: 'memory' });
    step.after(() => rethread.close());
    const owner = { kind: 'conversation', conversationId: 'conv_1' };
    const session = await rethread.session('s', { owner });
    assert.deepEqual(session.owner, owner);
    const { bodies, fetch } = service();
    const first = await ask(session, fetch, 'One');
    assert.equal(first.conversationId, 'conv_1');
    await ask(session, fetch, 'Two');
    assert.deepEqual(
      bodies.map((body) => body.input.map((item) => item.type ?? item.role)),
      [['user'], ['function_call_output'], ['user'], ['function_call_output']],
    );
    assert.ok(bodies.every((body) => body.conversation === 'conv_1'));
    assert.equal((await session.messages()).items.length, 6);
    // Rendering shows the next request.
    assert.deepEqual(decode((await session.render({ dialect: 'openai-responses', input: 'Three' })).body).input, [
      { role: 'user', content: 'Three' },
    ]);
  });

  await t.test(
    'a new owner is stored with the next append, whatever else is set or written meanwhile',
    async (step) => {
      const store = keyValueService();
      const [here, elsewhere] = await Promise.all([open({ store }), open({ store })]);
      step.after(() => Promise.all([here.close(), elsewhere.close()]));
      const other = await elsewhere.session('s');
      await other.append([{ role: 'user', parts: [{ type: 'text', text: 'One' }] }]);
      const owner = { kind: 'conversation', conversationId: 'conv_1' };
      await here.session('s', { owner });
      const session = await here.session('s', { channel: 'web' });
      await session.update({ title: 'Weather' });
      await here.session('s', { owner: { kind: 'response', auto: true } });
      await here.session('s', { channel: 'app' });
      await other.append([{ role: 'user', parts: [{ type: 'text', text: 'Two' }] }]);
      await session.refresh();
      assert.deepEqual(session.owner, { kind: 'response', auto: true });
      await session.append([{ role: 'user', parts: [{ type: 'text', text: 'Three' }] }]);
      await other.refresh();
      assert.deepEqual(other.owner, { kind: 'response', auto: true });
      const [{ title, channel }] = (await elsewhere.sessions()).items;
      assert.deepEqual([title, channel], ['Weather', 'app']);
    },
  );

  await t.test('a chain is continued where it ended, by a session that is opened again', async (step) => {
    const rethread = await open({ store: 'memory' });
    step.after(() => rethread.close());
    const { bodies, fetch } = service();
    const before = await rethread.session('s', { owner: { kind: 'response', auto: true } });
    await ask(before, fetch, 'One');
    before[Symbol.dispose]();
    const session = await rethread.session('s');
    assert.deepEqual(session.owner, { kind: 'response', auto: true });
    const result = await ask(session, fetch, 'Two');
    assert.deepEqual(
      bodies.map((body) => body.previous_response_id),
      [undefined, 'resp_1', 'resp_2', 'resp_3'],
    );
    assert.equal(result.responseId, 'resp_4');
    assert.equal(result.conversationId, null);
  });

  await t.test('the application holds the conversation', async (step) => {
    const rethread = await open({ store: 'memory' });
    step.after(() => rethread.close());
    const session = await rethread.session('s', { owner: { kind: 'caller' } });
    assert.deepEqual(session.owner, { kind: 'caller' });
    const { bodies, fetch } = service();
    const first = await ask(session, fetch, { input: [{ role: 'user', content: 'One' }] });
    assert.deepEqual(
      first.replay.input.map((item) => item.type ?? item.role),
      ['user', 'function_call', 'function_call_output', 'message'],
    );
    assert.deepEqual(Object.keys(first.replay), ['input']);
    const next = { input: [...first.replay.input, { role: 'user', content: 'Two' }] };
    assert.deepEqual(
      decode((await session.render({ dialect: 'openai-responses', input: next })).body).input,
      next.input,
    );
    const second = await ask(await rethread.session('s'), fetch, next);
    assert.deepEqual(bodies[2].input, next.input);
    assert.deepEqual(second.replay.input.slice(0, 5), next.input);
    assert.equal(second.replay.input.length, 8);
    // Each turn is stored once, and no request contains it.
    assert.equal((await session.messages()).items.length, 6);
    assert.equal((await rethread.invocations({ session: 's' })).items.length, 2);
    assert.equal((await ask(session, fetch, 'Alone')).replay.input.length, 4);
    assert.equal(bodies[4].input.length, 1);
    await assert.rejects(
      session.run(request({ input: [{ role: 'assistant', content: 'Hello' }] })),
      code('invalid_input'),
    );
    await assert.rejects(session.run({ provider: request('').provider }), code('invalid_input'));
    const loader = {
      name: 'p',
      loadMessages: true,
      provide: () => [{ role: 'user', parts: [{ type: 'text', text: 'old' }] }],
    };
    await assert.rejects(session.run(request(next, { providers: [loader] })), code('two_loaders'));
    // A run that waits is resumed from its snapshot on another machine, with the whole input.
    const waiting = await session.run(
      request(next, { tools: { now: { execute: () => 'noon', needsApproval: true } } }),
    );
    assert.deepEqual(
      [(await drive(waiting, { fetch }).result).status, waiting.result().replay],
      ['waiting_approval', null],
    );
    const other = await open({ store: 'memory' });
    step.after(() => other.close());
    const elsewhere = await other.session('s', { owner: { kind: 'caller' } });
    const resumed = await elsewhere.resume(waiting.snapshot(), { ...request(), input: undefined });
    const result = await drive(resumed, { fetch, onApproval: () => true }).result;
    assert.deepEqual(result.replay.input.slice(0, 5), next.input);
    assert.equal(result.replay.input.length, 8);
    assert.equal((await ask(await rethread.session('own'), fetch, 'One')).replay, null);
  });

  await t.test('a second owner is refused on fresh, resumed and streamed runs', async (step) => {
    const rethread = await open({ store: 'memory' });
    step.after(() => rethread.close());
    const owners = [
      { kind: 'session' },
      { kind: 'caller' },
      { kind: 'conversation', conversationId: 'conv_1' },
      { kind: 'response', auto: true },
      { kind: 'response', previousResponseId: 'resp_1' },
    ];
    for (const [at, owner] of owners.entries()) {
      const session = await rethread.session(`so_21-${at}`, { owner });
      const stopped = await session.run(request('One'));
      await drive(stopped, { fetch: () => Response.json({}, { status: 400 }) }).result;
      const { revision } = session;
      for (const member of ['previous_response_id', 'conversation']) {
        for (const stream of [false, true]) {
          const provider = { ...request('').provider, stream, params: { model: 'm', [member]: 'other' } };
          await assert.rejects(
            session.run(request('Two', { provider })),
            code('state_owner_conflict'),
            `${owner.kind} ${member}`,
          );
          const body = { input: [{ role: 'user', content: 'Two' }], [member]: 'other' };
          await assert.rejects(
            session.run(request(body)),
            code('state_owner_conflict'),
            `${owner.kind} ${member} of the input`,
          );
          await assert.rejects(
            session.resume(stopped.id, { ...request(), input: undefined, provider }),
            code('state_owner_conflict'),
            `${owner.kind} ${member}`,
          );
        }
      }
      assert.deepEqual([session.revision, (await session.pendingRuns()).length], [revision, 1]);
    }
  });

  await t.test('a second owner is refused', async (step) => {
    const rethread = await open({ store: 'memory' });
    step.after(() => rethread.close());
    const refused = (owner, expected) =>
      assert.rejects(rethread.session('s', { owner }), code(expected), JSON.stringify(owner));
    await refused({ kind: 'session', conversationId: 'conv_1' }, 'state_owner_conflict');
    await refused(
      { kind: 'conversation', conversationId: 'conv_1', previousResponseId: 'resp_1' },
      'state_owner_conflict',
    );
    await refused({ kind: 'response', auto: true, conversationId: 'conv_1' }, 'state_owner_conflict');
    await refused({ kind: 'conversation' }, 'config_invalid');
    await refused({ kind: 'conversation', conversationId: '' }, 'config_invalid');
    await refused({ kind: 'response' }, 'config_invalid');
    await refused({ kind: 'caller', conversationId: 'conv_1' }, 'state_owner_conflict');
    await refused({ kind: 'caller', previousResponseId: 'resp_1' }, 'state_owner_conflict');
    await refused({ kind: 'nobody' }, 'config_invalid');
    await refused({ kind: 'session', conversation: 'x' }, 'config_invalid');
    const session = await rethread.session('s', { owner: { kind: 'conversation', conversationId: 'conv_1' } });
    await refused({ kind: 'conversation', conversationId: 'conv_2' }, 'state_owner_conflict');
    const second = {
      dialect: 'openai-responses',
      url: 'https://x.example',
      params: { model: 'm', previous_response_id: 'resp_1' },
    };
    await assert.rejects(session.run({ input: 'One', provider: second }), code('state_owner_conflict'));
    const chat = { dialect: 'openai-chat', url: 'https://x.example', params: { model: 'm' } };
    await assert.rejects(session.run({ input: 'One', provider: chat }), code('config_invalid'));
    await assert.rejects(session.render({ dialect: 'anthropic', input: 'One' }), code('config_invalid'));
  });

  await t.test(
    'a conversation that nobody asked for throws if an owner was chosen, and warns otherwise',
    async (step) => {
      const rethread = await open({ store: 'memory' });
      step.after(() => rethread.close());
      const { fetch } = service();
      const unasked = async (url, init) => {
        const response = await (await fetch(url, init)).json();
        return Response.json({ ...response, conversation: { id: 'conv_9' } });
      };
      for (const [id, options] of [
        ['a', { owner: { kind: 'session' } }],
        ['b', { onConflict: 'throw' }],
      ]) {
        const thrown = await ask(await rethread.session(id, options), unasked, 'One');
        assert.equal(thrown.error.code, 'conversation_conflict');
        assert.deepEqual(thrown.error.details, { conversationId: 'conv_9' });
        assert.equal((await (await rethread.session(id)).messages()).items.length, 0);
      }
      // Whoever configured nothing is warned.
      for (const [id, options] of [
        ['d', undefined],
        ['e', { onConflict: 'warn', owner: { kind: 'session' } }],
      ]) {
        const warned = await ask(await rethread.session(id, options), unasked, 'One');
        assert.equal(warned.status, 'finished');
        assert.ok(warned.report.some((finding) => finding.code === 'conversation_conflict'));
      }
      const session = await rethread.session('c', { owner: { kind: 'session' }, onConflict: 'clear' });
      assert.equal((await ask(session, unasked, 'One')).status, 'finished');
      assert.deepEqual(session.owner, { kind: 'conversation', conversationId: 'conv_9' });
      assert.equal((await session.messages()).items.length, 3);
    },
  );
});
