// The vectors of the yardstick: up to date, valid, stated as the stand-in sees it, and right with this library. Other
// libraries are measured by `npm run yardstick` alone.

import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { z } from 'zod';
import { output, which } from '../../.ci/shell.mjs';
import { factsOf, missingFacts } from '../yardstick/facts.mjs';
import { makeVectors, readVectors } from '../yardstick/generate.mjs';
import { isJudged, judge, refusalOf } from '../yardstick/judge.mjs';
import { sentByRethread } from '../yardstick/rethread.mjs';

const vectors = readVectors();
const vectorOf = (id) => vectors.find((vector) => vector.id === id) ?? assert.fail(`no vector ${id}`);

/** What Google says to two calls of one answer with one id is not known. */
const NOT_JUDGED = ['gemini/duplicate_call_id'];

test('r66 the vectors are those of the pages, and generating them changes nothing', () => {
  assert.ok(vectors.length >= 200, `${vectors.length} vectors`);
  assert.deepEqual(makeVectors(vectors, 'today'), vectors);
});

test('r66 every vector is valid by the schema, and has an id of its own', () => {
  const schema = z.fromJSONSchema(
    JSON.parse(readFileSync(new URL('../yardstick/vector.schema.json', import.meta.url), 'utf8')),
  );
  for (const vector of vectors) {
    const { success, error } = schema.safeParse(vector);
    assert.ok(success, `${vector.id}: ${error?.message}`);
    assert.ok(
      vector.given.messages ? vector.given.tools : vector.given.onlyAsBody,
      `${vector.id}: messages, or why not`,
    );
  }
  assert.equal(new Set(vectors.map(({ id }) => id)).size, vectors.length);
  assert.ok(!schema.safeParse({ ...vectors[0], right: { outcome: 'fine' } }).success);
});

test('r66 the stand-in rejects what is given and accepts what is right, except for rules that it lacks', () => {
  assert.deepEqual(
    vectors.filter((vector) => !isJudged(vector)).map(({ id }) => id),
    NOT_JUDGED,
  );
});

for (const vector of vectors)
  test(`r66 ${vector.id} is right with rethread`, () => {
    const sent = sentByRethread(vector);
    if (isJudged(vector)) assert.deepEqual(judge(vector, sent), { outcome: 'right' });
    else assert.deepEqual(sent.bodies.at(-1), vector.right.body ?? vector.given.body);
  });

const page = readFileSync(new URL('../../docs/yardstick.md', import.meta.url), 'utf8');

test('r66 the table names vectors that exist, and all that it measured are in it', () => {
  const begins = page.indexOf('<!-- begin: npm run yardstick -->');
  const shown = new Set();
  let dialect = null;
  for (const line of page.slice(begins).split('\n')) {
    if (line.startsWith('### ')) dialect = line.slice(4);
    const [, name] = /^\| `([^`]+)`(?: ‡)? \| (?:right|_|\*|–)/.exec(line) ?? [];
    if (name) shown.add(vectorOf(`${dialect}/${name}`).id);
  }
  const [, measured] = /Measured on [\d-]+, (\d+) vectors/.exec(page);
  const [, alone] = /(\d+) more vectors are in no table/.exec(page);
  assert.equal(shown.size + Number(alone), Number(measured));
});

/** A library that sends the messages as they are, in the words of Anthropic, and cannot send a result. */
const LIBRARY = `import json, urllib.request

def send(messages, tools, model, address):
    out = []
    for message in messages:
        if message["role"] not in ("user", "assistant"):
            raise ValueError("no results")
        content = []
        for part in message["parts"]:
            if part["type"] == "text":
                content.append({"type": "text", "text": part["text"]})
            elif part["type"] == "call":
                content.append({"type": "tool_use", "id": part["id"], "name": part["name"], "input": part["input"]})
        out.append({"role": message["role"], "content": content})
    body = json.dumps({"model": model, "max_tokens": 1024, "messages": out}).encode()
    request = urllib.request.Request(f"{address}/v1/messages", body, {"content-type": "application/json"})
    urllib.request.urlopen(request).read()
`;

test('r66 the program of the page runs any library, which the runner judges', { skip: !which('python3') }, () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'yardstick-test-'));
  try {
    const [, program] = /```python\n([^]*?)```/.exec(page);
    writeFileSync(path.join(folder, 'mine.py'), program);
    writeFileSync(path.join(folder, 'my_library.py'), LIBRARY);
    const lines = output(process.execPath, [
      'tests/yardstick/run.mjs',
      '--program',
      `python3 "${path.join(folder, 'mine.py')}"`,
    ])?.split('\n');
    const outcomeOf = (id) => {
      const line = lines.find((one) => one.includes(`${id}  `)) ?? assert.fail(`no line of ${id}`);
      return line.slice(2, 16).trim();
    };
    assert.equal(outcomeOf('anthropic/dangling_call'), 'passes broken');
    assert.equal(outcomeOf('anthropic/duplicate_result'), 'throws');
    assert.equal(outcomeOf('anthropic/unsigned_thinking'), 'right');
    assert.equal(outcomeOf('mistral/dangling_call'), 'n/a');
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test('the judge tells the four outcomes apart', () => {
  const vector = vectorOf('anthropic/dangling_call');
  const { body } = vector.right;
  const outcome = (sent) => judge(vector, { bodies: [], ...sent }).outcome;
  assert.equal(outcome({ bodies: [body] }), 'right');
  assert.equal(outcome({ bodies: [vector.given.body] }), 'passes broken');
  assert.equal(outcome({ bodies: [vector.given.body, body] }), 'right', 'after a refusal');
  assert.equal(outcome({ threw: 'an error' }), 'throws');
  const [question, , after] = body.messages;
  const withoutCall = { ...body, messages: [question, { ...after, content: 'Hello?' }] };
  assert.equal(refusalOf(withoutCall, vector), null);
  assert.equal(outcome({ bodies: [withoutCall] }), 'drops');
});

test('the judge wants the cure of an error in the next request, whichever cure it is', () => {
  const vector = vectorOf('anthropic/thinking_bound');
  const { body } = vector.given;
  const outcome = (...bodies) => judge(vector, { bodies }).outcome;
  assert.equal(outcome(body), 'passes broken');
  assert.equal(outcome(body, vector.right.body), 'right');
  const thinking = { type: 'adaptive', block_binding: { prefix_mismatch_behavior: 'drop_block' } };
  assert.equal(outcome(body, { ...body, thinking }), 'right');
});

test('facts are found in every dialect, and counted', () => {
  const calls = [{ type: 'function_call', call_id: 'c', name: 'f', arguments: '{"a":1,"b":2}' }];
  const facts = factsOf({ input: [...calls, ...calls, { role: 'user', content: 'Hi' }] });
  assert.deepEqual(facts.calls, Array(2).fill({ name: 'f', input: { a: 1, b: 2 } }));
  const toolUse = { toolUse: { toolUseId: 'c', name: 'f', input: { b: 2, a: 1 } } };
  const lost = missingFacts(facts, { messages: [{ role: 'assistant', content: [toolUse] }] });
  assert.deepEqual(lost, { texts: ['Hi'], calls: [{ name: 'f', input: { a: 1, b: 2 } }] });
});
