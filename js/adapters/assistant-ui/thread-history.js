// `threadHistory`: a session as assistant-ui's `ThreadHistoryAdapter`.

import { RethreadError } from '../../error.js';
import { historyOf } from './history.js';
import { messagesOf, threadMessages } from './messages.js';

/** Where the session of a thread comes from: `stored` is null for a thread that is not stored yet, `created` creates it.
 *  @typedef {{ stored: () => Promise<any>, created: () => Promise<any>, pin: () => ThreadSource }} ThreadSource */

function writeOf(item, codec, isHead) {
  const ui = codec.write(item);
  return { id: ui.id, ui, details: codec.details(item), parentId: item.parentId ?? null, codec, isHead };
}

/** @param {ThreadSource} source */
export function adapterOf(source) {
  const codec = threadMessages;
  return {
    async load() {
      const session = await source.stored();
      return session ? historyOf(session).load(codec) : { messages: [] };
    },
    async append(item) {
      const write = writeOf(item, codec, true);
      await historyOf(await source.created()).put(write);
    },
    async update(item) {
      const write = writeOf(item, codec, false);
      await historyOf(await source.created()).put(write);
    },
    async delete(items) {
      const session = await source.stored();
      if (session) await historyOf(session).remove(items.map(({ message }) => message.id));
    },
    withFormat: (format) => formatted(source, format),
  };
}

/** @param {ThreadSource} source @param {any} adapter */
function formatted(source, adapter) {
  const codec = messagesOf(adapter.format);
  let thread = source;
  const written = (item, isHead) => writeOf({ ...item, format: adapter }, codec, isHead);
  return {
    pin() {
      thread = source.pin();
    },
    async load() {
      thread = source.pin();
      const session = await thread.stored();
      return session ? historyOf(session).load(codec, adapter) : { messages: [] };
    },
    async append(item) {
      const write = written(item, true);
      await historyOf(await thread.created()).put(write);
    },
    async update(item, localId) {
      const write = { ...written(item, false), localId };
      await historyOf(await thread.created()).put(write);
    },
    async delete(items) {
      const session = await thread.stored();
      if (session) await historyOf(session).remove(items.map(({ message }) => adapter.getId(message)));
    },
  };
}

/** @type {typeof import('../assistant-ui.d.ts').threadHistory} */
export function threadHistory(session) {
  if (typeof session?.append !== 'function')
    throw new RethreadError('config_invalid', '`threadHistory` takes a session: `await store.session(id)`');
  const source = { stored: async () => session, created: async () => session, pin: () => source };
  return { scopeId: session.id, ...adapterOf(source) };
}
