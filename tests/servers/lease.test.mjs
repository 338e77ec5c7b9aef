// r18: a run on a SQL store has a lease. The platform's locks tell nothing about other processes, so they are not asked.

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { open } from 'rethread';
import { sqlite } from 'rethread/sqlite';

test('r18 a run of another process is live until its lease has run out', async () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'rethread-lease-'));
  // As in a Node that has Web Locks: nobody holds one, and nothing may be concluded from that.
  const asked = [];
  const locks = { request: async (name) => { asked.push(name); }, query: async () => { asked.push('query'); return { held: [], pending: [] }; } };
  Object.defineProperty(globalThis.navigator, 'locks', { value: locks, configurable: true });
  try {
    const file = path.join(folder, 'chat.sqlite');
    const provider = { dialect: 'openai-chat', params: { model: 'm' }, url: 'http://localhost/v1/chat/completions' };
    const first = await open({ store: sqlite(file), now: () => 1_000_000 });
    const run = await (await first.session('s')).run({ input: 'q', provider });
    for await (const effect of run.effects()) if (effect.type === 'call_model') break;

    const soon = await open({ store: sqlite(file), now: () => 1_020_000 });
    assert.deepEqual((await soon.pendingRuns()).map(({ id, state }) => [id, state]), [[run.id, 'live']]);
    await assert.rejects((await soon.session('s')).resume(run.id, { provider }), { code: 'busy' });
    const later = await open({ store: sqlite(file), now: () => 1_031_000 });
    assert.deepEqual((await later.pendingRuns()).map(({ id, state }) => [id, state]), [[run.id, 'interrupted']]);
    const resumed = await (await later.session('s')).resume(run.id, { provider });
    assert.equal(resumed.id, run.id);
    assert.deepEqual(asked, []);
    await Promise.all([first, soon, later].map((store) => store.close()));
  } finally {
    delete globalThis.navigator.locks;
    rmSync(folder, { recursive: true, force: true });
  }
});
