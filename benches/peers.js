// What others do with a chat in IndexedDB: Dexie with one record a chat, and the persistence of TanStack AI. Versions:
// package.json.

const NAME = 'bench-peers';

/** Returns the named peers, each with `put(key, messages)` and `get(key)`; none if they are not installed. */
export async function openPeers(names = Object.keys(PEERS)) {
  try {
    const opened = await Promise.all(names.map(async (name) => [name, await PEERS[name]()]));
    return Object.fromEntries(opened);
  } catch {
    return {};
  }
}

const PEERS = {
  Dexie: async () => {
    const { Dexie } = await import('/peers/dexie/dexie.mjs');
    const chats = new Dexie(`${NAME}-dexie`);
    chats.version(1).stores({ chats: 'id' });
    return {
      // Dexie's promises are its own: `time` awaits those of the language alone.
      put: async (id, messages) => {
        await chats.chats.put({ id, messages });
      },
      get: async (id) => (await chats.chats.get(id)).messages,
    };
  },
  TanStack: async () => {
    const { indexedDBPersistence } = await import('/peers/tanstack/storage-adapters.js');
    const store = indexedDBPersistence({ databaseName: `${NAME}-tanstack` });
    return {
      put: (id, messages) => store.setItem(id, { messages }),
      get: async (id) => (await store.getItem(id)).messages,
    };
  },
};
