// r58: `drive` and a store that does not take what a run stores, for a while or for good.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { open } from 'rethread';
import { drive } from 'rethread/host';
import { keyValueService } from './key-value-service.mjs';
import { outageOf } from './scenarios/outages.mjs';

/** A key-value store that is away while `world.isAway`, and its world. A "silent" one answers nothing after its first
 *  failure. */
function unreliable() {
  const service = keyValueService();
  const world = { isAway: false, failures: 0 };
  const guarded =
    (call) =>
    async (...args) => {
      if (world.isAway === 'silent' && world.failures > 0) return new Promise(() => {});
      if (world.isAway) {
        world.failures += 1;
        throw new Error('the service is away');
      }
      return call(...args);
    };
  const store = Object.fromEntries(Object.entries(service).map(([name, call]) => [name, guarded(call)]));
  return { world, openStore: () => open({ store, leaseMs: 1000 }) };
}

test('r58 drive repeats the save of a result, of an answer and of the turn until the store takes it', {
  timeout: 60_000,
}, async () => {
  for (const at of ['result', 'answer', 'turn']) {
    const { world, openStore } = unreliable();
    const begin = (isAway) => {
      world.isAway = isAway;
    };
    const { result, events, ran, session } = await outageOf(
      { open: openStore, drive },
      { at, begin: () => begin(true), end: () => begin(false), lastsMs: 700 },
    );
    assert.deepEqual(
      [result.status, ran, (await session.messages()).items.length],
      ['finished', 1, 3],
      `${at} ${JSON.stringify(result.error)}`,
    );
    assert.ok(
      events.some(({ type, error }) => type === 'save_failed' && /away/.test(error.message)),
      at,
    );
  }
});

test('r58 a run whose saves fail for saveTimeoutMs ends failed with the reason, frees its session and is resumed', {
  timeout: 60_000,
}, async () => {
  for (const at of ['result', 'answer', 'turn']) {
    for (const away of [true, 'silent']) {
      const { world, openStore } = unreliable();
      const outage = {
        at,
        begin: () => {
          world.isAway = away;
        },
        end: () => {},
        lastsMs: 0,
        saveTimeoutMs: 400,
      };
      const { result, ran, run, request } = await outageOf({ open: openStore, drive }, outage);
      assert.deepEqual([result.status, result.saved, ran], ['failed', false, at === 'answer' ? 0 : 1], `${at} ${away}`);
      assert.match(result.error.message, /away.*resume/);
      assert.equal(run.status, 'failed');
      // Its snapshot has what could not be stored.
      const snapshot = run.snapshot();
      assert.ok(snapshot.length > 0);
      world.isAway = false;
      await new Promise((resolve) => {
        setTimeout(resolve, 1100);
      });
      const again = await (await openStore()).session('s');
      const finished = await drive(await again.resume(snapshot, request.request), { fetch: request.fetch }).result;
      assert.equal(finished.status, 'finished', `${at} ${JSON.stringify(finished.error)}`);
      assert.equal(request.ran(), 1, `${at}: the tool ran once`);
    }
  }
});

test('r58 an abort ends a run whose saves fail at once', { timeout: 20_000 }, async () => {
  const { world, openStore } = unreliable();
  const stop = new AbortController();
  const outage = {
    at: 'result',
    begin: () => {
      world.isAway = true;
      setTimeout(() => stop.abort(), 300);
    },
    end: () => {},
    lastsMs: 0,
    signal: stop.signal,
  };
  const { result } = await outageOf({ open: openStore, drive }, outage);
  assert.equal(result.status, 'cancelled');
});

test('r58 saveTimeoutMs is a number', async () => {
  const { openStore } = unreliable();
  const provider = { dialect: 'openai-chat', url: 'https://model.example/v1', params: { model: 'm' } };
  const run = await (await (await openStore()).session('s')).run({ input: 'Go', provider });
  for (const saveTimeoutMs of ['5', -1, NaN])
    assert.throws(() => drive(run, { saveTimeoutMs }), { code: 'config_invalid' });
  run[Symbol.dispose]();
});
