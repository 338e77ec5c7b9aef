// r18, r48: a session that is deleted or lost while it is open here, and what its run and its owner's lease show.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { open } from 'rethread';
import { drive } from 'rethread/host';
import { keyValueService } from './key-value-service.mjs';
import { until } from './scenarios/kit.mjs';

const provider = { dialect: 'openai-chat', url: 'https://model.example/v1', params: { model: 'm' } };
const message = (text) => [{ role: 'user', parts: [{ type: 'text', text }] }];

/** A key-value store whose users hear of each other's changes, and which can be emptied. */
function sharedStore() {
  let service = keyValueService();
  const listeners = new Set();
  const changes = {
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    publish: (notice) => listeners.forEach((listener) => queueMicrotask(() => listener(notice))),
  };
  const members = Object.keys(service).map((name) => [name, (...args) => service[name](...args)]);
  return {
    store: { ...Object.fromEntries(members), changes },
    empty: () => {
      service = keyValueService();
    },
  };
}

test('r18 a chat that is deleted elsewhere ends its run at once, and aborts its request', {
  timeout: 20_000,
}, async () => {
  const { store } = sharedStore();
  const here = await open({ store, leaseMs: 2_000 });
  const elsewhere = await open({ store, leaseMs: 2_000 });
  const session = await here.session('s');
  session.subscribe(() => {});
  let aborted = false;
  const fetch = (_, { signal }) =>
    new Promise((_resolve, reject) => {
      signal.addEventListener('abort', () => {
        aborted = true;
        reject(signal.reason);
      });
    });
  const run = await session.run({ input: 'Go', provider });
  const driven = drive(run, { fetch });
  await until(async () => run.effects().length);
  // The owner's lease is in the list.
  const [pending] = await elsewhere.pendingRuns();
  assert.equal(pending.state, 'live');
  assert.ok(
    pending.leaseUntil > Date.now() - 2_000 && pending.leaseUntil <= Date.now() + 2_000,
    `${pending.leaseUntil}`,
  );
  await elsewhere.deleteSession('s');
  const { status, error } = await driven.result;
  assert.deepEqual([status, error.code, aborted], ['failed', 'not_found', true]);
});

test('r18 leaseUntil is absent for a run that nobody owns', async () => {
  const { store } = sharedStore();
  const session = await (await open({ store })).session('s');
  const run = await session.run({ input: 'Go', provider });
  run[Symbol.dispose]();
  await until(async () => (await session.pendingRuns())[0].state === 'interrupted');
  assert.equal((await session.pendingRuns())[0].leaseUntil, undefined);
});

test('r48 a store that was emptied under an open session is `evicted`, with what to do, and not deleted', async () => {
  const { store, empty } = sharedStore();
  const client = await open({ store });
  const [session, other] = [await client.session('s'), await client.session('t')];
  await session.append(message('one'));
  await other.append(message('one'));
  empty();
  for (let attempt = 0; attempt < 2; attempt += 1) {
    await assert.rejects(
      session.append(message('two')),
      (error) => error.code === 'evicted' && /lost.*open the session again/.test(error.message),
    );
  }
  assert.equal((await client.status()).state, 'evicted');
  await other.refresh();
  await assert.rejects(other.append(message('two')), { code: 'evicted' });
  const again = await client.session('s');
  await again.append(message('new'));
  assert.equal((await again.messages()).items.length, 1);
});

test('r48 a session that was deleted is `not_found`, and the state stays "ready"', async () => {
  const { store } = sharedStore();
  const [one, two] = [await open({ store }), await open({ store })];
  const session = await one.session('s');
  await session.append(message('one'));
  await two.deleteSession('s');
  await assert.rejects(session.append(message('two')), { code: 'not_found' });
  assert.equal((await one.status()).state, 'ready');
});
