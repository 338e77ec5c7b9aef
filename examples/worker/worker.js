// A chat in a Worker: each chat is a Durable Object, stored in the SQLite database that belongs to it.

import { DurableObject } from 'cloudflare:workers';
import { open } from 'rethread';
import { durableObject } from 'rethread/cloudflare';
import { Chat } from '../chat/chat.js';
import page from '../chat/page.html';

export class ChatObject extends DurableObject {
  constructor(ctx, env) {
    super(ctx, env);
    // Requests wait for this; if it fails, the next one gets a new object.
    ctx.blockConcurrencyWhile(async () => {
      const store = await open({ store: durableObject(ctx.storage) });
      this.chat = new Chat(await store.session('chat'), env, { longestPauseMs: 1000, onPause: (at) => this.setAlarm(at) });
    });
  }

  setAlarm(at = Date.now() + Number(this.env.ALARM_MS ?? 20_000)) {
    return this.ctx.storage.setAlarm(at);
  }

  async fetch(request) {
    // Set before the run begins: if this object is evicted, the alarm starts it again.
    if (request.method === 'POST') await this.setAlarm();
    else await this.alarm(); // nobody who comes back has to wait for the alarm
    return this.chat.fetch(request);
  }

  /** Resumes an interrupted run. The next alarm keeps the object alive, or wakes it up when the model may be called again. */
  async alarm() {
    const run = await this.chat.resume();
    if (run) await this.setAlarm(run.state === 'live' ? undefined : run.notBefore);
  }
}

export default {
  async fetch(request, env) {
    const { pathname } = new URL(request.url);
    if (pathname === '/') return new Response(page, { headers: { 'content-type': 'text/html; charset=utf-8' } });
    // Check here who asks: as it is, whoever knows a chat's id reads it.
    const id = /^\/chats\/([\w-]{36})$/.exec(pathname)?.[1];
    return id ? env.CHATS.get(env.CHATS.idFromName(id)).fetch(request) : new Response('not found', { status: 404 });
  },
};
