// W3: a cold open and the first body, in a page that has just been loaded, from IndexedDB.

import { get, getAll } from './idb.js';
import { openPeers } from './peers.js';
import { time } from './stats.js';
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
  return { client };
}

/** Times each way once and returns {name: ms}. `first` is the index of the way that begins: the first one in a page is
 *  slower. */
export async function w3(rethread, name, size, first) {
  const key = `s${size}`;
  const opening = async (id) => {
    const client = await rethread.open({ store: 'indexeddb', name });
    const session = await client.session(id);
    const opened = performance.now();
    const { body } = await session.render(request);
    return { client, opened, body };
  };
  const bare = async (work) => {
    const db = await raw();
    const body = await work(db);
    db.close();
    return { body };
  };
  const parts = {};
  const own = (label, id) => async () => {
    const start = performance.now();
    const { client, opened, body } = await opening(id);
    parts[`${label} open`] = opened - start;
    parts[`${label} render`] = performance.now() - opened;
    return { body, client };
  };
  const peers = await openPeers();
  const ofPeers = Object.entries(peers).map(([peer, { get: read }]) => [
    peer,
    async () => ({
      body: encode({ ...PARAMS[DIALECT], messages: [...(await read(key)), { role: 'user', content: INPUT }] }),
    }),
  ]);
  const ways = {
    rethread: own('rethread', key),
    oneRecord: own('oneRecord', `one${size}`),
    rows: () => bare(async (db) => join(await getAll(db, 'rows', key))),
    turns: () => bare(async (db) => join(await getAll(db, 'turns', key), true)),
    objects: () =>
      bare(async (db) =>
        encode({
          ...PARAMS[DIALECT],
          messages: [...(await getAll(db, 'objects', key)), { role: 'user', content: INPUT }],
        }),
      ),
    blob: () => bare(async (db) => join([await get(db, 'blobs', key)], true)),
    ...Object.fromEntries(ofPeers),
    newest: () => newestPage(rethread, name, key),
  };
  const names = Object.keys(ways);
  const lengths = {};
  for (let at = 0; at < names.length; at += 1) {
    const way = names[(at + first) % names.length];
    let given;
    parts[way] = await time(async () => {
      given = await ways[way]();
    });
    if (given.body) lengths[way] = given.body.length;
    await given.client?.close();
  }
  if (new Set(Object.values(lengths)).size !== 1) throw new Error(`the bodies differ: ${JSON.stringify(lengths)}`);
  return parts;
}
