// R77 over real HTTP: turns with tools in Gemini's interactions, whole and streamed.

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

const look = (city) => ({ name: 'look', arguments: { city } });
const ANSWERS = [
  { text: 'I look.', thinking: { text: 'Two cities.', pieces: 2 }, calls: [look('Lisbon'), look('Oslo')] },
  { text: 'Sunny in both.' },
  { calls: [look('Porto')] },
  { text: 'Rain.' },
];

/** The conversation of two turns: the outcomes and the requests. */
async function twoTurns(stream) {
  const name = `interactions-${stream}`;
  const lane = standIn.state.lane(name);
  lane.script = structuredClone(ANSWERS);
  const session = await (await open({ store: 'memory' })).session('s');
  const url = `${standIn.url}/lane/${name}/v1beta/interactions`;
  const provider = { dialect: 'gemini-interactions', url, stream, params: { model: 'gemini-3.8-flash' } };
  const tools = { look: { parameters: { type: 'object' }, execute: ({ city }) => `of ${city}` } };
  const outcomes = [];
  for (const input of ['Lisbon and Oslo?', 'And Porto?']) {
    const driven = drive(await session.run({ input, provider, tools, retry: { attempts: 1 } }));
    outcomes.push(await driven.result);
  }
  return { outcomes, requests: lane.requests };
}

/** A step without ids, which the stand-in makes from the body. */
const comparable = ({ id, call_id, ...step }) => step;

test('r77 interactions with tools are accepted by the stand-in, streamed and whole', async () => {
  const sent = [];
  for (const stream of [true, false]) {
    const { outcomes, requests } = await twoTurns(stream);
    assert.deepEqual(
      outcomes.map(({ status, text, error }) => [status, text, error?.message]),
      [
        ['finished', 'Sunny in both.', undefined],
        ['finished', 'Rain.', undefined],
      ],
    );
    assert.deepEqual(
      requests.map(({ status, body }) => [status, body.store, body.input.length]),
      [1, 7, 9, 12].map((length) => [200, false, length]),
    );
    sent.push(requests.at(-1).body.input.map(comparable));
  }
  const [streamed, whole] = sent;
  assert.deepEqual(
    whole.map(({ type }) => type),
    [
      ...[
        'user_input',
        'thought',
        'model_output',
        'function_call',
        'function_call',
        'function_result',
        'function_result',
      ],
      ...['model_output', 'user_input', 'thought', 'function_call', 'function_result'],
    ],
  );
  const results = whole.filter(({ type }) => type === 'function_result').map(({ result }) => JSON.stringify(result));
  for (const city of ['Lisbon', 'Oslo', 'Porto']) assert.ok(results.some((result) => result.includes(`of ${city}`)));
  // Pieces of a summary are joined: whether they are one text or several is not known.
  assert.deepEqual(streamed, whole);
});
