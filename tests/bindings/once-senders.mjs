// Tools of `rethread/once` in tests: sessions as several processes have them, and tools that end when a test says so.

import { open } from 'rethread';
import { once } from 'rethread/once';
import { MemoryLogStore } from '../packaging/projects/store/memory-log-store.js';

/** A store whose appends fail while `failing` is true. */
export class FailingStore extends MemoryLogStore {
  failing = false;

  append(...args) {
    if (this.failing) throw new Error('the disk is full');
    return super.append(...args);
  }
}

export const MAY_HAVE_RUN = (error) =>
  error.code === 'wrong_state' &&
  error.details.outcome === 'unknown' &&
  /^Interrupted: this call has no recorded result\. It may or may not have run/.test(error.message);
export const mail = { to: 'ann' };

/** The session as another process has it: what runs in this one is known by the session's id. */
function elsewhereOf(session, at) {
  return new Proxy(session, {
    get(target, name) {
      const member = target[name];
      if (name === 'id') return `${member} ${at}`;
      return typeof member === 'function' ? member.bind(target) : member;
    },
  });
}

/** The session as `count` processes have it. */
export async function openings(count, store = new MemoryLogStore()) {
  const clients = await Promise.all(Array.from({ length: count }, () => open({ store })));
  return Promise.all(clients.map(async (client, at) => elsewhereOf(await client.session('s'), at)));
}

/** A tool that counts its executions; each ends with `end`. */
export function sender(session, options) {
  const runs = [];
  const execute = (args, context) =>
    new Promise((resolve, reject) => runs.push({ args, context, end: resolve, fail: reject }));
  const send = once(session, { name: 'send_mail', execute, ...options });
  return { send, runs };
}

export async function waitFor(condition) {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 1));
}
