// A worker that does with D1, Workers KV, or in a Durable Object, what the address says.

import { DurableObject } from 'cloudflare:workers';
import { open } from '../../js/entry/workerd.js';
import { d1, durableObject, workersKv } from '../../js/stores/cloudflare.js';
import module from '../../dist/testing_bg.wasm';
import { readFrozenChat } from '../frozen/frozen-chat.mjs';
import { chat, startTesting } from './testing.mjs';
import { counted, turnCosts } from './turn-costs.mjs';
import { kvLimit, lagging, limited, randomNumbers, readFromFarAway } from './weak-services.mjs';

let testing;

/** The code of the error that an action throws, and its message if that does not name the store. */
const codeOf = async (action, store = '') => {
  try {
    await action();
    return null;
  } catch (error) {
    return error.message.includes(store) ? error.code : `${error.code} ${error.message}`;
  }
};

const bytesOf = (text) => Uint8Array.from(atob(text), (character) => character.charCodeAt(0));

async function act(driver, wrongDriver, request) {
  testing ??= startTesting(module);
  const program = await testing;
  const { pathname, searchParams } = new URL(request.url);
  switch (pathname.split('/')[2]) {
    case 'costs': {
      const { lengths, turnsAtOnce } = await request.json();
      return turnCosts(open, counted(driver()), lengths, turnsAtOnce);
    }
    case 'frozen': {
      const statements = await request.json();
      await driver().transaction(
        statements.map(({ sql, params }) => ({
          sql,
          params: params.map((value) => (value?.bytes === undefined ? value : bytesOf(value.bytes))),
        })),
      );
      return readFrozenChat(open, { store: driver() });
    }
    case 'suite':
      return program.checkStore(driver, `suite-${Math.random()}`);
    case 'chat':
      return { store: await chat(open, driver) };
    case 'write':
      return { conflicts: await program.writeWithRetry(driver(), 'both', Number(searchParams.get('writer')), 200) };
    case 'written':
      await program.nothingLost(driver(), 'both', 200);
      return {};
    case 'foreign': {
      await driver().transaction([{ sql: 'CREATE TABLE IF NOT EXISTS rethread_log (id INTEGER)', params: [] }]);
      const code = await codeOf(() => open({ store: driver() }), 'the sqlite store');
      const [tables] = await driver().transaction([
        { sql: "SELECT name FROM sqlite_master WHERE name LIKE 'rethread%'", params: [] },
      ]);
      return { code, tables: tables.map(({ name }) => name) };
    }
    case 'strict':
      return { code: await codeOf(async () => (await open({ store: driver(), durability: 'strict' })).close()) };
    default: {
      const codes = [await codeOf(() => wrongDriver(undefined)), await codeOf(() => wrongDriver({ sql: 1 }))];
      await driver().transaction([{ sql: 'UPDATE rethread_schema SET version = 9', params: [] }]);
      codes.push(await codeOf(() => open({ store: driver() }), 'the sqlite store'));
      await driver().transaction([{ sql: 'UPDATE rethread_schema SET version = 1', params: [] }]);
      return { codes };
    }
  }
}

/** Two writers on Workers KV, of which one does not see what the other one has written: as in two places of the
 *  world. */
async function fork(namespace) {
  const texts = async (session) => (await session.messages()).items.map(({ parts }) => parts[0].text);
  const hidden = new Set();
  const far = {
    getWithMetadata() {},
    get: async (key, type) => (hidden.has(key) ? null : namespace.get(key, type)),
    list: async (options) => {
      const page = await namespace.list(options);
      return { ...page, keys: page.keys.filter(({ name }) => !hidden.has(name)) };
    },
    put: (key, value) => namespace.put(key, value),
    delete: (key) => namespace.delete(key),
  };
  const prefix = `fork-${Math.random()}/`;
  const at = async (binding) => (await open({ store: workersKv(binding, { prefix }) })).session('s');
  const [one, two] = [await at(namespace), await at(far)];
  await one.append(message('first'));
  await two.refresh();
  await one.append(message('here'));
  await one.append(message('here too'));
  for (const { name } of (await namespace.list({ prefix: `${prefix}append:` })).keys)
    if (!name.includes(':00000000000001:')) hidden.add(name);
  await two.append(message('there'));
  const before = await texts(two);
  hidden.clear();
  const third = await at(namespace);
  const readers = [];
  for (const session of [one, two, third]) {
    await session.refresh();
    readers.push({
      texts: await texts(session),
      branches: (await session.branches()).map(({ kind, messageCount }) => [kind, messageCount]),
    });
  }
  return { before, readers };
}

const message = (text) => [{ role: 'user', parts: [{ type: 'text', text }] }];

/** A namespace that refuses two writes of one key within a second, as Workers KV does, and now and then any write. */
async function limits(namespace) {
  const prefix = `limits-${Math.random()}/`;
  const written = new Map();
  let writes = 0;
  let refused = 0;
  let isShut = false;
  // By key: a pack may be written at the same time.
  const tries = new Map();
  const binding = limited(namespace, (key) => {
    writes += 1;
    const isEarly = Date.now() < (written.get(key) ?? -Infinity) + 1000;
    if (!isShut && !isEarly && writes % 40 !== 0) return void written.set(key, Date.now());
    refused += 1;
    if (isShut) tries.set(key, (tries.get(key) ?? 0) + 1);
    return kvLimit();
  });
  const session = await (await open({ store: workersKv(binding, { prefix }) })).session('s');
  for (let number = 0; number < 150; number += 1) await session.append(message(String(number)));
  const before = refused;
  isShut = true;
  const code = await codeOf(() => session.append(message('refused')));
  isShut = false;
  await session.append(message('150'));
  const again = await (await open({ store: workersKv(namespace, { prefix }) })).session('s');
  const texts = (await again.messages({ limit: 1000 })).items.map(({ parts }) => parts[0].text);
  return {
    texts,
    refused: before,
    tries: Math.max(...tries.values()),
    code,
    branches: (await again.branches()).length,
  };
}

/** Readers whose view of the namespace is old. */
async function stale(namespace) {
  const all = [];
  for (let seed = 1; seed <= 8; seed += 1) {
    const prefix = `stale-${Math.random()}/`;
    const far = lagging(namespace, randomNumbers(seed));
    const at = (binding) => () => open({ store: workersKv(binding, { prefix }) });
    all.push(await readFromFarAway(at(namespace), at(far.view), far, 6));
  }
  return all;
}

/** Loads what unstorage had: its keys begin with `rethread:`, and the same engine wrote them. */
async function frozenKv(namespace, dump) {
  const prefix = 'frozen/';
  for (const [key, value] of Object.entries(dump))
    await namespace.put(prefix + key.replace(/^rethread:/, ''), bytesOf(value));
  return readFrozenChat(open, { store: workersKv(namespace, { prefix }) });
}

/** Keys of others, a newer layout, no namespace, a namespace as it is, a promise that it cannot keep. */
async function wrongKv(namespace) {
  const codes = [await codeOf(() => workersKv(undefined)), await codeOf(() => open({ store: namespace }))];
  await namespace.put('newer/schema', 'rethread appends 2');
  await namespace.put('other/user', 'somebody');
  for (const prefix of ['newer/', 'other/'])
    codes.push(await codeOf(() => open({ store: workersKv(namespace, { prefix }) }), 'the workers-kv store'));
  codes.push(await codeOf(() => open({ store: workersKv(namespace), durability: 'strict' })));
  return { codes, keys: (await namespace.list({ prefix: 'other/' })).keys.length };
}

export class Chats extends DurableObject {
  async fetch(request) {
    return Response.json(await act(() => durableObject(this.ctx.storage), durableObject, request));
  }
}

export default {
  async fetch(request, env) {
    try {
      // The address says which store, and what it does; `foreign` and `frozen` are in databases of their own.
      const [, store, action] = new URL(request.url).pathname.split('/');
      const name = { foreign: 'FOREIGN', frozen: 'FROZEN' }[action] ?? 'DB';
      if (store === 'object') return await env.CHATS.get(env.CHATS.idFromName(name)).fetch(request);
      if (store === 'kv' && action === 'fork') return Response.json(await fork(env.KV));
      if (store === 'kv' && action === 'limits') return Response.json(await limits(env.KV));
      if (store === 'kv' && action === 'stale') return Response.json(await stale(env.KV));
      if (store === 'kv' && action === 'frozen') return Response.json(await frozenKv(env.KV, await request.json()));
      if (store === 'kv' && action === 'wrong') return Response.json(await wrongKv(env.KV));
      if (store === 'kv') return Response.json(await act(() => workersKv(env.KV), workersKv, request));
      return Response.json(await act(() => d1(env[name]), d1, request));
    } catch (error) {
      return new Response(`${error.code} ${error.message} ${error.stack}`, { status: 500 });
    }
  },
};
