// R75 in IndexedDB: calls that are answered from another tab.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openWorld } from './page.mjs';

let world;
before(async () => {
  world = await openWorld();
});
after(() => world?.close());

async function opened(context) {
  const page = await world.page(context);
  await page.evaluate(async () => {
    const { pending } = rethread;
    globalThis.tools = {
      export_rows: { parameters: { type: 'object', properties: {} }, async: true, execute: () => pending },
    };
    globalThis.client = await rethread.open({ name: 'answers' });
    globalThis.session = await client.session('s');
    globalThis.shown = () =>
      session
        .view()
        .getSnapshot()
        .messages.flatMap(({ parts }) => parts)
        .filter(({ type }) => type === 'tool')
        .map(({ call, awaitingResult }) => [call.status, awaitingResult]);
    globalThis.until = async (test) => {
      for (const end = Date.now() + 60_000; Date.now() < end; ) {
        if (await test()) return true;
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
      return false;
    };
  });
  return page;
}
const ask = (page, provider, input) =>
  page.evaluate(
    async ([provider, input]) => {
      const { status, text, openCalls } = await drive(await session.run({ input, provider, tools })).result;
      return { status, text, openCalls };
    },
    [provider, input],
  );

test('r75 an asynchronous call is answered from another tab after a reload, and its output goes out', async () => {
  const lane = world.lane('answers');
  await lane.script([
    { text: 'Starting.', calls: [{ name: 'export_rows', arguments: {} }] },
    { text: 'It runs.' },
    { text: 'Seven rows.' },
    { text: 'Welcome.' },
  ]);
  const provider = { dialect: 'openai-chat', url: lane.chat, params: { model: 'm' }, stream: true };
  const context = await world.context();
  const first = await opened(context);
  const {
    openCalls: [call],
  } = await ask(first, provider, 'Export, please');
  assert.equal(call.name, 'export_rows');
  await first.close();

  const [asking, answering] = [await opened(context), await opened(context)];
  assert.deepEqual(await asking.evaluate(() => shown()), [['pending', true]]);
  await answering.evaluate(
    (id) => session.answer(id, { type: 'tool_result', content: { rows: 7001 } }),
    call.invocationId,
  );
  assert.equal(await asking.evaluate(() => until(() => shown()[0][0] === 'ok')), true, 'the other tab shows it');
  const second = await asking.evaluate(
    (id) => session.answer(id, { type: 'tool_result', content: 'again' }).catch(({ code }) => code),
    call.invocationId,
  );
  assert.equal(second, 'wrong_state');
  assert.equal((await ask(asking, provider, 'And now?')).text, 'Seven rows.');
  await ask(answering, provider, 'Thanks');
  const bodies = (await lane.requests()).map(({ body }) => JSON.stringify(body.messages));
  assert.deepEqual(
    bodies.map((body) => body.split('7001').length - 1),
    [0, 0, 1, 1],
  );
  assert.ok(bodies.at(-1).startsWith(bodies.at(-2).slice(0, -1)), 'it stays where it was');
  for (const page of [asking, answering]) assert.deepEqual(page.complaints, []);
});

test('r75 a call of a run that another tab drives, or that a reload cut off, is answered', async () => {
  const lane = world.lane('answers-live');
  await lane.script([
    { text: 'Starting.', calls: [{ name: 'export_rows', arguments: {} }] },
    { text: 'Wait.', gate: 'second' },
    { text: 'Seven rows.' },
  ]);
  const provider = { dialect: 'openai-chat', url: lane.chat, params: { model: 'm' }, stream: true };
  const context = await world.context();
  const [driving, answering] = [await opened(context), await opened(context)];
  const id = await driving.evaluate(async (provider) => {
    const run = await session.run({ input: 'Export', provider, tools });
    const events = drive(run);
    globalThis.result = events.result;
    for await (const event of events) if (event.type === 'tool_pending') return event.invocationId;
    return null;
  }, provider);
  assert.equal(
    await answering.evaluate(
      (id) =>
        until(() =>
          session.answer(id, { type: 'tool_result', content: { rows: 7001 } }).then(
            () => true,
            () => false,
          ),
        ),
      id,
    ),
    true,
  );
  assert.equal(await answering.evaluate(() => until(() => shown()[0]?.[0] === 'ok')), true);
  assert.equal(await driving.evaluate(() => until(() => shown()[0]?.[0] === 'ok')), true);
  // The reload cuts the request off that was sent before.
  while (!(await lane.waiting()).length) await new Promise((resolve) => setTimeout(resolve, 10));
  await driving.close();
  const text = await answering
    .evaluate(async (provider) => {
      let pending = [];
      await until(
        async () => (pending = (await session.pendingRuns()).filter(({ state }) => state === 'interrupted')).length > 0,
      );
      return (await drive(await session.resume(pending[0].id, { provider, tools })).result).text;
    }, provider)
    .finally(() => lane.openGate('second'));
  const last = (await lane.requests()).at(-1).body.messages;
  assert.equal(JSON.stringify(last).split('7001').length - 1, 1, text);
  assert.deepEqual(await answering.evaluate(() => shown()), [['ok', false]]);
});
