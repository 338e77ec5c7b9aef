// A wrong option is an error that says what is expected and what was given, and quotes no value: it may be a
// credential.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { open, repair } from '../../js/entry/node.js';

const CASES = [
  [{ replay: 'secret' }, '`replay` must be an object, not a string'],
  [{ replay: [] }, '`replay` must be an object, not a list'],
  [{ replay: null, channels: 7 }, '`channels` must be an object, not this number'],
  [{ replay: () => {} }, '`replay` must be an object, not a function'],
  [{ replay: new Uint8Array(1) }, '`replay` must be an object, not bytes'],
  [{ replay: { reducers: {} } }, '`replay.reducers` must be a list, not an object'],
  [{ replay: { freshness: {} } }, '`replay.freshness` must be a number, not an object'],
];

for (const [options, sentence] of CASES) {
  test(`r62 a wrong option: ${sentence}`, async () => {
    const error = await open({ store: 'memory', ...options }).then(
      () => assert.fail('it was taken'),
      (thrown) => thrown,
    );
    assert.equal(error.code, 'config_invalid');
    assert.ok(error.message.startsWith(sentence), error.message);
    assert.ok(!error.message.includes('secret'));
  });
}

test('r62 a wrong option of repair', () => {
  assert.throws(() => repair('{"messages":[]}', 'openai-chat', /** @type {any} */ ({ danglingText: 5 })), {
    code: 'config_invalid',
    message: /`danglingText` must be a string, not this number/,
  });
  assert.throws(() => repair('{"messages":[]}', 'openai-chat', /** @type {any} */ ({ danglingCalls: 'drop' })), {
    code: 'config_invalid',
    message: /`danglingCalls` must be "synthesize" or "omit", not "drop"/,
  });
});
