// Insists that a turn costs a store the same at any length.

import assert from 'node:assert/strict';

/** Lengths of a session, in messages, and how many turns of a session are appended at once until it has them. */
export const LENGTHS = [100, 10_000];
export const TURNS_AT_ONCE = 25;

/** A store without atomic commits lists at most so many keys of the newest appends in each turn. */
const LISTED_KEYS = 256;
const KEY_BYTES = 100;

/** The head is written with each append, and its filter of the session's words grows to so many bytes. */
const FILTER_BYTES = 512;
/** The factor by which localStorage makes it larger: as base64, and read twice. */
const LOCAL_STORAGE_FACTOR = (2 * 4) / 3;

/** `rows` are those of `turnCosts`, at LENGTHS. Numbers in what is stored grow by some digits. */
export function assertConstant([short, long], { listsAppends = false, isLocalStorage = false } = {}) {
  const filter = FILTER_BYTES * (isLocalStorage ? LOCAL_STORAGE_FACTOR : 1);
  assert.deepEqual([long.requests, long.operations], [short.requests, short.operations]);
  for (const direction of ['sent', 'received']) {
    const most =
      direction === 'received' && listsAppends ? LISTED_KEYS * KEY_BYTES : short[direction] * 1.05 + 32 + filter;
    assert.ok(
      long[direction] <= most,
      `${long[direction]} bytes ${direction} at ${long.messages} messages, ${short[direction]} at ${short.messages}`,
    );
  }
}
