// Loops that the application drives itself, through JavaScript (R19).

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { open } from 'rethread';
import { MemoryLogStore } from '../packaging/projects/store/memory-log-store.js';

const text = async (session) => {
  const { body } = await session.render({ dialect: 'openai-chat', replay: { freshness: Infinity } });
  return JSON.parse(new TextDecoder().decode(body)).messages.map(
    ({ role, content, tool_calls: calls }) => `${role} ${content ?? calls[0].id}`,
  );
};
const user = { role: 'user', content: 'What is 2 + 2?' };
const call = {
  role: 'assistant',
  content: null,
  tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'add', arguments: '{"a": 2}' } }],
};
const result = { role: 'tool', tool_call_id: 'call_1', content: '4' };
const answer = { role: 'assistant', content: 'It is 4.' };
const all = ['user What is 2 + 2?', 'assistant call_1', 'tool 4', 'assistant It is 4.'];

test('r19 checkpoints store what is new in one append each; a repeated one stores nothing', async () => {
  for (const persistence of ['call', 'result']) {
    const warnings = [];
    const client = await open({ store: 'memory', onWarning: ({ code }) => warnings.push(code) });
    const session = await client.session('s', { persistence });
    let changes = 0;
    session.subscribe(() => {
      changes += 1;
    });
    const loop = session.external();
    await loop.checkpoint({ model: 'm', messages: [user, call] }, 'openai-chat');
    assert.deepEqual([session.revision, (await session.invocations()).items[0].status], [1, 'pending']);
    await loop.checkpoint(JSON.stringify({ messages: [user, call, result, answer] }), 'openai-chat');
    await Promise.all(
      [loop, session.external()].map((one) =>
        one.checkpoint(
          new TextEncoder().encode(JSON.stringify({ messages: [user, call, result, answer] })),
          'openai-chat',
        ),
      ),
    );
    await loop.end();
    await loop.end();
    assert.deepEqual([session.revision, changes, warnings], [2, 2, []]);
    assert.deepEqual(await text(session), all);
    assert.equal((await session.invocations()).items[0].status, 'ok');
    await assert.rejects(loop.checkpoint({ messages: [user, call, result, answer, user] }, 'openai-chat'), {
      code: 'wrong_state',
    });
    await client.close();
  }
});

test('r19 mode run stores at the end; the mode of the loop replaces the one of the session', async () => {
  const client = await open({ store: 'memory' });
  const session = await client.session('s', { persistence: 'call' });
  const loop = session.external({ persistence: 'run' });
  await loop.checkpoint({ messages: [user, call] }, 'openai-chat');
  await loop.checkpoint({ messages: [user, call, result, answer] }, 'openai-chat');
  assert.equal(session.revision, 0);
  await loop.end();
  assert.deepEqual([session.revision, await text(session)], [1, all]);
});

test('r19 the four cells of who drives and whether checkpoints are required', async () => {
  for (const [persistence, expected] of [
    ['run', []],
    ['call', ['no_checkpoint']],
    ['result', ['no_checkpoint']],
  ]) {
    const warnings = [];
    const client = await open({ store: 'memory', onWarning: ({ code }) => warnings.push(code) });
    const session = await client.session('s', { persistence });
    await session.external().end();
    assert.deepEqual(warnings, expected, persistence);
    // A run of the same session needs no checkpoint.
    const run = await session.run({
      input: 'x',
      provider: { dialect: 'openai-chat', url: 'https://m.example/v1/chat/completions', params: { model: 'm' } },
    });
    const [{ id }] = run.effects();
    await run.answer(id, {
      type: 'response',
      status: 200,
      body: JSON.stringify({
        choices: [{ index: 0, message: { role: 'assistant', content: 'y' }, finish_reason: 'stop' }],
      }),
    });
    assert.deepEqual([run.result().status, session.revision, warnings], ['finished', 1, expected]);
  }
});

test('r19 bad checkpoints are typed errors, and nothing is stored', async () => {
  const client = await open({ store: 'memory' });
  const session = await client.session('s');
  assert.throws(() => session.external({ persistence: 'always' }), { code: 'config_invalid' });
  assert.throws(() => session.external({ mode: 'call' }), { code: 'config_invalid' });
  for (const persistence of ['call', 'run']) {
    const loop = session.external({ persistence });
    if (persistence === 'call') await loop.checkpoint({ messages: [user, call, result] }, 'openai-chat');
    const rejects = (body, dialect, code = 'invalid_input') => assert.rejects(loop.checkpoint(body, dialect), { code });
    await rejects({ messages: [user] }, 'openai-chat');
    await rejects({ messages: [{ role: 'user', content: 'Other' }, answer] }, 'openai-chat');
    await rejects({ messages: [user, call, result, { ...result, tool_call_id: 'call_9' }] }, 'openai-chat');
    await rejects({ contents: [] }, 'openai-chat');
    await rejects('{"messages":', 'openai-chat');
    await rejects({ messages: [user] }, 'openai', 'config_invalid');
    await rejects({ messages: [user] }, 7);
    await rejects(null, 'openai-chat');
    assert.equal(session.revision, 1);
  }
  await client.close();
  assert.throws(() => session.external(), { code: 'closed' });
});

test('r19 a checkpoint continues a run, and a run continues a checkpoint; another writer comes between', async () => {
  const client = await open({ store: 'memory' });
  const session = await client.session('s', { persistence: 'call' });
  const loop = session.external();
  await loop.checkpoint({ messages: [user, call, result] }, 'openai-chat');
  // Another writer appends; the loop does not know of it, and goes on.
  await session.append(
    {
      messages: [
        { role: 'user', content: 'Hello?' },
        { role: 'assistant', content: 'Yes.' },
      ],
    },
    'openai-chat',
  );
  await loop.checkpoint({ messages: [user, call, result, answer] }, 'openai-chat');
  assert.deepEqual(await text(session), [...all.slice(0, 3), 'user Hello?', 'assistant Yes.', 'assistant It is 4.']);
  // Another loop begins with what `render` gives, in another dialect.
  const { body } = await session.render({ dialect: 'anthropic', params: { max_tokens: 9 } });
  const rendered = JSON.parse(new TextDecoder().decode(body));
  rendered.messages.push({ role: 'user', content: 'And 3 + 3?' }, { role: 'assistant', content: '6' });
  await session.external().checkpoint(rendered, 'anthropic');
  assert.deepEqual((await text(session)).slice(-2), ['user And 3 + 3?', 'assistant 6']);
});

test('r19 two processes that checkpoint one loop store it once, though titles change meanwhile', async () => {
  const store = new MemoryLogStore();
  const [first, second] = [await open({ store }), await open({ store })];
  const [one, two] = [
    await first.session('s', { persistence: 'call' }),
    await second.session('s', { persistence: 'call' }),
  ];
  const loops = [one.external(), two.external()];
  await loops[0].checkpoint({ messages: [user, call] }, 'openai-chat');
  await two.refresh();
  // The revision of the store rises above that of history.
  for (const title of ['a', 'b', 'c']) await two.update({ title });
  const body = { messages: [user, call, result, answer, { role: 'user', content: 'And 3 + 3?' }] };
  await Promise.all(loops.map((loop) => loop.checkpoint(body, 'openai-chat')));
  await one.refresh();
  assert.deepEqual(await text(one), [...all, 'user And 3 + 3?']);
  await first.close();
  await second.close();
});

test('r19 of two loops that race, the second gets a conflict: its conversation does not continue what the first stored', async () => {
  for (const persistence of ['call', 'run']) {
    const session = await (await open({ store: 'memory' })).session('s', { persistence });
    const [one, two] = [session.external(), session.external()];
    await one.checkpoint({ messages: [user, answer] }, 'openai-chat');
    await one.end();
    const late = { messages: [{ role: 'user', content: 'Something else' }, answer] };
    await assert.rejects(
      two.checkpoint(late, 'openai-chat').then(() => two.end()),
      (error) => error.code === 'conflict' && error.details.revision === 1,
    );
    // What does not continue the history that the loop knows is still its own mistake.
    await assert.rejects(session.external().checkpoint(late, 'openai-chat'), { code: 'invalid_input' });
    assert.equal(session.revision, 1);
  }
});

test('r19 a call whose missing result the model answered is "interrupted" in the audit, and takes a late result', async () => {
  const session = await (await open({ store: 'memory' })).session('s', { persistence: 'call' });
  await session.external().checkpoint({ messages: [user, call] }, 'openai-chat');
  const { body } = await session.render({ dialect: 'openai-chat' });
  const { messages } = JSON.parse(new TextDecoder().decode(body));
  const loop = session.external();
  await loop.checkpoint({ messages: [...messages, answer] }, 'openai-chat');
  await loop.end();
  const {
    items: [{ id, status }],
  } = await session.invocations();
  assert.equal(status, 'interrupted');
  await session.answer(id, { type: 'tool_result', content: '4' });
  assert.equal((await session.invocations()).items[0].status, 'ok');
});

test('r19 a loop that was killed is continued: the question is stored before the first call, and open calls are answered', async () => {
  const session = await (await open({ store: 'memory' })).session('s', { persistence: 'call' });
  const killed = session.external();
  await killed.checkpoint({ messages: [user] }, 'openai-chat');
  await killed.checkpoint({ messages: [user, call] }, 'openai-chat');
  // The next process.
  const { items } = await session.invocations({ status: 'pending' });
  for (const { id } of items)
    await session.answer(id, {
      type: 'tool_result',
      content: 'interrupted: it may or may not have run',
      isError: true,
    });
  const { body } = await session.render({ dialect: 'openai-chat', replay: { freshness: Infinity } });
  const { messages } = JSON.parse(new TextDecoder().decode(body));
  const loop = session.external();
  await loop.checkpoint({ messages: [...messages, answer] }, 'openai-chat');
  await loop.end();
  assert.deepEqual((await session.invocations({ status: 'pending' })).items, []);
  assert.equal((await session.messages()).items.length, 3);
});
