// r28: a run that began in Node goes on in a page, from its snapshot, and is in the page's database afterwards.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { open } from 'rethread';
import { drive } from 'rethread/host';
import { openWorld } from './page.mjs';

let world;
before(async () => {
  world = await openWorld();
});
after(() => world?.close());

test('r28 from Node to a page: no model call and no tool is repeated', async () => {
  const lane = world.lane('from-node');
  const round = { calls: [{ name: 'f', arguments: {} }] };
  await lane.script([{ text: 'Hi.' }, round, { text: 'Not read.', gate: 'go', atPiece: 1 }]);
  const session = await (await open({ store: 'memory' })).session('s');
  const provider = { dialect: 'openai-chat', url: lane.chat, params: { model: 'm' }, stream: true };
  await drive(await session.run({ input: 'Hello', provider })).result;
  const execute = () => 5;
  const run = await session.run({
    input: 'Go',
    provider,
    tools: { f: { parameters: { type: 'object', properties: {} }, execute } },
  });
  for await (const { type } of drive(run)) if (type === 'text_delta') break;
  const snapshot = [...run.snapshot()];
  run[Symbol.dispose]();
  await lane.openGate('go');
  await lane.script([{ text: 'All done.' }]);

  const page = await world.page();
  const found = await page.evaluate(
    async ([bytes, url]) => {
      let ran = 0;
      const parameters = { type: 'object', properties: {} };
      const request = {
        provider: { dialect: 'openai-chat', url, params: { model: 'm' }, stream: true },
        tools: {
          f: {
            parameters,
            execute: () => {
              ran += 1;
            },
          },
        },
      };
      const client = await rethread.open({ name: 'from-node' });
      const { status, turns, text } = await drive(
        await (await client.session('s')).resume(Uint8Array.from(bytes), request),
      ).result;
      await client.close();
      const { items } = await (await (await rethread.open({ name: 'from-node' })).session('s')).messages();
      return { ran, status, turns, text, roles: items.map(({ role }) => role) };
    },
    [snapshot, lane.chat],
  );
  assert.deepEqual(found, {
    ran: 0,
    status: 'finished',
    turns: 2,
    text: 'All done.',
    roles: ['user', 'assistant', 'user', 'assistant', 'assistant'],
  });
  const bodies = (await lane.requests()).map(({ bodyText }) => JSON.parse(bodyText).messages);
  assert.deepEqual([bodies.length, bodies.at(-1)], [4, bodies.at(-2)]);
  assert.deepEqual(page.complaints, []);
});
