// What the facts of `replay.mjs` must be. In Node only.

import assert from 'node:assert/strict';
import { EXACT, RAW } from './replay.mjs';

export function audit({ messages, rows: newestFirst, bare, counts, paged, all }) {
  const times = newestFirst.map(({ finishedAt }) => finishedAt);
  assert.deepEqual(
    times,
    times.toSorted((a, b) => b - a),
    'the newest first',
  );
  const rows = newestFirst.toSorted((a, b) => a.roundIndex - b.roundIndex || a.sequenceIndex - b.sequenceIndex);
  assert.deepEqual(
    rows.map(({ name, roundIndex, sequenceIndex, status }) => [name, roundIndex, sequenceIndex, status]),
    [
      ['get_weather', 0, 0, 'ok'],
      ['get_time', 0, 1, 'ok'],
      ['get_weather', 1, 0, 'ok'],
    ],
  );
  const answers = messages.filter(({ role }) => role === 'assistant');
  assert.deepEqual(
    messages.map(({ role }) => role),
    ['user', 'assistant', 'assistant', 'assistant'],
  );
  assert.deepEqual(
    rows.map(({ messageId }) => messageId),
    [answers[0].id, answers[0].id, answers[1].id],
  );
  assert.deepEqual(
    answers[0].parts.map(({ type }) => type),
    ['text', 'tool_call', 'tool_call'],
  );
  assert.deepEqual(
    answers[0].parts.slice(1).map(({ invocation, round, place }) => [invocation, round, place]),
    [
      [rows[0].id, 0, 0],
      [rows[1].id, 0, 1],
    ],
  );
  for (const row of rows) {
    assert.equal(row.sessionId, 'one');
    assert.equal(row.channel, 'chat');
    assert.equal(row.redacted, false);
    assert.ok(row.startedAt > 1_000_000 && row.finishedAt > row.startedAt);
    assert.equal(row.argumentsText, JSON.stringify(row.arguments));
  }
  assert.deepEqual(rows[0].result, { content: { city: 'Oslo', celsius: 21 }, isError: false });
  assert.deepEqual(rows[1].result, { content: 'noon in Oslo', isError: false });
  for (const row of bare)
    assert.deepEqual(
      ['arguments', 'argumentsText', 'result'].filter((key) => key in row),
      [],
    );
  assert.deepEqual(counts, {
    all: 6,
    session: 3,
    tool: 2,
    ok: 5,
    error: 1,
    channel: 3,
    both: 2,
    none: 0,
    until: 2,
    since: 1,
    message: 2,
  });
  assert.deepEqual(
    paged.map((page) => page.length),
    [2, 2, 2],
  );
  assert.deepEqual(paged.flat(), all);
}

export function freshness(facts) {
  const { warnings, ...shown } = facts;
  assert.deepEqual(warnings, ['stale_default'], 'the built-in window says so once a session');
  const expired = /^Expired.*Expired/;
  assert.match(shown.placeholder, expired);
  delete shown.placeholder;
  assert.deepEqual(shown, {
    builtIn: ['mild noon', '', ''],
    call: ['mild noon', '', 'noon'],
    tool: ['mild', 'noon', ''],
    unit: '',
    global: ['mild noon', ''],
    channel: ['mild noon', ''],
    session: ['mild noon', ''],
    inherits: ['mild noon', ''],
    toolOverSession: 'mild',
  });
}

export function citations({ empty, replay, off, later, run, stored, imported }) {
  const four = { source_number: 4, content: 'four', content_id: 'c4' };
  const nine = { source_number: 9, content: 'nine' };
  const both = { 4: { id: 'c4', ...four }, 9: nine };
  assert.deepEqual(empty, { results: [], max: -1, sources: {}, codes: [] });
  assert.deepEqual(replay, { results: [JSON.stringify([four])], max: 9, sources: both, codes: ['uncited'] });
  assert.deepEqual(off, { results: [JSON.stringify([four, nine])], max: 9, sources: both, codes: [] });
  assert.deepEqual(
    { ...later, codes: null },
    { results: [], max: 9, sources: both, codes: null },
    'numbering goes on when nothing is shown',
  );
  assert.deepEqual(run, { status: 'finished', codes: ['uncited'], stored: [[nine]], seen: true });
  assert.deepEqual(stored, { results: [JSON.stringify([nine])], max: 9, sources: { 9: nine }, codes: [] });
  assert.deepEqual(imported, { stored: [JSON.stringify([four])], max: 9 });
}

export function shapes({ chat, claude, twice }) {
  const schema = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
  assert.deepEqual(
    chat.tools.map(({ type, function: { name } }) => [type, name]),
    [
      ['function', 'extra'],
      ['function', 'get_weather'],
      ['function', 'get_time'],
    ],
  );
  assert.deepEqual(chat.tools[1].function, {
    name: 'get_weather',
    description: 'Weather of a city.',
    parameters: schema,
  });
  assert.equal(chat.tool_choice, 'required');
  assert.deepEqual(
    chat.messages.map(({ role, content }) => [role, content]),
    [
      ['system', 'Be brief.'],
      ['user', 'Hi'],
      ['user', 'Go'],
    ],
  );
  assert.deepEqual(claude.tools, [
    { name: 'get_weather', description: 'Weather of a city.', input_schema: schema },
    { name: 'get_time', description: 'Time in a city.', input_schema: schema },
  ]);
  assert.deepEqual(claude.tool_choice, { type: 'any' });
  assert.equal(claude.system, 'Be brief.');
  const image = claude.messages.flatMap(({ content }) => content).find(({ type }) => type === 'image');
  assert.deepEqual(image.source, { type: 'base64', media_type: 'image/png', data: 'AQL/' });
  assert.equal(twice.code, 'config_invalid');
  assert.match(twice.message, /extra/);
}

export function exact(facts) {
  for (const [dialect, messages] of Object.entries(EXACT)) {
    for (const way of ['text', 'bytes']) {
      const body = facts[`${dialect} ${way}`];
      const start = body.indexOf('"messages":[') + '"messages":['.length;
      assert.equal(body.slice(start, -2), messages.join(','), `${dialect}, ${way}`);
    }
  }
}

export function exactAnswer({ status, seen, body }, dialect, stream) {
  assert.equal(status, 'finished');
  if (dialect === 'openai-chat') {
    assert.deepEqual(seen, [RAW]);
    assert.ok(body.includes(`"arguments":${JSON.stringify(RAW)}`), body);
  } else if (stream) {
    assert.deepEqual(seen, [RAW]);
    assert.ok(body.includes(`"input":${RAW}`), body);
  } else {
    // The model parsed its own arguments before it sent them: what it then sent comes back.
    const sent = JSON.stringify(JSON.parse(RAW));
    assert.deepEqual(seen, [sent]);
    assert.ok(body.includes(`"input":${sent}`), body);
  }
}

export function streamedOrNot([streamed, whole]) {
  for (const { status, error } of [streamed, whole]) assert.equal(status, 'finished', JSON.stringify(error));
  assert.deepEqual(streamed, whole);
}
