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
      if (new URL(request.url).pathname.startsWith('/object')) return await env.CHATS.get(env.CHATS.idFromName('one')).fetch(request);
      return Response.json(await act(() => d1(env.DB), d1, request.url));
    } catch (error) {
      return new Response(`${error.code} ${error.message} ${error.stack}`, { status: 500 });
    }
  },
};
