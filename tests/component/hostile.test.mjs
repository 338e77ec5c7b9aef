// Whatever a host passes, in whatever order, the component answers with a value or an error: it never traps. Here hosts
// pass garbage: commands with text that is not JSON, replies to other operations, rows that nobody asked for, ids of
// nothing.

import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import { loadComponent } from './component.mjs';
import { Keyvalue, memoryKeyvalue } from './keyvalue.mjs';
import { newStore, moment, SETTINGS, stepper } from './stepping.mjs';

const SEED = Number(process.env.SEED ?? 20261126);
const ENGINES = Number(process.env.ENGINES ?? 60);
const STEPS = 60;

/** Numbers below `n`, the same ones for the same seed. */
function dice(seed) {
  let state = seed >>> 0;
  return (n) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % n;
  };
}

const MODEL = { dialect: 'openai-chat', url: 'http://127.0.0.1:1/v1/chat/completions', params: { model: 'm' } };
const TEXTS = [
  '',
  'x',
  'null',
  '7',
  '[]',
  '{',
  '{}',
  '{"__proto__":1}',
  '"\\ud83d"',
  '['.repeat(100_000),
  `{"a":${'{"a":'.repeat(3000)}1${'}'.repeat(3001)}`,
  '{"replay":{"freshness":"Infinity","reducers":[{"type":"sliding_turns","turns":0}]}}',
  '{"replay":{"reducers":[{"type":"custom","reduce":"f"}]}}',
  JSON.stringify({ provider: MODEL, input: 'Hi.', inputFilter: 'f', tools: { t: { needsApproval: 'g' } } }),
  '{"force":true,"summarize":"f"}',
  '{"name":"other","inputFilter":"f"}',
  '{"input":"Hi."}',
  JSON.stringify({ provider: MODEL, input: 'Hi.' }),
  JSON.stringify({ provider: { ...MODEL, params: { stream: true } }, input: [{ type: 'text', text: 'Hi.' }] }),
  JSON.stringify({ provider: { ...MODEL, dialect: 'morse' }, input: 'Hi.' }),
  JSON.stringify({ provider: MODEL, tools: { t: { parameters: 7 } }, maxTurns: 0 }),
  JSON.stringify({ dialect: 'anthropic', input: { messages: [{ role: 'tool' }] } }),
  '{"messages":[{"role":"user","content":"Hello."}]}',
  '{"limit":18446744073709551615,"cursor":"\\u0000"}',
  '{"flushMs":-1}',
  '{"owner":{"kind":"conversation"}}',
  '{"olderThan":0,"keepNewestTurns":1}',
  '{"title":null,"metadata":{"a":[1]},"archived":true}',
  '\u0000\uffff',
  'é'.repeat(5000),
];
const NUMBERS = [0n, 1n, 2n, 7n, 2n ** 53n - 1n, 2n ** 53n, 2n ** 64n - 1n];
const IDS = ['', 's', 's:t', '\u0000', '../x', 'x'.repeat(5000), '=', 'é', 't:1'];

/** Draws values of the types of the interface. */
function drawing(roll) {
  const of = (list) => list[roll(list.length)];
  const maybe = (draw) => (roll(3) ? draw() : undefined);
  const text = () => of(TEXTS);
  const id = () => of(IDS);
  const number = () => of(NUMBERS);
  const bytes = () => (roll(2) ? Uint8Array.from({ length: roll(50) }, () => roll(256)) : Buffer.from(text()));
  const small = () => of([0, 1, 5, 2 ** 32 - 1]);
  const table = () => of(['log', 'tool-invocations', 'runs']);
  const index = () => ({ tool: id(), status: id(), channel: maybe(id), at: number() });
  const row = () => ({ table: table(), key: number(), lastKey: maybe(number), index: maybe(index), value: bytes() });
  const list = (draw) => Array.from({ length: roll(4) }, draw);
  const head = () => ({ revision: number(), value: bytes() });
  const request = () => ({ session: id(), options: text() });
  const commands = {
    'open-session': request,
    append: () => ({
      session: id(),
      body: bytes(),
      dialect: maybe(() => of(['openai-chat', 'gemini', 'morse', ''])),
      expectedRevision: maybe(number),
      branch: maybe(id),
    }),
    'answer-call': () => ({ session: id(), call: id(), answer: text() }),
    messages: () => ({ session: id(), cursor: maybe(text), limit: maybe(small), branch: maybe(id) }),
    render: request,
    run: request,
    compact: request,
    'hand-off': () => ({ run: id(), agent: text() }),
    resume: () => ({ session: id(), run: maybe(id), snapshot: maybe(bytes), options: text() }),
    discard: () => ({ session: id(), run: id(), keep: !roll(2) }),
    decide: () => ({ run: id(), call: id(), approved: !roll(2), reason: maybe(text) }),
    cancel: id,
    save: id,
    clear: id,
    'mark-read': id,
    annotate: () => ({ session: id(), messageId: id(), metadata: maybe(text) }),
    update: () => ({ session: id(), fields: text() }),
    fork: () => ({ session: id(), after: maybe(id) }),
    'switch-to': () => ({ session: id(), branch: id() }),
    branches: id,
    'delete-messages': () => ({ session: id(), messageIds: list(id) }),
    prune: text,
    'close-session': id,
    serialize: id,
    restore: () => ({ archive: bytes(), session: maybe(id) }),
    'delete-session': id,
    sessions: () => ({ channel: maybe(id), cursor: maybe(text), limit: maybe(small) }),
    'pending-runs': () => maybe(id),
    invocations: text,
  };
  const replies = {
    head: () => maybe(head),
    appended: number,
    conflict: number,
    occupied: () => undefined,
    rows: () => list(row),
    sessions: () => ({ items: list(() => ({ session: id(), head: head() })), cursor: maybe(text) }),
    invocations: () => ({ items: list(() => ({ session: id(), row: row() })), cursor: maybe(text) }),
    deleted: () => undefined,
    failed: () => ({ code: of(['busy', 'unavailable', 'x']), message: text(), written: !roll(2) }),
  };
  const headers = () => list(() => [id(), text()]);
  const status = () => of([0, 200, 400, 429, 500, 65535]);
  const tagged = (kinds) => {
    const tag = of(Object.keys(kinds));
    return { tag, val: kinds[tag]() };
  };
  const answers = {
    store: () => tagged(replies),
    returned: text,
    'response-started': () => ({ status: status(), headers: headers() }),
    'response-end': () => undefined,
    response: () => ({ status: status(), headers: headers(), body: bytes() }),
    started: () => undefined,
    'tool-result': () => ({ content: text(), isError: !roll(2) }),
    pending: () => undefined,
    waited: () => undefined,
    failed: () => ({ code: maybe(id), message: text(), sent: maybe(() => !roll(2)) }),
  };
  return {
    of,
    id,
    number,
    bytes,
    text,
    maybe,
    command: () => tagged(commands),
    answer: () => tagged(answers),
    settings: () => ({
      name: maybe(id),
      exclusive: !roll(2),
      leaseMs: maybe(number),
      storeTimeoutMs: maybe(number),
      replay: maybe(text),
      channels: maybe(text),
      store: { maxValueBytes: number(), durable: !roll(2) },
    }),
  };
}

/** Calls the component: a value, or an error with a code. Anything else, such as a trap, fails the test. */
function call(work, what) {
  try {
    return work();
  } catch (thrown) {
    const error = thrown?.payload ?? thrown;
    assert.ok(typeof error?.code === 'string' && error.message, `${what()}: ${thrown?.stack ?? thrown}`);
    return undefined;
  }
}

const shown = (value) =>
  JSON.stringify(value, (_, part) => (typeof part === 'bigint' ? String(part) : part)).slice(0, 500);

for (const world of ['engine', 'stored']) {
  describe(`the world \`${world}\` (seed ${SEED})`, () => {
    const keyvalue = new Keyvalue();
    let component;
    before(async () => {
      component = await loadComponent(world, memoryKeyvalue(keyvalue));
    });
    after(() => component?.remove());
    beforeEach(() => {
      keyvalue.fault = () => undefined;
    });

    test('r51 r62 settings that are wrong are errors', () => {
      const { Engine } = component.exports.sessions;
      const draw = drawing(dice(SEED));
      for (let at = 0; at < 300; at += 1) {
        const settings = draw.settings();
        const random = draw.bytes();
        const engine = call(
          () => Engine.open(settings, { now: draw.number(), random }),
          () => shown(settings),
        );
        engine?.[Symbol.dispose]?.();
      }
      assert.throws(
        () => Engine.open(SETTINGS, { now: 0n, random: new Uint8Array(15) }),
        ({ message }) => /random/.test(message),
      );
      assert.throws(
        () => Engine.open(SETTINGS, { ...moment(), now: 2n ** 53n }),
        ({ message }) => /`now` is 9007199254740992/.test(message),
      );
    });

    test('r51 r62 a time that no clock shows is an error, and a run with a lease goes on', () => {
      const { Engine } = component.exports.sessions;
      const engine = Engine.open({ ...SETTINGS, name: 'far-future', exclusive: false }, moment());
      const driven = stepper(engine, newStore());
      driven.command('open-session', { session: 's', options: '{}' });
      engine.begin({ tag: 'run', val: { session: 's', options: JSON.stringify({ provider: MODEL, input: 'Hi.' }) } });
      engine.step(moment());
      for (const now of [2n ** 53n, 2n ** 64n - 1n])
        assert.throws(
          () => engine.step({ ...moment(), now }),
          ({ message, payload }) => /`now`/.test(payload?.message ?? message),
        );
      engine.step({ ...moment(), now: 2n ** 53n - 1n });
      engine[Symbol.dispose]?.();
    });

    test(`r51 r62 ${ENGINES} hosts that pass garbage get errors`, () => {
      const { Engine } = component.exports.sessions;
      for (let at = 0; at < ENGINES; at += 1) {
        const roll = dice(SEED + at);
        const draw = drawing(roll);
        const said = [];
        const did = () => `host ${at}: ${said.slice(-6).map(shown).join('\n')}`;
        const settings = { ...SETTINGS, name: `garbage-${at}` };
        keyvalue.fault = () => undefined;
        const engine = Engine.open(settings, moment());
        keyvalue.fault = () => (roll(6) ? undefined : draw.of(['fails', 'lost']));
        const store = newStore();
        const known = [];
        for (let step = 0; step < STEPS; step += 1) {
          const command = draw.command();
          said.push(command);
          call(() => engine.begin(command), did);
          const progress = call(
            () => engine.step(roll(8) ? moment() : { now: draw.number(), random: draw.bytes() }),
            did,
          );
          for (const { id, kind } of progress?.opened ?? []) {
            known.push(id);
            const isHonest = kind.tag === 'store' && roll(3);
            if (isHonest) call(() => engine.answer(id, { tag: 'store', val: store.perform(kind.val) }), did);
          }
          for (let times = roll(4); times > 0; times -= 1) {
            const id = roll(3) && known.length ? draw.of(known) : draw.number();
            const answer = draw.answer();
            said.push([String(id), answer]);
            call(() => engine.answer(id, answer), did);
            call(() => engine.feed(id, draw.bytes()), did);
          }
          const run = progress?.events[0]?.run ?? draw.id();
          call(() => engine.runState(run), did);
          call(() => engine.snapshot(run), did);
          call(() => engine.effects(), did);
        }
        engine[Symbol.dispose]?.();
      }
      keyvalue.fault = () => undefined;
      // The instance is as good as new.
      const { command } = stepper(Engine.open({ ...SETTINGS, name: 'after' }, moment()), newStore());
      const body = Buffer.from('{"messages":[{"role":"user","content":"Hello."}]}');
      command('append', { session: 's', body, dialect: 'openai-chat', expectedRevision: undefined });
      assert.equal(
        JSON.parse(command('messages', { session: 's', cursor: undefined, limit: undefined }).items).length,
        1,
      );
    });

    test('r51 r62 an answer that comes twice, too late or to no effect is an error', () => {
      const { Engine } = component.exports.sessions;
      const stepping = stepper(Engine.open({ ...SETTINGS, name: 'twice' }, moment()), newStore());
      const engine = Engine.open({ ...SETTINGS, name: 'twice-too' }, moment());
      const { command, opened, step } = stepper(engine, newStore());
      const codeOf = (work) => {
        try {
          work();
        } catch (thrown) {
          return (thrown.payload ?? thrown).code;
        }
      };
      const options = JSON.stringify({ provider: MODEL, input: 'Hi.' });
      const run = command('run', { session: 's', options });
      step();
      const [{ id, kind }] = opened;
      assert.equal(kind.tag, 'call-model');
      assert.equal(
        codeOf(() => engine.answer(id, { tag: 'waited' })),
        'invalid_input',
      );
      assert.equal(
        codeOf(() => engine.answer(id + 1000n, { tag: 'waited' })),
        'unknown_effect',
      );
      const response = { status: 200, headers: [], body: Buffer.from('{"choices":[{"message":{"content":"Hi."}}]}') };
      engine.answer(id, { tag: 'response', val: response });
      assert.equal(
        codeOf(() => engine.answer(id, { tag: 'response', val: response })),
        'wrong_state',
      );
      assert.equal(
        codeOf(() => engine.feed(id, new Uint8Array(1))),
        'wrong_state',
      );
      step();
      step();
      assert.equal(
        codeOf(() => engine.answer(id, { tag: 'response-end' })),
        'wrong_state',
      );
      assert.equal(
        codeOf(() => stepping.command('cancel', run)),
        'not_found',
      );
      command('close');
      assert.equal(
        codeOf(() => engine.begin({ tag: 'sessions', val: {} })),
        'closed',
      );
    });

    test('r51 a function that a host cannot name is config_invalid, with what to do', () => {
      const { Engine } = component.exports.sessions;
      const { command } = stepper(Engine.open({ ...SETTINGS, name: 'functions' }, moment()), newStore());
      for (const options of [
        { tools: { t: { persist: 'f' } } },
        { tools: { t: { execute: 'f' } } },
        { retry: { approveUnsafeReplay: 'f' } },
      ]) {
        assert.throws(
          () =>
            command('run', { session: 's', options: JSON.stringify({ provider: MODEL, input: 'Hi.', ...options }) }),
          ({ code, message }) => code === 'config_invalid' && /leave it out/.test(message),
        );
      }
    });
  });
}
