// r29: an approval that another process gives, three days later, while the process that asked is alive or was killed.

import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { open } from 'rethread';
import { drive } from 'rethread/host';
import { sqlite } from 'rethread/sqlite';
import { laneOf } from '../browser/page.mjs';
import { startStandIn } from '../stand-in/server.mjs';
import { endsWithThisProcess } from './child-processes.mjs';

const THREE_DAYS = 3 * 24 * 60 * 60 * 1000;
const folder = mkdtempSync(path.join(tmpdir(), 'rethread-approvals-'));
let standIn;
before(async () => {
  standIn = await startStandIn();
});
after(async () => {
  await standIn.close();
  rmSync(folder, { recursive: true, force: true });
});

for (const killed of [true, false]) {
  test(`r29 an approval in another process, three days later; the one that asked ${killed ? 'was killed' : 'is alive'}`, {
    timeout: 60_000,
  }, async () => {
    const lane = laneOf(standIn.url, `servers-${killed}`);
    await lane.script([{ calls: [{ name: 'pay', arguments: { to: 'Ada', amount: 20 } }] }, { text: 'Paid.' }]);
    const place = path.join(folder, `${killed}.sqlite`);
    const program = fileURLToPath(new URL('approval-waiter.mjs', import.meta.url));
    const child = endsWithThisProcess(fork(program, [place, lane.chat]));
    const [asked] = await once(child, 'message');
    assert.equal(asked.status, 'waiting_approval');
    if (killed) {
      child.kill('SIGKILL');
      await once(child, 'exit');
    }

    const store = await open({ store: sqlite(place), now: () => Date.now() + THREE_DAYS });
    const [pending] = await store.pendingRuns();
    assert.deepEqual(
      [pending.id, pending.state, pending.openCalls],
      [asked.id, 'waiting_approval', asked.calls.map((call) => ({ ...call, state: 'awaiting_approval' }))],
    );
    const session = await store.session('s');
    let ran = 0;
    const tools = {
      pay: {
        parameters: { type: 'object', properties: {} },
        needsApproval: true,
        execute: ({ to, amount }) => {
          ran += 1;
          return `${amount} to ${to}`;
        },
      },
    };
    const run = await session.resume(pending.id, { provider: pending.provider, tools });
    await run.approve(asked.calls[0].callId);
    const result = await drive(run).result;
    assert.deepEqual(
      [result.status, result.text, result.turns, ran],
      ['finished', 'Paid.', 2, 1],
      JSON.stringify(result.error),
    );
    const [, request] = await lane.requests();
    assert.equal(JSON.parse(request.bodyText).messages.at(-1).content, '20 to Ada');
    if (!killed) {
      child.send('approve');
      const [late] = await once(child, 'message');
      assert.deepEqual(late, { error: 'not_found', status: 'failed' });
      child.kill();
    }
    assert.equal((await lane.requests()).length, 2);
    await store.close();
  });
}
