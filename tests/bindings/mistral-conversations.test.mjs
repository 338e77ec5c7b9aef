// R77 over real HTTP: answers of Mistral's conversations with what its own tools and agents did.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { open } from 'rethread';
import { drive } from 'rethread/host';
import { startStandIn } from '../stand-in/server.mjs';

let standIn;
before(async () => {
  standIn = await startStandIn();
});
after(() => standIn.close());

const ANSWERS = [
  {
    handoff: { from: 'guide', to: 'analyst' },
    executions: [{ name: 'code_interpreter', arguments: { code: '6 * 7' }, info: { code_output: '42' } }],
    thinking: { text: 'Multiply both.', pieces: 3 },
    text: 'It is 42.',
  },
  {
    calls: [{ name: 'look', arguments: { city: 'Lisbon' } }],
    executions: [{ name: 'web_search', arguments: {}, info: {} }],
  },
  { text: 'Sunny.' },
];

/** The conversation of two turns: the outcomes, the events of reasoning, and the requests. */
async function twoTurns(stream) {
  const name = `entries-${stream}`;
  const lane = standIn.state.lane(name);
  lane.script = structuredClone(ANSWERS);
  const session = await (await open({ store: 'memory' })).session('s');
  const url = `${standIn.url}/lane/${name}/mistral/v1/conversations`;
  const provider = { dialect: 'mistral-conversations', url, stream, params: { model: 'mistral-medium-latest' } };
  const tools = { look: { parameters: { type: 'object' }, execute: () => 'Sunny, 21 °C' } };
  const outcomes = [];
  const events = [];
  for (const input of ['6 * 7?', 'Weather in Lisbon?']) {
    const driven = drive(await session.run({ input, provider, tools, retry: { attempts: 1 } }));
    for await (const event of driven) events.push(event.type);
    outcomes.push(await driven.result);
  }
  return { outcomes, events, requests: lane.requests };
}

/** An entry without times, and without ids, which the stand-in makes from the body. */
const comparable = (entry) =>
  Object.fromEntries(Object.entries(entry).filter(([key]) => !/^(id|tool_call_id|object|model|\w+_at)$/.test(key)));

test('r77 what tools of the service, agents and reasoning left in an answer is accepted in the next request', async () => {
  const sent = [];
  for (const stream of [true, false]) {
    const { outcomes, events, requests } = await twoTurns(stream);
    assert.deepEqual(
      outcomes.map(({ status, text, error }) => [status, text, error?.message]),
      [
        ['finished', 'It is 42.', undefined],
        ['finished', 'Sunny.', undefined],
      ],
    );
    // The stand-in refuses members that no schema of a request has: `function`.
    assert.deepEqual(
      requests.map(({ status }) => status),
      [200, 200, 200],
    );
    if (stream) assert.ok(events.includes('reasoning_delta'), [...new Set(events)].join(', '));
    sent.push(requests.at(-1).body.inputs.map(comparable));
  }
  const [streamed, whole] = sent;
  assert.deepEqual(streamed, whole, 'streamed and whole are sent alike');
  assert.ok(JSON.stringify(whole).includes('42'), 'what the tool of the service found is sent');
});
