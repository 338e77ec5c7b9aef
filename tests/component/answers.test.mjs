// One core, four ways to run it: native, the web build, the component in Node and under wasmtime. The same bodies get
// the same answers: bodies byte for byte, findings member for member.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { convert, heal, repair, validate } from '../../js/entry/node.js';
import { broken, DIALECTS, odd, recorded } from './bodies.mjs';
import { fileOf, loadComponent } from './component.mjs';

const SEED = Number(process.env.SEED ?? 20261121);
const BROKEN = 600;
/** Fewer recorded requests than this mean that some were lost. */
const LEAST_REQUESTS = 560;
const CUT = 'é cut';
const WEB = [{}, { danglingCalls: 'omit' }, { danglingCalls: 'synthesize', danglingText: CUT }];
const WIT = [
  undefined,
  { danglingCalls: 'omit', danglingText: undefined },
  { danglingCalls: 'synthesize', danglingText: CUT },
];

const requests = recorded();
const cases = [...requests, ...broken(requests, BROKEN, SEED), ...odd()].map((one, at) => ({
  ...one,
  options: at % 3,
  target: DIALECTS[at % DIALECTS.length],
}));

/** The answers of a program that reads and writes frames: [{found, body, report, converted, told}]. */
function answersOf(program, args) {
  const frames = cases.flatMap(({ dialect, target, options, body }) => {
    const head = Buffer.from([DIALECTS.indexOf(dialect), DIALECTS.indexOf(target), options, 0, 0, 0, 0]);
    head.writeUInt32LE(body.length, 3);
    return [head, body];
  });
  const done = spawnSync(program, args, { input: Buffer.concat(frames), maxBuffer: 1 << 28 });
  assert.equal(done.status, 0, `${program}: ${done.error ?? done.stderr}`);
  let at = 0;
  const next = () => {
    const length = done.stdout.readUInt32LE(at);
    at += 4 + length;
    return done.stdout.subarray(at - length, at);
  };
  const answers = cases.map(() => ({
    found: JSON.parse(next()),
    body: next(),
    report: JSON.parse(next()),
    converted: next(),
    told: JSON.parse(next()),
  }));
  assert.equal(at, done.stdout.length);
  return answers;
}

const present = (finding) => Object.fromEntries(Object.entries(finding).filter(([, value]) => value !== undefined));

const equal = (a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)) === 0;

function same(answers, expected) {
  for (const [at, answer] of answers.entries()) {
    const { dialect, target, body, options } = cases[at];
    const what = () =>
      `seed ${SEED}, case ${at}, ${dialect} to ${target}, options ${options}: ${body.toString('latin1').slice(0, 2000)}`;
    for (const key of ['body', 'converted'])
      assert.ok(equal(answer[key], expected[at][key]), `another ${key}: ${what()}`);
    for (const key of ['found', 'report', 'told']) assert.deepEqual(answer[key], expected[at][key], what());
  }
}

/** What a call gave or threw: the body, and the report or the error. */
function given(work, report) {
  try {
    const done = work();
    return [done.body, report(done.report)];
  } catch ({ code, message }) {
    if (code === undefined) throw new Error(message);
    return [[], { code, message }];
  }
}

/** The answers of one build to one case. */
function answersTo({ dialect, target, body, options }, build, choices, report) {
  const [repaired, found] = given(() => build.repair(body, dialect, choices[options]), report);
  const [converted, told] = given(() => build.convert(body, dialect, target, choices[options]), report);
  return { found: report(build.validate(body, dialect)), body: repaired, report: found, converted, told };
}

let native;
let component;
before(async () => {
  native = answersOf(process.env.RETHREAD_ANSWERS, []);
  component = await loadComponent();
});
after(() => component?.remove());

describe(`${requests.length} recorded requests, ${BROKEN} broken ones (seed ${SEED}), ${cases.length - requests.length - BROKEN} odd texts`, () => {
  test('the cases cover bodies without findings, with warnings, with errors, and text that is not JSON', () => {
    assert.ok(requests.length >= LEAST_REQUESTS, `${requests.length} recorded requests, ${LEAST_REQUESTS} at least`);
    const kinds = new Set(
      native.map(({ found }) =>
        found.some(({ code, action, path }) => code === 'malformed' && path === '' && action === undefined)
          ? 'malformed'
          : (found.map(({ severity }) => severity).sort()[0] ?? 'clean'),
      ),
    );
    for (const kind of ['clean', 'warning', 'error', 'malformed']) assert.ok(kinds.has(kind), kind);
    assert.ok(native.filter(({ converted: body }) => body.length).length > cases.length / 5, 'many are converted');
    assert.ok(native.filter(({ found }) => found.some(({ severity }) => severity === 'error')).length > BROKEN / 3);
  });

  test('r51 the web build answers as the native one', () => {
    const web = { validate, repair, convert };
    same(
      cases.map((one) => answersTo({ ...one, body: new Uint8Array(one.body) }, web, WEB, (report) => report)),
      native,
    );
  });

  test('r51 the component in Node answers as the native one', () => {
    const { wire } = component.exports;
    const plain = (report) => report.map(present);
    same(
      cases.map((one) => answersTo(one, wire, WIT, plain)),
      native,
    );
  });

  test('r51 the component under wasmtime answers as the native one', () => {
    const program = fileURLToPath(new URL('host.py', import.meta.url));
    same(answersOf('python3', [program, fileOf('formats')]), native);
  });
});

test('r51 the component imports nothing', () => assert.deepEqual(component.imports, []));

test('r51 a dialect is a word: an unknown one is an error of every function', () => {
  const { wire } = component.exports;
  const body = Buffer.from('{"messages":[]}');
  const calls = {
    validate: () => wire.validate(body, 'morse'),
    repair: () => wire.repair(body, 'morse', undefined),
    convert: () => wire.convert(body, 'mistral', 'morse', undefined),
    heal: () => wire.heal(body, 'morse', body, undefined),
    leaveOutRefused: () => wire.leaveOutRefused(body, 'morse', [], undefined),
    start: () => wire.StreamAssembler.start('morse'),
  };
  for (const [name, call] of Object.entries(calls)) {
    assert.throws(
      call,
      ({ code, payload = { code }, message }) =>
        payload.code === 'config_invalid' && /morse/.test(message + JSON.stringify(payload)),
      name,
    );
  }
});

test('r74 the component heals as the web build does', () => {
  const block = (signature) => [
    { type: 'thinking', thinking: '', signature },
    { type: 'text', text: 'Here.' },
  ];
  const body = Buffer.from(
    JSON.stringify({
      model: 'claude-opus-4-6',
      max_tokens: 9,
      messages: [
        { role: 'user', content: 'a' },
        { role: 'assistant', content: block('S1') },
        { role: 'user', content: 'b' },
      ],
    }),
  );
  const answer = Buffer.from(
    JSON.stringify({ error: { message: 'messages.1.content.0: Invalid `signature` in `thinking` block' } }),
  );
  const { wire } = component.exports;
  const expected = heal(new Uint8Array(body), 'anthropic', new Uint8Array(answer));
  const healed = wire.heal(body, 'anthropic', answer, undefined);
  assert.ok(equal(healed.body, expected.body));
  assert.deepEqual([healed.report.map(present), healed.refused], [expected.report, expected.refused]);
  assert.ok(equal(wire.leaveOutRefused(body, 'anthropic', healed.refused, undefined).body, expected.body));
  assert.equal(wire.heal(body, 'anthropic', Buffer.from('{}'), undefined), undefined);
});
