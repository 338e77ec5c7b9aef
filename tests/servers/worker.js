// A worker that does with D1, or in a Durable Object, what the address says.

import { DurableObject } from 'cloudflare:workers';
import { open } from '../../js/entry/workerd.js';
import { d1, durableObject } from '../../js/stores/cloudflare.js';
import module from '../../dist/testing_bg.wasm';
import { chat, startTesting } from './testing.mjs';

let testing;

const codeOf = async (action) => {
  try {
    await action();
    return null;
  } catch (error) {
    return error.code;
  }
};

async function act(driver, wrongDriver, address) {
  testing ??= startTesting(module);
  const program = await testing;
  const { pathname, searchParams } = new URL(address);
  switch (pathname.split('/')[2]) {
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
      const code = await codeOf(() => open({ store: driver() }));
      const [tables] = await driver().transaction([{ sql: "SELECT name FROM sqlite_master WHERE name LIKE 'rethread%'", params: [] }]);
      return { code, tables: tables.map(({ name }) => name) };
    }
    case 'strict':
      return { code: await codeOf(async () => (await open({ store: driver(), durability: 'strict' })).close()) };
    default: {
      const codes = [await codeOf(() => wrongDriver(undefined)), await codeOf(() => wrongDriver({ sql: 1 }))];
      await driver().transaction([{ sql: 'UPDATE rethread_schema SET version = 9', params: [] }]);
      codes.push(await codeOf(() => open({ store: driver() })));
      await driver().transaction([{ sql: 'UPDATE rethread_schema SET version = 1', params: [] }]);
      return { codes };
    }
  }
}

export class Chats extends DurableObject {
  async fetch(request) {
    return Response.json(await act(() => durableObject(this.ctx.storage), durableObject, request.url));
  }
}

export default {
  async fetch(request, env) {
    try {
      // The address says which store, and what it does; `foreign` is in a database of its own.
      const [, store, action] = new URL(request.url).pathname.split('/');
      const name = action === 'foreign' ? 'FOREIGN' : 'DB';
      if (store === 'object') return await env.CHATS.get(env.CHATS.idFromName(name)).fetch(request);
      return Response.json(await act(() => d1(env[name]), d1, request.url));
    } catch (error) {
      return new Response(`${error.code} ${error.message} ${error.stack}`, { status: 500 });
    }
  },
};
