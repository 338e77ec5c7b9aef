// A cold open of one session in a page: with rethread, and a bare read of the same records.

import { done, getAll } from './idb.js';
import { TURN, chatTurn, INPUT, PARAMS, messagesOf } from './work.js';

const DIALECT = 'openai-chat';
const REQUEST = { dialect: DIALECT, params: PARAMS[DIALECT], input: INPUT, replay: { freshness: Infinity } };

/** Stores two sessions of `size` messages in the database `name`: "turns", one append a turn, and "whole", one
 *  append. */
export async function store(rethread, name, size) {
  const client = await rethread.open({ store: 'indexeddb', name });
  const session = await client.session('turns');
  for (let turn = 0; turn < size / TURN; turn += 1) await session.append({ messages: chatTurn(turn) }, DIALECT);
  const whole = await client.session('whole');
  await whole.append({ messages: messagesOf(DIALECT, size / TURN) }, DIALECT);
  await client.close();
}

/** Reads all records of a session without rethread; returns milliseconds. */
async function readRecords(name, session) {
  const db = await done(indexedDB.open(name));
  const start = performance.now();
  await getAll(db, 'log', session);
  const took = performance.now() - start;
  db.close();
  return took;
}

/** Opens a session in a page that has just been loaded, and renders its first body. Returns milliseconds: `store` until
 *  the store is open, `session` until the session is, `render`, their sum `total`, `read` for a bare read of the same
 *  records, and `decode`, what opening the session takes beyond that; and in bytes the growth of the wasm's linear
 *  memory by the session (`sessionMemory`), and by session and render (`memory`). `linearMemory` returns its present
 *  size. */
export async function coldOpen(rethread, name, session, linearMemory) {
  // The first read after a start of the browser is slower: it must not count for one of the two.
  await readRecords(name, session);
  const read = await readRecords(name, session);
  const start = performance.now();
  const client = await rethread.open({ store: 'indexeddb', name });
  const storeOpen = performance.now();
  const before = linearMemory();
  const opened = await client.session(session);
  const sessionOpen = performance.now();
  const sessionMemory = linearMemory() - before;
  const { body } = await opened.render(REQUEST);
  const end = performance.now();
  const took = {
    store: storeOpen - start,
    session: sessionOpen - storeOpen,
    render: end - sessionOpen,
    total: end - start,
    read,
  };
  const memory = linearMemory() - before;
  await client.close();
  return { ...took, decode: took.session - read, sessionMemory, memory, bodyBytes: body.length };
}
