// What the facts of `dialects.mjs` must be. In Node only.

import assert from 'node:assert/strict';
import { ALL_DIALECTS, QUESTIONS } from './dialects.mjs';

/** Model calls of a turn: two calls at once, one call, text. */
const CALLS = 3;
const APPENDS = { run: 1, call: 3, result: 6 };

/** OpenAI chat has no parameter for the reasoning that compatible servers send, so the script has it. */
export const scriptOf = (dialect) =>
  dialect === 'openai-chat'
    ? Array.from({ length: 2 * CALLS }, () => ({ brain: true, thinking: { text: 'Hm, let me see.' } }))
    : [];

/** What a provider signs or encrypts, as it occurs in an answer of the stand-in and must occur in the next request. */
const SIGNATURE = /c3RhbmRpbg[\w]+==/g;
const SIGNED = new Set(['anthropic', 'gemini', 'openai-responses']);

function accepted(requests, count) {
  assert.deepEqual(
    requests.filter(({ status }) => status !== 200).map(({ n, status, error }) => ({ n, status, error })),
    [],
  );
  assert.equal(requests.length, count);
}

/** A body without what differs between streamed and whole answers: that parameter, and the ids, which the stand-in
 *  makes from the body. */
function comparable(body) {
  const ids = [];
  const numberOf = (id) => {
    if (!ids.includes(id)) ids.push(id);
    return ids.indexOf(id);
  };
  return body
    .replace(/"stream(_options)?":(true|false|\{[^}]*\}),?/g, '')
    .replace(/"(id|call_id|tool_use_id|tool_call_id)":"([^"]*)"/g, (_, member, id) => `"${member}":${numberOf(id)}`);
}

/** The six outcomes of one dialect, one for each mode, streamed and whole. */
export function twoTurns(dialect, outcomes) {
  const [
    {
      facts: { messages: expected },
      requests: [...bodies],
    },
  ] = outcomes;
  for (const {
    facts: { results, messages, revision, pending },
    requests,
    persistence,
    stream,
  } of outcomes) {
    const where = `${dialect}, mode ${persistence}, ${stream ? 'streamed' : 'whole'}`;
    accepted(requests, QUESTIONS.length * CALLS);
    assert.deepEqual(
      [...new Set(requests.map((request) => `${request.dialect} ${request.stream} ${request.ended}`))],
      [`${dialect} ${stream} complete`],
      where,
    );
    for (const { status, error, turns, tools, saved, text } of results) {
      assert.deepEqual([status, error, turns, tools, saved], ['finished', null, CALLS, 3, true], where);
      assert.match(text, /I called 3 tools in 2 rounds/, where);
    }
    assert.deepEqual([revision, pending], [QUESTIONS.length * APPENDS[persistence], 0], where);
    assert.deepEqual(messages, expected, where);
    requests.forEach(({ bodyText }, n) =>
      assert.equal(comparable(bodyText), comparable(bodies[n].bodyText), `${where}, request ${n + 1}`),
    );
  }
  assert.deepEqual(
    expected.map(({ role }) => role),
    QUESTIONS.flatMap(() => ['user', 'assistant', 'assistant', 'assistant']),
  );
  const calls = expected.flatMap(({ parts }) => parts.filter(({ type }) => type === 'call'));
  assert.deepEqual(
    calls.map(({ name, round, place, outcome }) => [name, round, place, outcome]),
    QUESTIONS.flatMap(() => [
      ['get_weather', 0, 0, 'ok'],
      ['get_time', 0, 1, 'ok'],
      ['book_table', 1, 0, 'ok'],
    ]),
  );
  const reasoning = expected.flatMap(({ parts }) => parts.filter(({ type }) => type === 'reasoning'));
  assert.equal(reasoning.length, QUESTIONS.length * CALLS, 'each answer has its reasoning');
  if (SIGNED.has(dialect))
    assert.ok(bodies.at(-1).bodyText.match(SIGNATURE)?.length >= CALLS - 1, bodies.at(-1).bodyText);
}

export function switching({ ends, messages }, requests) {
  const order = [...ALL_DIALECTS, ...ALL_DIALECTS.toReversed()];
  accepted(requests, order.length * CALLS);
  assert.deepEqual(
    ends,
    order.map((dialect) => ({ dialect, status: 'finished', error: null, turns: CALLS })),
  );
  assert.equal(messages, order.length * (CALLS + 1));
  assert.deepEqual(
    requests.map(({ dialect }) => dialect),
    order.flatMap((dialect) => Array(CALLS).fill(dialect)),
  );
  requests.forEach(({ bodyText }, n) => {
    const turns = Math.floor(n / CALLS);
    assert.equal(bodyText.match(/Question \d+: what about Oslo/g).length >= turns + 1, true);
    const booked = bodyText.match(/seats/g)?.length ?? 0;
    assert.ok(booked >= turns, `request ${n} has ${booked} results of ${turns}`);
  });
}
