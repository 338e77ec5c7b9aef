// The order of a run's writes. A journal is read in the order in which it was written, whatever other writers do
// meanwhile.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { open } from 'rethread';
import { drive } from 'rethread/host';
import { MemoryLogStore } from '../packaging/projects/store/memory-log-store.js';

const PROVIDER = { dialect: 'openai-chat', url: 'https://model.example/v1/chat/completions', params: { model: 'm' } };
const parameters = { type: 'object', properties: {} };
const turn = () => new Promise(setImmediate);

async function until(isReached) {
  for (let count = 0; !(await isReached()); count += 1) {
    assert.ok(count < 2000, `not reached: ${isReached}`);
    await turn();
  }
}

/** A store whose appends take three turns of the event loop. */
class SlowStore extends MemoryLogStore {
  operations = new Set();
  underWay = 0;
  mostUnderWay = 0;
  conflicts = 0;
  /** The first attempt of the operation of this number takes much longer. */
  slowest = 0;
  /** Slow operations that are not done. */
  delayed = new Set();

  async append(id, expected, batch, operation) {
    const [, name, attempt] = /^(.*)\.(\d+)$/.exec(operation);
    this.operations.add(name);
    const isSlow = attempt === '0' && name === [...this.operations][this.slowest - 1];
    if (isSlow) this.delayed.add(name);
    this.underWay += 1;
    this.mostUnderWay = Math.max(this.mostUnderWay, this.underWay);
    for (let count = 0; count < (isSlow ? 300 : 3); count += 1) await turn();
    this.underWay -= 1;
    const outcome = super.append(id, expected, batch, operation);
    if ('conflict' in outcome) this.conflicts += 1;
    else this.delayed.delete(name);
    return outcome;
  }
}

/** A `fetch` that answers the first request with these calls, and any later one with a text. */
function fetchOf(...names) {
  let requests = 0;
  return async () => {
    requests += 1;
    const calls = names.map((name, at) => ({
      id: `call_${at}`,
      type: 'function',
      function: { name, arguments: '{}' },
    }));
    const [message, finish_reason] =
      requests === 1 && calls.length > 0
        ? [{ content: null, tool_calls: calls }, 'tool_calls']
        : [{ content: 'Done.' }, 'stop'];
    return Response.json({
      id: 'r',
      choices: [{ index: 0, message: { role: 'assistant', ...message }, finish_reason }],
    });
  };
}

test('r18 r29 a call that was approved and started is stored as such, whichever write is delayed', {
  timeout: 30_000,
}, async () => {
  for (let slowest = 2; slowest < 9; slowest += 1) {
    const store = Object.assign(new SlowStore(), { slowest });
    const [client, other] = [await open({ store }), await open({ store })];
    const session = await client.session('s');
    const states = [];
    const execute = async (_, { invocationId }) => {
      await until(() => store.delayed.size === 0);
      const [{ openCalls }] = await other.pendingRuns();
      states.push(openCalls.find((call) => call.invocationId === invocationId).state);
      return 1;
    };
    const tools = { look: { parameters, execute }, pay: { parameters, execute, needsApproval: async () => true } };
    const run = await session.run({ input: 'x', provider: PROVIDER, tools });
    const { status } = await drive(run, { fetch: fetchOf('look', 'pay', 'look'), onApproval: () => true }).result;
    assert.deepEqual([slowest, status, states], [slowest, 'finished', Array(3).fill('started')]);
    await client.close();
    await other.close();
  }
});

test('r18 the writes of parallel tools do not conflict with each other', { timeout: 30_000 }, async () => {
  const store = new SlowStore();
  const client = await open({ store });
  const tools = { look: { parameters, execute: () => 1 } };
  const run = await (await client.session('s')).run({ input: 'x', provider: PROVIDER, tools });
  const { status } = await drive(run, { fetch: fetchOf(...Array(30).fill('look')) }).result;
  assert.deepEqual([status, store.mostUnderWay, store.conflicts], ['finished', 1, 0]);
  await client.close();
});

test('r18 a run that is disposed while it writes can be resumed at once, in another process', {
  timeout: 30_000,
}, async () => {
  const store = Object.assign(new SlowStore(), { slowest: 3 });
  const [client, other] = [await open({ store }), await open({ store })];
  const tools = { look: { parameters, execute: () => 1 } };
  const run = await (await client.session('s')).run({ input: 'x', provider: PROVIDER, tools });
  const driven = drive(run, { fetch: fetchOf('look', 'look') });
  await until(() => store.delayed.size > 0);
  run[Symbol.dispose]();
  await assert.rejects(driven.result, { code: 'closed' });
  for (let idle = 0; idle < 50; idle = store.underWay > 0 ? 0 : idle + 1) await turn();
  assert.deepEqual(
    (await other.pendingRuns()).map(({ state }) => state),
    ['interrupted'],
  );
  const resumed = await (await other.session('s')).resume(run.id, { provider: PROVIDER, tools });
  assert.equal((await drive(resumed, { fetch: fetchOf() }).result).status, 'finished');
  await client.close();
  await other.close();
});
