// A run whose answer cannot be stored waits, and `Run.save` tries again.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openWorld } from './page.mjs';

let world;
before(async () => {
  world = await openWorld();
});
after(() => world?.close());

test('r58 an answer that failed on a full disk is stored by save()', async () => {
  const page = await world.page();
  const lane = world.lane('save-again');
  await lane.script([{ text: 'paid for' }]);
  const facts = await page.evaluate(async (url) => {
    const { put } = IDBObjectStore.prototype;
    const fill = () => {
      IDBObjectStore.prototype.put = () => {
        throw new DOMException('the disk is full', 'QuotaExceededError');
      };
      IDBObjectStore.prototype.add = IDBObjectStore.prototype.put;
    };
    const { add } = IDBObjectStore.prototype;
    const free = () => Object.assign(IDBObjectStore.prototype, { put, add });
    const client = await rethread.open({ name: 'save-again' });
    const session = await client.session('s');
    const run = await session.run({
      input: 'Hello?',
      provider: { dialect: 'openai-chat', url, params: { model: 'm' }, stream: true },
    });
    const events = [];
    const failed = [];
    // The disk fills up while the answer arrives.
    const driven = drive(run, {
      fetch: async (...args) => {
        const response = await fetch(...args);
        fill();
        return response;
      },
    });
    for await (const event of driven) {
      events.push(event.type);
      if (event.type !== 'save_failed') continue;
      failed.push({ code: event.error.code, status: run.status, revision: session.revision });
      if (failed.length === 1) {
        await run.save().catch(() => {}); // still full
      } else {
        free();
        await run.save();
      }
    }
    const { status, saved, text } = await driven.result;
    const other = await rethread.open({ name: 'save-again' });
    const { items } = await (await other.session('s')).messages();
    return {
      failed,
      result: { status, saved, text },
      stored: items.map(({ parts }) => parts.map((part) => part.text).join('')),
      last: events.at(-1),
    };
  }, lane.chat);
  assert.deepEqual(
    facts.failed,
    [1, 2].map(() => ({ code: 'quota_exceeded', status: 'running', revision: 0 })),
  );
  assert.deepEqual(facts.result, { status: 'finished', saved: true, text: 'paid for' });
  assert.deepEqual(facts.stored, ['Hello?', 'paid for']);
  assert.equal(facts.last, 'finished');
  assert.equal((await lane.requests()).length, 1, 'the model was called once');
});

test('r48 r58 drive saves again by itself until the disk has room, and ends the run if that takes too long', async () => {
  const page = await world.page();
  const lane = world.lane('saves-again');
  await lane.script([{ text: 'paid for' }, { text: 'never stored' }]);
  const facts = await page.evaluate(async (url) => {
    const { put, add } = IDBObjectStore.prototype;
    const fill = () => {
      IDBObjectStore.prototype.put = () => {
        throw new DOMException('the disk is full', 'QuotaExceededError');
      };
      IDBObjectStore.prototype.add = IDBObjectStore.prototype.put;
    };
    const free = () => Object.assign(IDBObjectStore.prototype, { put, add });
    const client = await rethread.open({ name: 'saves-again' });
    const session = await client.session('s');
    const ask = async (lastsMs, options) => {
      const run = await session.run({
        input: 'Hello?',
        provider: { dialect: 'openai-chat', url, params: { model: 'm' }, stream: true },
      });
      const { status, saved, error } = await drive(run, {
        ...options,
        fetch: async (...args) => {
          const response = await fetch(...args);
          fill();
          setTimeout(free, lastsMs);
          return response;
        },
      }).result;
      return { status, saved, code: error?.code ?? null };
    };
    const survived = await ask(700, {});
    const lost = await ask(60_000, { saveTimeoutMs: 500 });
    free();
    return {
      survived,
      lost,
      pending: (await session.pendingRuns()).map(({ state }) => state),
      items: (await session.messages()).items.length,
    };
  }, lane.chat);
  assert.deepEqual(facts, {
    survived: { status: 'finished', saved: true, code: null },
    lost: { status: 'failed', saved: false, code: 'quota_exceeded' },
    pending: ['interrupted'],
    items: 2,
  });
});
