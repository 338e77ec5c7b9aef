// r62: what is no body, and no dialect, is an error. It was read as an empty conversation, which looked repaired.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { convert, heal, repair, validate } from '../../js/entry/formats-node.js';

const DIALECTS = /the dialects are openai-chat, openai-responses, anthropic, .*gemini-interactions$/;
const CALLS = {
  validate: (body, dialect) => validate(body, dialect),
  repair: (body, dialect) => repair(body, dialect),
  heal: (body, dialect) => heal(body, dialect, '{}'),
  convert: (body, dialect) => convert(body, dialect, 'anthropic'),
};
const NO_BODIES = [
  [undefined, 'undefined'],
  [null, 'null'],
  [5, 'number'],
  [true, 'boolean'],
  [5n, 'bigint'],
  [Symbol('body'), 'symbol'],
  [() => ({ messages: [] }), 'function'],
  [Promise.resolve({ messages: [] }), 'a promise: await it'],
  [new Response('{"messages":[]}'), 'Response: await its `text()`'],
  [new Blob(['{"messages":[]}']), 'Blob: await its `text()`'],
  [new Map(), 'Map'],
  [new ArrayBuffer(2), 'ArrayBuffer: pass `new Uint8Array(buffer)`'],
];

for (const [name, call] of Object.entries(CALLS)) {
  test(`r62 ${name} takes an object, text or bytes, and nothing else is an empty conversation`, () => {
    for (const [body, word] of NO_BODIES) {
      assert.throws(() => call(/** @type {any} */ (body), 'openai-chat'), {
        code: 'invalid_input',
        message: `the body must be an object, a string of JSON or a Uint8Array, not ${word}`,
      });
    }
    for (const body of [{ messages: [] }, '{"messages":[]}', new TextEncoder().encode('{"messages":[]}')])
      call(body, 'openai-chat');
  });

  test(`r62 ${name} without a dialect lists the dialects`, () => {
    for (const dialect of [undefined, null])
      assert.throws(
        () => call({ messages: [] }, /** @type {any} */ (dialect)),
        (error) => {
          assert.equal(error.code, 'invalid_input');
          return DIALECTS.test(error.message);
        },
      );
  });
}
