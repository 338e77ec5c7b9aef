// A worker that appends as many turns as the address says, to D1 or in a Durable Object, and answers with them.

import { DurableObject } from 'cloudflare:workers';
import { open } from '../../js/entry/workerd.js';
import { d1, durableObject } from '../../js/stores/cloudflare.js';
import { checkFound, turn } from './acknowledged.mjs';

async function act(client, request) {
  const { pathname, searchParams } = new URL(request.url);
  if (pathname.endsWith('/check')) {
    const { acknowledged, doubtful } = await request.json();
    return { found: await checkFound(client, 's', acknowledged, doubtful) };
  }
  const session = await client.session('s');
  const [writer, first, count] = ['writer', 'first', 'count'].map((name) => searchParams.get(name));
  const tokens = [];
  for (let number = Number(first); number < Number(first) + Number(count); number += 1) {
    await session.append(turn(writer, number));
    tokens.push(`${writer}:${number}`);
  }
  return { tokens };
}

export class Chats extends DurableObject {
  async fetch(request) {
    this.client ??= open({ store: durableObject(this.ctx.storage) });
    return Response.json(await act(await this.client, request));
  }
}

let client;
export default {
  async fetch(request, env) {
    try {
      if (new URL(request.url).pathname.startsWith('/object'))
        return await env.CHATS.get(env.CHATS.idFromName('one')).fetch(request);
      client ??= open({ store: d1(env.DB) });
      return Response.json(await act(await client, request));
    } catch (error) {
      return new Response(`${error.code} ${error.message} ${error.stack}`, { status: 500 });
    }
  },
};
