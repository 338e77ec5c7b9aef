// js/bytes.js: base64 of bytes of any size.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { base64Of, base64OfText, bytesOf } from '../../js/bytes.js';

test('bytes of any size are base64 as Node writes it, and come back', () => {
  for (const size of [0, 1, 2, 3, 0x7fff, 0x8000, 0x8001, 300_000]) {
    const bytes = Uint8Array.from({ length: size }, (_, at) => (at * 31 + (at >> 8)) % 256);
    const base64 = base64Of(bytes);
    assert.equal(base64, Buffer.from(bytes).toString('base64'), `${size} bytes`);
    assert.deepEqual(bytesOf(base64), bytes, `${size} bytes`);
  }
  assert.equal(base64OfText('é🦀'), Buffer.from('é🦀').toString('base64'));
});
