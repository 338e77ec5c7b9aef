// W3: a cold open and the first body from IndexedDB, in a page that has just been loaded and does nothing else.

import { get, getAll } from './idb.js';
import { openPeers } from './peers.js';
import { INPUT, PARAMS, encode, encoder } from './work.js';
import { raw } from './stored-turns.js';

const DIALECT = 'openai-chat';
const request = { dialect: DIALECT, params: PARAMS[DIALECT], input: INPUT, replay: { freshness: Infinity } };

/** Joins a body from encoded pieces; a piece may contain an array of messages. */
function join(pieces, arrays) {
  const parts = [encoder.encode(`${JSON.stringify(PARAMS[DIALECT]).slice(0, -1)},"messages":[`)];
  for (const piece of pieces) parts.push(arrays ? piece.subarray(1, -1) : piece, encoder.encode(','));
  parts.push(encode({ role: 'user', content: INPUT }), encoder.encode(']}'));
  const body = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    body.set(part, at);
    at += part.length;
  }
  return body;
}

/** Opens the store and a session, and reads its newest 50 messages. */
async function newestPage(rethread, name, id) {
  const client = await rethread.open({ store: 'indexeddb', name });
  const { items } = await (await client.session(id)).messages({ limit: 50 });
  if (items.length !== 50) throw new Error(`the newest page has ${items.length} messages`);
  return null;
}

/** The ways to a first body, and `newest`: a page of 50 messages. */
export const WAYS = ['rethread', 'oneRecord', 'newest', 'rows', 'turns', 'objects', 'blob', 'Dexie', 'TanStack'];

/** Times one way in a page that has done nothing else, from loaded JavaScript on: the load of the wasm counts. `load`
 *  imports the package. Returns milliseconds by name, and the length of the body; null if the peer is not installed. */
export async function firstBody(load, way, { name, size }) {
  const key = `s${size}`;
  const rethread = ['rethread', 'oneRecord', 'newest'].includes(way) ? await load() : null;
  const peer = ['Dexie', 'TanStack'].includes(way) ? (await openPeers([way]))[way] : null;
  if (['Dexie', 'TanStack'].includes(way) && !peer) return null;
  const start = performance.now();
  const parts = {};
  let body = null;
  if (rethread) body = await withRethread(rethread, way, { name, key, size, parts, start });
  else if (peer) body = encode(whole(await peer.get(key)));
  else body = await BARE[way](await raw(), key);
  parts[way] = performance.now() - start;
  return { parts, length: body?.length ?? null };
}

const whole = (messages) => ({ ...PARAMS[DIALECT], messages: [...messages, { role: 'user', content: INPUT }] });

const BARE = {
  rows: async (db, key) => join(await getAll(db, 'rows', key)),
  turns: async (db, key) => join(await getAll(db, 'turns', key), true),
  objects: async (db, key) => encode(whole(await getAll(db, 'objects', key))),
  blob: async (db, key) => join([await get(db, 'blobs', key)], true),
};

async function withRethread(rethread, way, { name, key, size, parts, start }) {
  if (way === 'newest') return newestPage(rethread, name, key);
  await rethread.init();
  const ready = performance.now();
  const client = await rethread.open({ store: 'indexeddb', name });
  const opened = performance.now();
  const session = await client.session(way === 'oneRecord' ? `one${size}` : key);
  const read = performance.now();
  const { body } = await session.render(request);
  parts[`${way} init`] = ready - start;
  parts[`${way} store`] = opened - ready;
  parts[`${way} session`] = read - opened;
  parts[`${way} render`] = performance.now() - read;
  return body;
}
