// examples/agents on SQLite and on PostgreSQL, killed around the submission of a tool's result.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { exampleEnvironment } from './example-environment.mjs';
import { until } from './polling.mjs';

const environment = exampleEnvironment();

/** An agent with a service of its own. */
function agent(chat, store) {
  const base = `${environment.services.env.MODEL_URL.replace('/v1/chat/completions', '')}/lane/${chat}`;
  const variables = { ...store, API_URL: `${base}/v1`, CHAT: chat, LEASE_MS: '300' };
  const control = async (path_, body) =>
    (await fetch(`${base}/control/${path_}`, body && { method: 'POST', body: JSON.stringify(body) })).json();
  return {
    control,
    start(...question) {
      const child = environment.start(['agents/agent.js', ...question], variables);
      let printed = '';
      for (const stream of [child.stdout, child.stderr])
        stream.on('data', (text) => {
          printed += text;
        });
      const exited = once(child, 'exit');
      return {
        kill: async () => {
          child.kill('SIGKILL');
          await exited;
        },
        end: async () => {
          assert.deepEqual(await exited, [0, null], printed);
          return printed;
        },
      };
    },
    async conversations() {
      return Object.values(await control('conversations')).map((items) =>
        items.map((item) => (item.type === 'message' ? 'assistant' : (item.type ?? item.role))),
      );
    },
    async refusals() {
      return (await control('requests'))
        .filter(({ ended }) => ended === 'refused')
        .map(({ error }) => error.error.message);
    },
  };
}

const call = { calls: [{ name: 'get_weather', arguments: { city: 'Oslo' } }] };
const TURN = ['user', 'function_call', 'function_call_output', 'assistant'];

for (const [name, env] of Object.entries(environment.stores)) {
  test(`r23 r28 so_26 the agent on ${name} is killed between a result and its submission, and sends nothing twice`, async () => {
    const chat = `unsent-${name}`;
    const { control, start, conversations, refusals } = agent(chat, env(chat));
    environment.services.calls.weather = 0;
    await control('script', { steps: [call, { text: 'Sunny.' }, { text: 'You are welcome.' }], delayMs: 0 });
    await control('hold', { phase: 'model', ordinal: 2 });
    const first = start('Weather in Oslo?');
    await until('the submission', async () => (await control('waiting')).some(({ kind }) => kind === 'model'));
    await first.kill();
    await control('release', {});
    assert.deepEqual(await conversations(), [TURN.slice(0, 2)], 'the service has not the result');
    await control('script', { steps: [{ text: 'Sunny.' }, { text: 'You are welcome.' }], delayMs: 0 });
    assert.match(await start('Thanks!').end(), /Sunny\.[^]*You are welcome\./);
    assert.deepEqual(await conversations(), [[...TURN, 'user', 'assistant']]);
    assert.deepEqual([await refusals(), environment.services.calls.weather], [[], 1]);
  });
}

test('r23 r27 the agent goes on in a new conversation if the service has the result and its answer was lost', async () => {
  const { control, start, conversations, refusals } = agent('lost', environment.stores.SQLite('lost'));
  environment.services.calls.weather = 0;
  await control('script', { steps: [call, { text: 'Lost.', lost: 'answer' }], delayMs: 0 });
  assert.match(await start('Weather in Oslo?').end(), /failed: replay_unsafe/);
  await control('script', { steps: [{ text: 'Sunny.' }], delayMs: 0 });
  assert.match(await start('And?').end(), /Sunny\./);
  assert.deepEqual(await conversations(), [
    TURN,
    ['user', 'function_call', 'function_call_output', 'user', 'assistant'],
  ]);
  assert.deepEqual([await refusals(), environment.services.calls.weather], [[], 1]);
});

test('r23 r27 a question that was asked before is not taken for one that the service has', async () => {
  const { control, start, conversations, refusals } = agent('again', environment.stores.SQLite('again'));
  await control('script', { steps: [{ text: 'Sunny.' }, { lost: 'request' }], delayMs: 0 });
  assert.match(await start('Weather?').end(), /Sunny\./);
  assert.match(await start('Weather?').end(), /failed: replay_unsafe/);
  await control('script', { steps: [{ text: 'Rainy now.' }], delayMs: 0 });
  assert.match(await start().end(), /Rainy now\./);
  assert.deepEqual([await conversations(), await refusals()], [[['user', 'assistant', 'user', 'assistant']], []]);
});

test('r23 r27 a call whose id an older call had continues in a new conversation, and nothing is sent twice', async () => {
  const { control, start, conversations, refusals } = agent('reused', environment.stores.SQLite('reused'));
  const sameCall = { calls: [{ ...call.calls[0], id: 'call_1' }] };
  await control('script', {
    steps: [sameCall, { text: 'Sunny.' }, sameCall, { text: 'Lost.', lost: 'answer' }],
    delayMs: 0,
  });
  assert.match(await start('Weather?').end(), /Sunny\./);
  assert.match(await start('And now?').end(), /failed: replay_unsafe/);
  await control('script', { steps: [{ text: 'Rainy now.' }], delayMs: 0 });
  assert.match(await start('Well?').end(), /Rainy now\./);
  assert.deepEqual(await conversations(), [
    [...TURN, ...TURN],
    [...TURN, ...TURN.slice(0, 3), 'user', 'assistant'],
  ]);
  assert.deepEqual(await refusals(), []);
});

test('the example with its tools has at most 150 lines', () => {
  const files = ['agents/agent.js', 'chat/tools.js'].map((file) =>
    readFileSync(path.join(environment.project.folder, file), 'utf8'),
  );
  assert.ok(files.join('').trimEnd().split('\n').length <= 150);
});
