// The keys of Redis and of an unstorage storage as JSON, and back. Values are bytes, in base64.

const encoded = (bytes) => Buffer.from(bytes).toString('base64');
const decoded = (text) => new Uint8Array(Buffer.from(text, 'base64'));

/** Of a client of ioredis: strings, and sorted sets whose members have no score. */
export async function dumpRedis(client) {
  const dump = { strings: {}, sets: {} };
  for (const key of (await client.keys('*')).sort()) {
    if ((await client.type(key)) === 'zset') dump.sets[key] = await client.zrange(key, 0, -1);
    else dump.strings[key] = encoded(await client.getBuffer(key));
  }
  return dump;
}

export async function loadRedis(client, { strings, sets }) {
  for (const [key, value] of Object.entries(strings)) await client.set(key, Buffer.from(decoded(value)));
  for (const [key, members] of Object.entries(sets))
    await client.zadd(key, ...members.flatMap((member) => [0, member]));
}

export async function dumpStorage(storage) {
  const dump = {};
  for (const key of (await storage.getKeys()).sort()) dump[key] = encoded(await storage.getItemRaw(key));
  return dump;
}

export async function loadStorage(storage, dump) {
  for (const [key, value] of Object.entries(dump)) await storage.setItemRaw(key, decoded(value));
}
