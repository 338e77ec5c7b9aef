// Wrong calls, in Node.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import * as rethread from 'rethread';
import { drive } from 'rethread/host';
import { laneOf } from '../browser/page.mjs';
import { startStandIn } from '../stand-in/server.mjs';
import * as input from './scenarios/input.mjs';

const kit = { rethread, drive };
let standIn;
before(async () => {
  standIn = await startStandIn();
});
after(() => standIn.close());

const envOf = (name, dialect = 'openai-chat') => {
  const { base, chat, messages } = laneOf(standIn.url, name);
  return { store: 'memory', name, dialect, lane: { base, chat, messages } };
};

test('every invalid call fails with a code and a message, and changes nothing', async () => {
  const { facts, same, listed } = await input.misuse(kit, envOf('misuse'));
  assert.deepEqual(
    facts
      .filter(({ right }) => !right)
      .map(({ what, want, code, message, name, value }) => ({ what, want, code, message, name, value })),
    [],
  );
  assert.equal(same, true);
  assert.deepEqual(listed, ['s']);
});

for (const dialect of ['openai-chat', 'anthropic']) {
  test(`invalid outcomes of effects, over ${dialect}`, async () => {
    const facts = await input.protocol(kit, envOf(`protocol-${dialect}`, dialect));
    assert.deepEqual(facts.codes, {
      'unknown effect': 'unknown_effect',
      'an id that is none': 'invalid_input',
      'no answer': 'invalid_input',
      'a type that is none': 'invalid_input',
      'no status': 'invalid_input',
      'a tool result for a model': 'wrong_state',
      'bytes before the start': 'wrong_state',
      'the end before the start': 'wrong_state',
      'text for bytes': 'invalid_input',
      'nothing to save': 'wrong_state',
      'started twice': 'wrong_state',
      'whole after the start': 'wrong_state',
      'late bytes': null,
      'a late end': null,
      'a response for a tool': 'wrong_state',
      'a tool started twice': 'wrong_state',
      'a result twice': null,
      'after the end': null,
    });
    assert.equal(facts.sameEffect, true);
    assert.deepEqual(facts.tools, [
      ['run_tool', 'get_weather', 1],
      ['run_tool', 'get_weather', 1],
    ]);
    assert.deepEqual(
      [facts.busy, facts.deleting, facts.status, facts.after, facts.refused],
      ['busy', 'busy', 'finished', 'finished', 0],
    );
    assert.deepEqual(facts.rows, [
      ['ok', { n: 1 }],
      ['error', 'Error: broke'],
    ]);
  });
}

test('methods of a disposed object reject with closed, and pending work continues', async () => {
  const client = await rethread.open({ store: 'memory' });
  const session = await client.session('s');
  const writing = session.append({ messages: [{ role: 'user', content: 'x' }] }, 'openai-chat');
  session[Symbol.dispose]();
  await assert.rejects(session.messages(), { code: 'closed' });
  assert.throws(() => session.view(), { code: 'closed' });
  assert.equal((await writing).revision, 1);
  assert.equal((await (await client.session('s')).messages()).items.length, 1);
  const assembler = new rethread.StreamAssembler('openai-chat');
  assembler[Symbol.dispose]();
  assert.throws(() => assembler.finish(), { code: 'closed' });
  await client[Symbol.asyncDispose ?? Symbol.for('Symbol.asyncDispose')]();
  await assert.rejects(client.sessions(), { code: 'closed' });
});

test('appends that are not awaited are stored in order', async () => {
  const warnings = [];
  const client = await rethread.open({ store: 'memory', onWarning: ({ code }) => warnings.push(code) });
  const session = await client.session('s');
  const other = await client.session('s');
  const body = { messages: [{ role: 'user', content: 'm0' }] };
  const writes = [session.append(body, 'openai-chat')];
  body.messages[0].content = 'changed afterwards';
  writes.push(
    session.append(
      {
        messages: [
          {
            role: 'assistant',
            content: null,
            tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }],
          },
        ],
      },
      'openai-chat',
    ),
  );
  writes.push(other.append({ messages: [{ role: 'tool', tool_call_id: 'c', content: 'r' }] }, 'openai-chat'));
  writes.push(assert.rejects(session.append('nonsense', 'openai-chat'), { code: 'invalid_input' }));
  writes.push(
    session.update({ title: 'T' }),
    session.append({ messages: [{ role: 'user', content: 'last' }] }, 'openai-chat', { expectedRevision: 4 }),
  );
  await Promise.all(writes);
  assert.deepEqual(
    (await session.messages()).items.map(({ role, parts }) => [role, parts[0].text ?? parts[0].type]),
    [
      ['user', 'm0'],
      ['assistant', 'tool_call'],
      ['user', 'last'],
    ],
  );
  assert.equal((await session.invocations()).items[0].status, 'ok');
  // A session's own rows, whatever the query names.
  assert.equal(
    (await session.invocations({ session: 'other' })).items.length,
    (await session.invocations()).items.length,
  );
  assert.deepEqual(warnings, []);
});
