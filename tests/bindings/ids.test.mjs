// An application's id source that repeats itself: after a reload it counts from the start again, in two tabs it counts
// alike. What is stored must not depend on it.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { open } from 'rethread';
import { drive } from 'rethread/host';
import { laneOf } from '../browser/page.mjs';
import { startStandIn } from '../stand-in/server.mjs';

let standIn;
before(async () => {
  standIn = await startStandIn();
});
after(() => standIn.close());

const says = (text) => ({ messages: [{ role: 'user', content: text }] });
const texts = async (session) =>
  (await session.messages({ limit: 1000 })).items.map(({ parts }) =>
    parts.map(({ text, name }) => text ?? name).join(),
  );

/** Sources of ids that say again what they said. */
const sources = {
  'one id for everything': () => () => 'same',
  'three ids in turn': () => {
    let n = 0;
    return () => `id-${(n += 1) % 3}`;
  },
};

for (const [name, source] of Object.entries(sources)) {
  describe(`r47 newId gives ${name}`, () => {
    test('every append is stored', async () => {
      const client = await open({ store: 'memory', newId: source() });
      const session = await client.session('s');
      const ids = [];
      for (let at = 0; at < 20; at += 1)
        ids.push(...(await session.append(says(`text ${at}`), 'openai-chat')).messageIds);
      ids.push(...(await session.append([{ role: 'user', parts: [{ type: 'text', text: 'neutral' }] }])).messageIds);
      await session.update({ title: 'one' });
      await session.update({ title: 'two' });
      assert.deepEqual(await texts(session), [...Array.from({ length: 20 }, (_, at) => `text ${at}`), 'neutral']);
      assert.equal(session.title, 'two');
      assert.deepEqual(
        (await session.messages()).items.map(({ id }) => id),
        ids,
      );
      assert.equal(new Set(ids).size, 21);
      await client.close();
    });

    test('a result is assigned to its call, in every append', async () => {
      const client = await open({ store: 'memory', newId: source() });
      const session = await client.session('s');
      const turn = (n) => ({
        messages: [
          { role: 'user', content: `q${n}` },
          {
            role: 'assistant',
            content: null,
            tool_calls: [{ id: `c${n}`, type: 'function', function: { name: 'f', arguments: '{}' } }],
          },
          { role: 'tool', tool_call_id: `c${n}`, content: `r${n}` },
        ],
      });
      for (const n of [1, 2, 3]) await session.append(turn(n), 'openai-chat');
      const calls = (await session.invocations({ payload: true })).items;
      assert.deepEqual(
        calls.map(({ callId, result }) => [callId, result.content]),
        [
          ['c3', 'r3'],
          ['c2', 'r2'],
          ['c1', 'r1'],
        ],
      );
      assert.equal(new Set(calls.map(({ id }) => id)).size, 3);
      await client.close();
    });

    test('every run has a unique id and stores its turn', async () => {
      const lane = laneOf(standIn.url, `ids-${name}`);
      await lane.script(
        ['s', 's', 't'].flatMap(() => [
          { calls: [{ name: 'get_weather', arguments: { city: 'Oslo' } }] },
          { text: 'Mild.' },
        ]),
      );
      const client = await open({ store: 'memory', newId: source() });
      const provider = { dialect: 'openai-chat', url: lane.chat, params: { model: 'm' }, stream: true };
      const tools = {
        get_weather: {
          parameters: { type: 'object', properties: { city: { type: 'string' } } },
          execute: async () => 'mild',
        },
      };
      const ids = [];
      for (const id of ['s', 's', 't']) {
        const session = await client.session(id);
        const run = await session.run({ input: 'Oslo?', provider, tools });
        ids.push(`${id} ${run.id}`);
        const { status, error, saved, messageIds } = await drive(run).result;
        assert.deepEqual([status, error, saved], ['finished', null, true]);
        const stored = (await session.messages()).items
          .filter(({ runId }) => runId === run.id)
          .map(({ id: own }) => own);
        assert.deepEqual(stored, messageIds);
        assert.equal((await session.pendingRuns()).length, 0);
      }
      assert.equal(new Set(ids).size, 3);
      assert.equal(
        (await (await client.session('s')).messages()).items.filter(({ role }) => role === 'user').length,
        2,
      );
      await client.close();
    });

    test('concurrent runs of two sessions are independent', async () => {
      const lane = laneOf(standIn.url, `two-${name}`);
      await lane.script([
        { text: 'One two.', gate: 'one', atPiece: 1 },
        { text: 'Three four.', gate: 'one', atPiece: 1 },
      ]);
      const client = await open({ store: 'memory', newId: source() });
      const provider = { dialect: 'openai-chat', url: lane.chat, params: { model: 'm' }, stream: true };
      const sessions = [await client.session('a'), await client.session('b')];
      const driven = [];
      for (const session of sessions) driven.push(drive(await session.run({ input: 'Q', provider })));
      for (const session of sessions)
        assert.deepEqual(
          (await session.pendingRuns()).map(({ state }) => state),
          ['live'],
        );
      await lane.openGate('one');
      for (const { result } of driven) assert.equal((await result).status, 'finished');
      for (const session of sessions) assert.equal((await session.messages()).items.length, 2);
      await client.close();
    });
  });
}
