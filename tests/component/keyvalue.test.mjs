// The world `stored` keeps what every store keeps, over a bucket of the host: the conformance suite runs inside of the
// component, and every key and value crosses its boundary. Calls of the bucket fail, and lose replies.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { loadComponent } from './component.mjs';
import { Keyvalue, memoryKeyvalue } from './keyvalue.mjs';
import { moment, SETTINGS, stepper } from './stepping.mjs';

const random = () => crypto.getRandomValues(new Uint8Array(32));
const state = new Keyvalue();
let component;
/** The same component once more, as another process has it, over the same buckets. */
let other;
before(async () => {
  component = await loadComponent('conformance', memoryKeyvalue(state));
  other = await loadComponent('conformance', memoryKeyvalue(state));
});
after(() => {
  component?.remove();
  other?.remove();
});

/** A bucket of its own for each test. */
let buckets = 0;
const newBucket = () => {
  buckets += 1;
  return `bucket-${buckets}`;
};
const failureOf = (work) => {
  try {
    work();
    return undefined;
  } catch (thrown) {
    const { code, message } = thrown.payload ?? thrown;
    assert.ok(code, String(thrown.stack));
    return `${code}: ${message}`;
  }
};

for (const swaps of [true, false]) {
  describe(swaps ? 'a bucket that swaps' : 'a bucket whose atomics fail', () => {
    before(() => {
      state.swaps = swaps;
      state.fault = () => undefined;
    });
    after(() => {
      state.fault = () => undefined;
    });

    test('r46 r51 it conforms', () => {
      const names = component.exports.conformance.checks();
      assert.ok(names.length >= 25, names.join());
      // A bucket for each: a list by recency reads the heads of all sessions, also those of other checks.
      let keys = 0;
      const failed = names
        .map((name) => {
          const bucket = newBucket();
          const failure = failureOf(() => component.exports.conformance.check(name, bucket, 'run', random()));
          keys += state.buckets.get(bucket)?.size ?? 0;
          return [name, failure];
        })
        .filter(([, failure]) => failure);
      assert.deepEqual(failed, []);
      assert.ok(keys > 10);
    });

    test('r46 r51 a write that fails or whose reply is lost, anywhere, leaves a whole session that goes on', () => {
      const body = Buffer.from(
        '{"messages":[{"role":"user","content":"Hello."},{"role":"assistant","content":"Hi."}]}',
      );
      const append = { session: 's', body, dialect: 'openai-chat', expectedRevision: undefined };
      for (const kind of ['fails', 'lost']) {
        let faults = 0;
        for (let at = 1; ; at += 1) {
          const name = newBucket();
          const open = () =>
            stepper(component.exports.sessions.Engine.open({ ...SETTINGS, name, exclusive: false }, moment()));
          const one = open();
          one.command('append', append);
          let writes = 0;
          let injected = false;
          state.fault = (call) => {
            if (!['set', 'swap', 'delete'].includes(call)) return undefined;
            writes += 1;
            if (writes !== at) return undefined;
            injected = true;
            return kind;
          };
          const failure = failureOf(() => one.command('append', append));
          state.fault = () => undefined;
          if (!injected) break;
          faults += 1;
          const other = open();
          const count = () =>
            JSON.parse(other.command('messages', { session: 's', cursor: undefined, limit: undefined }).items).length;
          const before = count();
          assert.ok(before === 4 || (failure && before === 2), `${kind} at ${at}: ${before} messages, ${failure}`);
          other.command('append', append);
          assert.equal(count(), before + 2);
        }
        assert.ok(faults >= (swaps ? 2 : 1), `${kind}: ${faults} writes`);
      }
    });

    test('r47 r51 another process that writes in the middle of an append loses nothing, and takes nothing', () => {
      const append = (text) => ({
        session: 's',
        body: Buffer.from(JSON.stringify({ messages: [{ role: 'user', content: text }] })),
        dialect: 'openai-chat',
        expectedRevision: undefined,
      });
      let interruptions = 0;
      for (let at = 1; ; at += 1) {
        const settings = { ...SETTINGS, name: newBucket(), exclusive: false };
        const open = ({ exports }) => stepper(exports.sessions.Engine.open(settings, moment()));
        const [one, two] = [open(component), open(other)];
        one.command('append', append('first'));
        two.command('messages', { session: 's', cursor: undefined, limit: undefined });
        let writes = 0;
        let interrupted = false;
        state.fault = (call) => {
          if (!['set', 'swap'].includes(call) || interrupted) return;
          writes += 1;
          if (writes !== at) return;
          interrupted = true;
          two.command('append', append('two'));
        };
        one.command('append', append('one'));
        state.fault = () => undefined;
        if (!interrupted) break;
        interruptions += 1;
        const third = open(component);
        const { items } = third.command('messages', { session: 's', cursor: undefined, limit: undefined });
        const texts = JSON.parse(items).map(({ parts }) => parts[0].text);
        if (swaps) assert.deepEqual(texts.sort(), ['first', 'one', 'two'], `interrupted at ${at}`);
        // Without a swap it is a fork: one side is shown, the other one is kept.
        else assert.ok(texts.length >= 2 && texts.includes('first'), `interrupted at ${at}: ${texts}`);
      }
      assert.ok(interruptions >= (swaps ? 2 : 1), `${interruptions} interruptions`);
    });

    test('r51 a bucket that cannot be opened is an error', () => {
      const name = newBucket();
      for (const call of ['get', 'set', 'listKeys'])
        for (const kind of ['fails', 'lost']) {
          state.fault = (called) => (called === call ? kind : undefined);
          const failure = failureOf(() => component.exports.sessions.Engine.open({ ...SETTINGS, name }, moment()));
          state.fault = () => undefined;
          if (failure) assert.match(failure, /^(store_error|unavailable|config_invalid)/);
        }
      assert.equal(
        failureOf(() => component.exports.sessions.Engine.open({ ...SETTINGS, name }, moment())),
        undefined,
      );
      state.buckets.get(name).set('foreign', { value: new Uint8Array(1) });
      state.buckets.get(name).delete('schema');
      const refused = failureOf(() => component.exports.sessions.Engine.open({ ...SETTINGS, name }, moment()));
      assert.match(refused, /^config_invalid/);
    });
  });
}
