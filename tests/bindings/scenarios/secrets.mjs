// R68: a credential that the host was given, at a server that quotes it. No import: the same file runs in a page and in Node.

export const DIALECTS = ['openai-chat', 'openai-responses', 'anthropic', 'gemini', 'mistral'];

/** Keys without a known form, with one, and with what has to be escaped. */
export const KEYS = { plain: 'q7Hn2vXw90LmTtRb', known: 'sk-proj-0123456789abcdef', escaped: 'a/b+c&d<e>"f"=%25', short: 'hunter2' };

/** Everything of a value that could be read: getters of errors too, in depth. */
export function textOf(value) {
  const seen = new Set();
  const all = [];
  const read = (one) => {
    if (typeof one === 'string') all.push(one);
    if ((typeof one !== 'object' && typeof one !== 'function') || one === null || seen.has(one)) return;
    seen.add(one);
    if (one instanceof Uint8Array) all.push(new TextDecoder('latin1').decode(one));
    else for (const name of [...Object.getOwnPropertyNames(one), 'message', 'stack', 'cause']) read(one[name]);
  };
  read(value);
  return all.join('\n');
}

/** Every record of every table of a database, as text: bytes as Latin-1. */
export async function databaseText(name) {
  const asked = (request) => new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
  const found = (await indexedDB.databases()).find((database) => database.name.includes(name));
  const database = await asked(indexedDB.open(found.name));
  const records = [];
  for (const table of database.objectStoreNames) {
    const store = database.transaction(table).objectStore(table);
    records.push(...await asked(store.getAllKeys()), ...await asked(store.getAll()));
  }
  database.close();
  return textOf(records);
}

/** A run against that address, and everything that an application can see of it afterwards. */
export async function seen({ rethread, drive }, { store, name, url, dialect, headers, stream = true, params, tools, input = 'What is it?' }) {
  const client = await rethread.open({ store, name });
  const session = await client.session('s');
  const request = { input, provider: { dialect, url, params: { model: 'm', ...params }, stream }, tools, retry: { attempts: 2, backoffMs: 1 } };
  const run = await session.run(request);
  const driven = drive(run, { headers });
  const events = [];
  for await (const event of driven) events.push(event);
  const result = await driven.result.catch((error) => ({ status: 'rejected', error }));
  const pending = await client.pendingRuns();
  const facts = { events, result, again: run.result(), pending, ofSession: await session.pendingRuns(), messages: await session.messages({ limit: 100 }), view: session.view().getSnapshot() };
  const text = textOf(facts);
  await client.close();
  const stored = store === 'indexeddb' ? await databaseText(name) : '';
  return { status: result.status, message: result.error?.message ?? null, details: result.error?.details ?? null, answer: result.text, pending: pending.length, text, stored, events: events.map(({ type }) => type) };
}

/** The forms of a key that must be nowhere. */
export const formsOf = (key) => [...new Set([key, encodeURIComponent(key), JSON.stringify(key).slice(1, -1), key.replaceAll('&', '&amp;').replaceAll('<', '&lt;'), [...key].join('\0')])];
