// `rethread/tanstack-ai`: the sessions of a store as the persistence of TanStack's `ChatClient`.

import { RethreadError } from '../error.js';
import { ChatWriter } from './tanstack-ai/chat-writer.js';

export { RethreadError } from '../error.js';

/** TanStack ignores what its persistence rejects with. */
function printError(error, { id, operation }) {
  console.error(`rethread: ${operation} of the chat ${JSON.stringify(id)} failed.`, error);
}

function checkedId(id) {
  if (typeof id !== 'string' || !id)
    throw new RethreadError('invalid_input', 'the id of a chat is a text that is not empty');
  return id;
}

/** @type {typeof import('./tanstack-ai.d.ts').chatPersistence} */
export function chatPersistence(store, options = {}) {
  const { onError = printError, ...unknown } = options;
  if (typeof store?.session !== 'function')
    throw new RethreadError('config_invalid', '`chatPersistence` takes an open store: `await open()`');
  if (Object.keys(unknown).length || typeof onError !== 'function')
    throw new RethreadError('config_invalid', 'the only option is `onError`, which is a function');
  /** @type {Map<string, ChatWriter>} */
  const writers = new Map();
  const writerOf = (id) => {
    const known = writers.get(checkedId(id));
    if (known) return known;
    const report = (error, operation) => onError(error, { id, operation });
    const writer = new ChatWriter(() => store.session(id), report);
    writers.set(id, writer);
    return writer;
  };
  return {
    getItem: async (id) => writerOf(id).load(),
    setItem: async (id, state) => writerOf(id).set(state),
    removeItem: async (id) => writerOf(id).remove(),
    async flush(id) {
      const chosen = id === undefined ? [...writers.values()] : [writerOf(id)];
      await Promise.all(chosen.map((writer) => writer.flush()));
    },
  };
}
