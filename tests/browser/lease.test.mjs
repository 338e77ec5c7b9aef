// Browsers without Web Locks: the lease in the session's head says that the owner of a run may be alive.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { openWorld } from './page.mjs';

const LEASE_MS = 30_000;

let world;
before(async () => {
  world = await openWorld();
});
after(() => world?.close());

/** A tab without Web Locks, whose clock is `ahead` milliseconds fast, with the session `s` open. */
async function tab(context, { ahead = 0 } = {}) {
  const page = await world.page(context);
  await page.evaluate(async (ahead) => {
    const client = await rethread.open({ name: 'lease', now: () => Date.now() + ahead });
    globalThis.session = await client.session('s');
    globalThis.request = (url) => ({
      provider: { dialect: 'openai-chat', url, params: { model: 'm' }, stream: true },
      tools: {},
    });
    globalThis.resumed = async (id, url) =>
      session.resume(id, request(url)).then(
        (run) => ({ run }),
        ({ code, details }) => ({ code, details }),
      );
  }, ahead);
  assert.equal(await page.evaluate(() => navigator.locks), undefined, 'there are no Web Locks');
  return page;
}

describe('without Web Locks', () => {
  test('r18 a live run is busy in another tab; after its lease expired it is resumed, and the former holder writes nothing', async () => {
    const context = await world.context();
    await context.addInitScript(() => Object.defineProperty(Navigator.prototype, 'locks', { value: undefined }));
    const lane = world.lane('lease');
    await lane.script([{ text: 'one two three four', gate: 'half', atPiece: 2 }, { text: 'after all' }]);
    const owner = await tab(context);
    const id = await owner.evaluate(async (url) => {
      globalThis.run = await session.run({ ...request(url), input: 'Hello?' });
      globalThis.driven = drive(run);
      return run.id;
    }, lane.chat);
    while (!(await lane.waiting()).length) await new Promise((resolve) => setTimeout(resolve, 10));
    const second = await tab(context);
    const busy = await second.evaluate(
      async ([id, url]) => {
        const { code, details } = await resumed(id, url);
        // The owner may have renewed its lease meanwhile.
        const now = Date.now();
        const [pending] = await session.pendingRuns();
        return { code, left: details.leaseUntil - now, state: pending.state };
      },
      [id, lane.chat],
    );
    assert.deepEqual([busy.code, busy.state], ['busy', 'live']);
    assert.ok(busy.left > 0 && busy.left <= LEASE_MS, `the lease ends in ${busy.left} ms`);

    const later = await tab(context, { ahead: LEASE_MS + 1000 });
    const result = await later.evaluate(
      async ([id, url]) => {
        const { run, code } = await resumed(id, url);
        if (!run) return { code };
        const { status, text } = await drive(run).result;
        return { status, text };
      },
      [id, lane.chat],
    );
    assert.deepEqual(result, { status: 'finished', text: 'after all' });

    await lane.openGate('half');
    const former = await owner.evaluate(async () => {
      const { status, error } = await driven.result;
      await session.refresh();
      const { items } = await session.messages();
      return { status, code: error?.code, texts: items.map(({ parts }) => parts.map(({ text }) => text).join('')) };
    });
    assert.deepEqual(former, { status: 'failed', code: 'conflict', texts: ['Hello?', 'after all'] });
  });
});
