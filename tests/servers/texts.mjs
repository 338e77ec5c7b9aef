// What a session's messages say, and whether that is what several writers wrote.

import assert from 'node:assert/strict';

/** The texts of all messages, oldest first. */
export async function allTexts(session) {
  const pages = [];
  for (let cursor; cursor !== null; ) {
    const page = await session.messages(cursor === undefined ? { limit: 200 } : { limit: 200, cursor });
    pages.unshift(page.items);
    cursor = page.cursor;
  }
  return pages.flat().map(({ parts }) => parts[0].text);
}

/** Insists that each writer's messages are there once, in its order. */
export function assertNothingLost(texts, writers, count) {
  assert.equal(texts.length, writers * count);
  for (let writer = 0; writer < writers; writer += 1) {
    const own = texts.filter((text) => text.startsWith(`${writer}:`));
    assert.deepEqual(
      own,
      Array.from({ length: count }, (_, number) => `${writer}:${number}`),
    );
  }
}

/** How often a message is of another writer than the one before it. */
export const changesOfWriter = (texts) =>
  texts.filter((text, at) => at > 0 && text.split(':')[0] !== texts[at - 1].split(':')[0]).length;
