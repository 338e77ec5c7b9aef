// What others do with a chat in IndexedDB: Dexie with one record a chat, and the persistence of TanStack AI. Versions:
// package.json.

const NAME = 'bench-peers';

/** Returns the peers by name, each with `put(key, messages)` and `get(key)`; none if they are not installed. */
export async function openPeers() {
  let dexie;
  let tanstack;
  try {
    ({ Dexie: dexie } = await import('/peers/dexie/dexie.mjs'));
    ({ indexedDBPersistence: tanstack } = await import('/peers/tanstack/storage-adapters.js'));
  } catch {
    return {};
  }
  const chats = new dexie(`${NAME}-dexie`);
  chats.version(1).stores({ chats: 'id' });
  const store = tanstack({ databaseName: `${NAME}-tanstack` });
  return {
    Dexie: {
      // Dexie's promises are its own: `time` awaits those of the language alone.
      put: async (id, messages) => {
        await chats.chats.put({ id, messages });
      },
      get: async (id) => (await chats.chats.get(id)).messages,
    },
    TanStack: {
      put: (id, messages) => store.setItem(id, { messages }),
      get: async (id) => (await store.getItem(id)).messages,
    },
  };
}
