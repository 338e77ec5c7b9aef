// W2: storing one turn, in a page; and a whole run with its journal, with every effect answered at once.

import { median, race, summary, time } from './stats.js';
import { done, openRaw, put, readThenPut } from './idb.js';
import { openPeers } from './peers.js';
import { TURN, chatTurn, encode, messagesOf } from './work.js';

const HEAD_BYTES = 220;
const RAW = ['rows', 'turns', 'heads', 'whole', 'log', 'audit', 'objects', 'blobs'];
const DIALECT = 'openai-chat';

export const raw = () => openRaw('bench-raw', RAW);

/** Stores sessions of each size, turn by turn as in a chat, and the same messages in every form that the comparisons
 *  read. */
export async function fill(rethread, name, sizes) {
  const client = await rethread.open({ store: 'indexeddb', name });
  const db = await raw();
  const peers = await openPeers();
  const took = {};
  for (const size of sizes) {
    const session = await client.session(`s${size}`);
    const turns = size / TURN;
    took[size] = await time(async (at) => {
      await session.append({ messages: chatTurn(at) }, DIALECT);
    }, turns);
    const whole = await client.session(`one${size}`);
    await whole.append({ messages: messagesOf(DIALECT, turns) }, DIALECT);
    const messages = messagesOf(DIALECT, turns);
    await put(
      db,
      'relaxed',
      messages.flatMap((message, at) => [
        ['rows', [`s${size}`, at], encode(message)],
        ['objects', [`s${size}`, at], message],
      ]),
    );
    await put(
      db,
      'relaxed',
      Array.from({ length: turns }, (_, at) => ['turns', [`s${size}`, at], encode(chatTurn(at))]),
    );
    await put(db, 'relaxed', [['blobs', `s${size}`, encode(messages)]]);
    for (const peer of Object.values(peers)) await peer.put(`s${size}`, messages);
  }
  db.close();
  await segmentsMade(name);
  await client.close();
  return took;
}

/** Waits until old records were merged: the number of records has not changed for a while. */
async function segmentsMade(name) {
  const db = await done(indexedDB.open(name));
  const count = () => done(db.transaction('log').objectStore('log').count());
  let last = -1;
  for (let same = 0; same < 4; ) {
    await new Promise((resolve) => {
      setTimeout(resolve, 1000);
    });
    const now = await count();
    same = now === last ? same + 1 : 0;
    last = now;
  }
  db.close();
}

/** Returns the bytes that the newest append wrote to each table, and those of its messages on the wire. */
async function bytesOf(name, session) {
  const db = await done(indexedDB.open(name));
  const last = (store) =>
    new Promise((resolve, reject) => {
      const request = db
        .transaction(store)
        .objectStore(store)
        .openCursor(IDBKeyRange.bound([session], [session, []]), 'prev');
      request.onsuccess = () => resolve(request.result?.value);
      request.onerror = () => reject(request.error);
    });
  const log = (await last('log')).length;
  const audit = 2 * (await last('tool_invocations')).v.length;
  const head = await done(db.transaction('heads').objectStore('heads').get(session));
  db.close();
  return { log, audit, head: head.v.length + JSON.stringify(head.o).length };
}

async function appends(rethread, name, durability, sizes, rounds) {
  const client = await rethread.open({ store: 'indexeddb', name, durability });
  const db = await raw();
  const head = new Uint8Array(HEAD_BYTES);
  const row = new Uint8Array(250);
  const contenders = {};
  for (const size of sizes) {
    const session = await client.session(`s${size}`);
    const of = { own: size / TURN + 5000, six: size + 50_000, one: size / TURN + 50_000, same: size + 50_000 };
    const key = `s${size}`;
    contenders[`rethread ${size}`] = () => session.append({ messages: chatTurn(of.own++) }, DIALECT);
    contenders[`six ${size}`] = () =>
      put(db, durability, [
        ...chatTurn(of.six).map((message) => ['rows', [key, of.six++], encode(message)]),
        ['heads', key, head],
      ]);
    contenders[`one ${size}`] = () =>
      put(db, durability, [
        ['turns', [key, of.one], encode(chatTurn(of.one++))],
        ['heads', key, head],
      ]);
    contenders[`same ${size}`] = () => {
      const audit = () => ['audit', [key, of.same++], { t: 'search_orders', s: 'ok', c: null, a: of.same, v: row }];
      return readThenPut(
        db,
        durability,
        ['heads', key],
        [
          ['log', [key, of.same], encode(chatTurn(of.same++))],
          audit(),
          audit(),
          ['heads', key, { r: of.same, v: head, c: null, o: ['an-operation', of.same], d: false, w: 0 }],
        ],
      );
    };
  }
  const times = await race(contenders, { rounds, warm: 4 });
  db.close();
  await client.close();
  return times;
}

/** Rewrites the whole conversation at each turn, as many applications do. */
async function rewrites(sizes) {
  const db = await raw();
  const times = {};
  const peers = await openPeers();
  for (const size of sizes) {
    const messages = messagesOf(DIALECT, size / TURN);
    let next = size / TURN;
    const samples = [];
    for (let at = 0; at < 7; at += 1) {
      messages.push(...chatTurn(next++));
      samples.push(await time(() => put(db, 'relaxed', [['whole', `s${size}`, JSON.stringify(messages)]])));
    }
    times[`whole ${size}`] = summary(samples.slice(1));
    for (const [name, peer] of Object.entries(peers)) {
      const took = [];
      for (let at = 0; at < 7; at += 1) {
        messages.push(...chatTurn(next++));
        took.push(await time(() => peer.put(`w${size}`, messages)));
      }
      times[`${name} ${size}`] = summary(took.slice(1));
    }
  }
  db.close();
  return times;
}

const completion = (message) => ({
  id: 'c',
  object: 'chat.completion',
  created: 1,
  model: 'gpt-bench',
  choices: [{ index: 0, message, finish_reason: message.tool_calls ? 'tool_calls' : 'stop' }],
  usage: { prompt_tokens: 10, completion_tokens: 10, total_tokens: 20 },
});

/** Runs one turn: question, two calls, two results, answer. Only the store takes time. */
async function play(session, at) {
  const [user, asked, one, two, answer] = chatTurn(at);
  const result = { [asked.tool_calls[0].id]: one.content, [asked.tool_calls[1].id]: two.content };
  const replies = [asked, answer];
  const tool = { description: 'Looks something up.', parameters: { type: 'object' } };
  const run = await session.run({
    input: user.content,
    provider: {
      dialect: DIALECT,
      url: 'https://model.example/v1/chat/completions',
      params: { model: 'gpt-bench' },
      stream: false,
    },
    tools: { search_orders: tool, read_ticket: tool },
    replay: { freshness: Infinity },
  });
  const perform = async (effect) => {
    if (effect.type === 'call_model') {
      await run.answer(effect.id, {
        type: 'response',
        status: 200,
        headers: { 'content-type': 'application/json' },
        body: encode(completion(replies.shift())),
      });
    } else if (effect.type === 'run_tool') {
      await run.answer(effect.id, { type: 'started' });
      await run.answer(effect.id, { type: 'tool_result', content: result[effect.callId] });
    } else throw new Error(`an effect that was not asked for: ${effect.type}`);
  };
  while (run.status === 'running') {
    const changed = run.changed();
    const effects = run.effects();
    if (effects.length) await Promise.all(effects.map(perform));
    else await changed;
  }
  const { status, error } = run.result();
  if (status !== 'finished') throw new Error(`the run ${status}: ${JSON.stringify(error)}`);
}

async function runs(rethread, name, sizes) {
  const times = {};
  for (const store of ['indexeddb', 'memory']) {
    const client = await rethread.open({ store, name: store === 'memory' ? 'bench-runs' : name });
    const contenders = {};
    for (const size of sizes) {
      const session = await client.session(`s${size}`);
      if (store === 'memory') await session.append({ messages: messagesOf(DIALECT, size / TURN) }, DIALECT);
      let at = 90_000 + size;
      contenders[`run ${store} ${size}`] = () => play(session, at++);
      contenders[`append ${store} ${size}`] = () => session.append({ messages: chatTurn(at++) }, DIALECT);
    }
    Object.assign(times, await race(contenders, { rounds: 15, warm: 2 }));
    await client.close();
  }
  return times;
}

export async function w2(rethread, name, sizes, rounds) {
  const relaxed = await appends(rethread, name, 'relaxed', sizes, rounds);
  const strict = await appends(rethread, name, 'strict', sizes, Math.ceil(rounds / 2));
  const stored = await bytesOf(name, `s${sizes[0]}`);
  const wire = median(Array.from({ length: 50 }, (_, at) => encode(chatTurn(at)).length));
  return {
    relaxed,
    strict,
    whole: await rewrites(sizes),
    runs: await runs(rethread, name, sizes),
    stored: { ...stored, wire },
  };
}
