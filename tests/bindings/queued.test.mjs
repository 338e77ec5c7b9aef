// r60: the questions that wait for the run before them are on the view of their page.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { open } from 'rethread';
import { drive } from 'rethread/host';
import { laneOf } from '../browser/page.mjs';
import { startStandIn } from '../stand-in/server.mjs';
import { until } from './scenarios/kit.mjs';

let standIn;
before(async () => {
  standIn = await startStandIn();
});
after(() => standIn.close());

test('r60 the view of a page shows the questions that wait, and each in its turn when its run begins', {
  timeout: 20_000,
}, async () => {
  const lane = laneOf(standIn.url, 'queued');
  await lane.script([{ text: 'One.', gate: 'go', atPiece: 1 }, { text: 'Two.' }, { text: 'Three.' }]);
  const client = await open({ store: 'memory' });
  const session = await client.session('s');
  const view = session.view();
  const provider = { dialect: 'openai-chat', url: lane.chat, params: { model: 'm' }, stream: true };
  const waiting = () => view.getSnapshot().queued.map(({ id, saved, parts }) => [id, saved, parts[0].text]);
  const first = drive(await session.run({ input: 'first', provider, whenBusy: 'queue' }));
  assert.deepEqual(waiting(), []);
  const ask = (input, inputId) =>
    session.run({ input, inputId, provider, whenBusy: 'queue' }).then((run) => drive(run).result);
  const second = ask('second', 'q2');
  const third = ask('third');
  await until(() => waiting().length === 2);
  const shown = view.getSnapshot().queued;
  const [drawn] = waiting()[1];
  assert.deepEqual(waiting(), [
    ['q2', false, 'second'],
    [drawn, false, 'third'],
  ]);
  assert.ok(!view.getSnapshot().messages.some(({ id }) => [drawn, 'q2'].includes(id)));
  // Each snapshot has a question once, here or among the messages, and the same object while it waits.
  view.subscribe(() => {
    const { messages, queued } = view.getSnapshot();
    const ids = [...messages, ...queued].map(({ id }) => id);
    assert.equal(new Set(ids).size, ids.length);
    if (queued.length === 2) assert.equal(queued[0], shown[0]);
    for (const id of ['q2', drawn]) assert.equal(ids.filter((one) => one === id).length, 1, `${id} of ${ids}`);
  });
  // What cannot be read is refused before it waits.
  await assert.rejects(session.run({ input: '', provider, whenBusy: 'queue' }), { code: 'invalid_input' });
  assert.equal(waiting().length, 2);
  await until(async () => (await lane.waiting()).length);
  await lane.openGate('go');
  await first.result;
  await Promise.all([second, third]);
  const { messages, queued } = view.getSnapshot();
  assert.deepEqual(
    [messages.map(({ id, saved }) => saved && id).filter((_, at) => at % 2 === 0), queued],
    [[messages[0].id, 'q2', drawn], []],
  );
  // One whose run cannot begin waits no more.
  const failing = await session.run({ input: 'fourth', provider });
  const refused = session.run({ input: 'fifth', inputId: 'q2', provider, whenBusy: 'queue' });
  await until(() => waiting().length === 1);
  await failing.cancel();
  await assert.rejects(refused, { code: 'invalid_input' });
  assert.deepEqual(waiting(), []);
  await client.close();
});
