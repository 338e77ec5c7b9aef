// r29: a run that waits for an approval, over a reload and in another tab.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { openWorld } from './page.mjs';

let world;
before(async () => {
  world = await openWorld();
});
after(() => world?.close());

const STEPS = [
  {
    calls: [
      { name: 'look', arguments: {} },
      { name: 'pay', arguments: { n: 1 } },
      { name: 'pay', arguments: { n: 2 } },
    ],
  },
  { text: 'All done.' },
];

/** Opens the session `s` in a page, with tools that count their calls. */
async function openSession(page, name, url) {
  await page.evaluate(
    async ([name, url]) => {
      const client = await rethread.open({ name });
      const parameters = { type: 'object', properties: {} };
      globalThis.session = await client.session('s');
      globalThis.ran = [];
      globalThis.tools = {
        look: {
          parameters,
          execute: () => {
            ran.push('look');
            return 'seen';
          },
        },
        pay: {
          parameters,
          needsApproval: true,
          execute: ({ n }) => {
            ran.push(n);
            return `paid ${n}`;
          },
        },
      };
      globalThis.request = { provider: { dialect: 'openai-chat', url, params: { model: 'm' }, stream: true }, tools };
      globalThis.shown = () => {
        const { messages, run } = session.view().getSnapshot();
        const calls = messages.flatMap(({ parts }) => parts).filter(({ type }) => type === 'tool');
        return [
          run?.status ?? 'none',
          ...calls.map(({ call, awaitingApproval }) => `${call.status}${awaitingApproval ? ' waits' : ''}`),
        ];
      };
      globalThis.until = async (test) => {
        for (const end = Date.now() + 60_000; Date.now() < end; ) {
          if (await test()) return true;
          await new Promise((resolve) => setTimeout(resolve, 10));
        }
        return false;
      };
    },
    [name, url],
  );
}

const startAndWait = (page) =>
  page.evaluate(async () => {
    globalThis.run = await session.run({ ...request, input: 'x' });
    const { status } = await drive(run).result;
    return { id: run.id, status, calls: run.approvals().map(({ callId }) => callId), ran };
  });
const WAITING = ['waiting_approval', 'ok', 'pending waits', 'pending waits'];

describe('approvals', () => {
  test('r29 over a reload: the run still waits, and continues with what was decided', async () => {
    const lane = world.lane('approvals-reload');
    await lane.script(STEPS);
    const page = await world.page();
    await openSession(page, 'approvals-reload', lane.chat);
    const before = await startAndWait(page);
    assert.deepEqual([before.status, before.ran], ['waiting_approval', ['look']]);
    // One approval is stored; its tool has not run.
    await page.evaluate((call) => run.approve(call), before.calls[0]);
    await page.reload();
    await page.evaluate(() => globalThis.ready);
    await openSession(page, 'approvals-reload', lane.chat);
    const seen = await page.evaluate(async () => {
      await until(() => session.view().getSnapshot().messages.length === 2);
      // The platform may still hold the lock of the page before.
      await until(async () => (await session.pendingRuns())[0].state !== 'live');
      const [{ state, openCalls }] = await session.pendingRuns();
      return { state, calls: openCalls.map(({ state }) => state) };
    });
    assert.deepEqual(seen, { state: 'interrupted', calls: ['answered', 'not_started', 'awaiting_approval'] });
    const outcome = await page.evaluate(
      async ([id, call]) => {
        const resumed = await session.resume(id, request);
        const { status } = await drive(resumed).result;
        const between = [status, ...shown()];
        await resumed.reject(call, 'no');
        const end = await drive(resumed).result;
        return { between, status: end.status, text: end.text, turns: end.turns, ran, shown: shown() };
      },
      [before.id, before.calls[1]],
    );
    assert.deepEqual(outcome, {
      between: ['waiting_approval', 'waiting_approval', 'ok', 'ok', 'pending waits'],
      status: 'finished',
      text: 'All done.',
      turns: 2,
      ran: [1],
      shown: ['none', 'ok', 'ok', 'rejected'],
    });
    const requests = await lane.requests();
    assert.equal(requests.length, 2);
    assert.equal(JSON.parse(requests[1].bodyText).messages.filter(({ role }) => role === 'tool').length, 3);
    assert.deepEqual(page.complaints, []);
  });

  test('r29 in another tab, which shows the wait at once, resumes the run and decides; the first tab learns it', async () => {
    const lane = world.lane('approvals-tabs');
    await lane.script(STEPS);
    const context = await world.context();
    const [first, second] = [await world.page(context), await world.page(context)];
    for (const page of [first, second]) await openSession(page, 'approvals-tabs', lane.chat);
    await second.evaluate(() => {
      session.view().subscribe(() => {});
    });
    const { id, calls } = await startAndWait(first);
    assert.ok(
      await second.evaluate((want) => until(() => JSON.stringify(shown()) === JSON.stringify(want)), WAITING),
      JSON.stringify(await second.evaluate(() => shown())),
    );
    assert.deepEqual(await first.evaluate(() => shown()), WAITING);
    assert.deepEqual(await second.evaluate(async () => (await session.pendingRuns()).map(({ state }) => state)), [
      'waiting_approval',
    ]);
    const end = await second.evaluate(
      async ([id, calls]) => {
        const resumed = await session.resume(id, request);
        for (const call of calls) await resumed.approve(call);
        const { status, error } = await drive(resumed).result;
        return { status, error, ran };
      },
      [id, calls],
    );
    assert.deepEqual(end, { status: 'finished', error: null, ran: [1, 2] });
    const late = await first.evaluate(async (call) => {
      const code = await run.approve(call).then(
        () => null,
        (error) => error.code,
      );
      await until(() => shown()[0] === 'none');
      return { code, status: run.status, shown: shown(), ran };
    }, calls[0]);
    assert.deepEqual(late, { code: 'not_found', status: 'failed', shown: ['none', 'ok', 'ok', 'ok'], ran: ['look'] });
    for (const page of [first, second]) assert.deepEqual(page.complaints, []);
  });
});
