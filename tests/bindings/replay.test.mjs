// What is kept, found and sent again, with a session in memory, in Node.

import { after, before, describe, test } from 'node:test';
import * as rethread from 'rethread';
import { drive } from 'rethread/host';
import { laneOf } from '../browser/page.mjs';
import { startStandIn } from '../stand-in/server.mjs';
import * as judge from './scenarios/judge.mjs';
import * as replay from './scenarios/replay.mjs';

const kit = { rethread, drive };
let standIn;
before(async () => {
  standIn = await startStandIn();
});
after(() => standIn.close());

const envOf = (name, dialect = 'openai-chat') => {
  const { base, chat, messages } = laneOf(standIn.url, `${name}-${dialect}`);
  return { store: 'memory', name: `${name}-${dialect}`, dialect, lane: { base, chat, messages } };
};

for (const dialect of ['openai-chat', 'anthropic']) {
  describe(dialect, () => {
    test('r01 r13 rows of the audit table', async () => judge.audit(await replay.audit(kit, envOf('audit', dialect))));
    test('r20 streamed and whole answers are stored equally', async () =>
      judge.streamedOrNot(await replay.streamedOrNot(kit, envOf('stream', dialect))));
    for (const stream of [true, false]) {
      test(`r45 arguments are sent back as the model wrote them, ${stream ? '' : 'not '}streamed`, async () => {
        const env = envOf(`exact-${stream}`, dialect);
        judge.exactAnswer(await replay.exactAnswer(kit, env, stream), env.dialect, stream);
      });
    }
  });
}

test('r10 each level of freshness', async () => judge.freshness(await replay.freshness(kit, envOf('freshness'))));
test('r08 r09 citations and source numbers', async () =>
  judge.citations(await replay.citations(kit, envOf('citations'))));
test('r55 tools in the form of each dialect', async () => judge.shapes(await replay.shapes(kit, envOf('shapes'))));
test('r45 text is returned byte for byte', async () => {
  const env = envOf('text');
  judge.exact(await replay.readExact(kit, env, await replay.storeExact(kit, env)));
});
