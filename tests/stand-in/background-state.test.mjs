// Background responses of the stand-in: what it does when nobody reads, and what it refuses.

import assert from 'node:assert/strict';
import test, { after, before } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { startStandIn } from './server.mjs';

let standIn;
before(async () => {
  standIn = await startStandIn();
});
after(() => standIn.close());

let laneCount = 0;
function service() {
  const base = `${standIn.url}/lane/background${(laneCount += 1)}`;
  const post = (path, body) => fetch(base + path, { method: 'POST', body: JSON.stringify(body) });
  const begin = async (more, step = {}) => {
    await post('/control/script', { steps: [{ text: 'Once upon a time.', delayMs: 5, ...step }] });
    return post('/v1/responses', { model: 'm', input: 'Hello', background: true, ...more });
  };
  const get = (id, query = '') => fetch(`${base}/v1/responses/${id}${query}`);
  return { base, post, begin, get };
}

const eventsOf = (text) =>
  text
    .split('\n')
    .filter((line) => line.startsWith('data: '))
    .map((line) => JSON.parse(line.slice(6)));

test('a response is worked on when nobody reads, and is polled', async () => {
  const { begin, get, post } = service();
  const begun = await (await begin({})).json();
  assert.deepEqual([begun.status, begun.background, begun.output], ['queued', true, []]);
  let response = begun;
  for (let at = 0; at < 200 && response.status !== 'completed'; at += 1) {
    await sleep(5);
    response = await (await get(begun.id)).json();
  }
  assert.equal(response.output[0].content[0].text, 'Once upon a time.');
  // It is in the chain.
  const next = await post('/v1/responses', { model: 'm', input: 'And?', previous_response_id: begun.id });
  assert.equal(next.status, 200);
});

test('a stream is resumed after its last event, whoever left', async () => {
  const { begin, get } = service();
  const leaves = new AbortController();
  const first = await begin({ stream: true }, { cut: 3 });
  const received = [];
  try {
    for await (const bytes of first.body) received.push(Buffer.from(bytes).toString());
  } catch {
    leaves.abort();
  }
  const before = eventsOf(received.join(''));
  assert.deepEqual([before.length, leaves.signal.aborted], [3, true]);
  const { id } = before[0].response;
  const rest = eventsOf(await (await get(id, '?stream=true&starting_after=2')).text());
  assert.equal(rest[0].sequence_number, 3);
  assert.equal(rest.at(-1).type, 'response.completed');
  const all = eventsOf(await (await get(id, '?stream=true')).text());
  assert.deepEqual(all, [...before, ...rest]);
});

test('it refuses what the service refuses', async () => {
  const { begin, get, post } = service();
  assert.equal((await begin({ store: false })).status, 400);
  assert.equal((await get('resp_0')).status, 404);
  const { id } = await (await begin({})).json();
  assert.equal((await get(id, '?stream=true')).status, 400);
  assert.equal((await get(id, '?starting_after=1')).status, 400);
  const streamed = eventsOf(await (await begin({ stream: true })).text())[0].response.id;
  assert.equal((await get(streamed, '?stream=true')).status, 200);
  await post('/control/service', { minutes: 6 });
  assert.equal((await get(streamed, '?stream=true')).status, 400);
  assert.equal((await get(streamed)).status, 200);
  await post('/control/service', { days: 31 });
  assert.equal((await get(streamed)).status, 404);
});

test('a response is cancelled once', async () => {
  const { begin, get, post } = service();
  const { id } = await (await begin({}, { delayMs: 1_000 })).json();
  for (let times = 0; times < 2; times += 1) {
    const cancelled = await (await post(`/v1/responses/${id}/cancel`, {})).json();
    assert.equal(cancelled.status, 'cancelled');
  }
  assert.equal((await (await get(id)).json()).status, 'cancelled');
});
