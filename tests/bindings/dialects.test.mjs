// Runs over real HTTP in each of the five dialects, with a model that rejects what its provider would reject.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import * as rethread from 'rethread';
import { drive } from 'rethread/host';
import { laneOf } from '../browser/page.mjs';
import { startStandIn } from '../stand-in/server.mjs';
import { ALL_DIALECTS, providerAt, switching, twoTurns, withoutLastResult } from './scenarios/dialects.mjs';
import * as judge from './scenarios/judge-dialects.mjs';

const kit = { rethread, drive };
let standIn;
before(async () => {
  standIn = await startStandIn();
});
after(() => standIn.close());

for (const dialect of ALL_DIALECTS) {
  test(`r16 r17 r20 two turns over ${dialect}: streamed and whole, in each mode, store the same and send the same`, {
    timeout: 60_000,
  }, async () => {
    const lane = laneOf(standIn.url, dialect);
    const env = { store: 'memory', base: lane.base };
    const outcomes = [];
    for (const persistence of ['run', 'call', 'result']) {
      for (const stream of [true, false]) {
        // A lane that was reset answers with the same ids, so that requests can be compared byte for byte.
        await lane.reset();
        await lane.script(judge.scriptOf(dialect), { then: 'brain', chunkBytes: 13 });
        const facts = await twoTurns(kit, env, { dialect, stream, persistence });
        outcomes.push({ facts, requests: await lane.requests(), persistence, stream });
      }
    }
    judge.twoTurns(dialect, outcomes);
  });
}

test('r42 the dialect changes in mid-session: every request is accepted and has every earlier result', {
  timeout: 60_000,
}, async () => {
  for (const [stream, persistence] of [
    [true, 'run'],
    [false, 'result'],
  ]) {
    const lane = laneOf(standIn.url, `switch-${stream}`);
    await lane.script([], { then: 'brain' });
    judge.switching(
      await switching(kit, { store: 'memory', base: lane.base }, { stream, persistence }),
      await lane.requests(),
    );
  }
});

test('a request that its provider rejects fails the run, in every dialect', { timeout: 60_000 }, async () => {
  for (const dialect of ALL_DIALECTS) {
    const lane = laneOf(standIn.url, `reject-${dialect}`);
    await lane.script([], { then: 'brain' });
    const { result, statuses } = await withoutLastResult(kit, { store: 'memory', base: lane.base }, dialect);
    assert.deepEqual([result.status, result.error?.code, result.saved], ['failed', 'model_error', false], dialect);
    assert.deepEqual(statuses, [200, 400], dialect);
    assert.deepEqual(
      (await lane.requests()).map(({ status }) => status),
      [200, 400],
    );
  }
});

for (const dialect of ALL_DIALECTS) {
  test(`r11 r58 over ${dialect}: after a failure that is kept, the next request has both questions and is accepted`, {
    timeout: 60_000,
  }, async () => {
    const lane = laneOf(standIn.url, `kept-${dialect}`);
    await lane.script([{ status: 400 }, { text: 'Here.' }]);
    const session = await (await rethread.open({ store: 'memory' })).session('s', { onStop: 'keep' });
    const provider = providerAt(lane.base, dialect, true);
    const failed = await drive(await session.run({ input: 'Who?', provider, retry: { attempts: 1 } })).result;
    assert.deepEqual([failed.status, failed.saved], ['failed', true]);
    const answered = await drive(await session.run({ input: 'Again?', provider })).result;
    assert.deepEqual([answered.status, answered.text], ['finished', 'Here.']);
    const [refused, accepted] = (await lane.requests()).map(({ status, body }) => ({
      status,
      text: JSON.stringify(body),
    }));
    assert.deepEqual([refused.status, accepted.status], [400, 200]);
    assert.match(accepted.text, /Who\?.*Again\?/s);
  });
}
