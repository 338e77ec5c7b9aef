// Requests and bytes of key-value stores: of a turn of two messages, and of opening the session, at 100 and at 10,000 messages.
//
//   node tests/servers/kv-costs.mjs        (after `npm run build`; needs redis-server)

import { Redis } from 'ioredis';
import { open } from 'rethread';
import { redis } from 'rethread/redis';
import { unstorage } from 'rethread/unstorage';
import { createStorage } from 'unstorage';
import { startRedis } from './redis-server.mjs';

const size = (value) => value?.byteLength ?? 0;

/** The driver, and what went through it since `counts` was set. */
function counted(driver) {
  const outer = { ...driver };
  outer.counts = {};
  const add = (name, requests, read, written) => {
    outer.counts.requests = (outer.counts.requests ?? 0) + requests;
    outer.counts.read = (outer.counts.read ?? 0) + read;
    outer.counts.written = (outer.counts.written ?? 0) + written;
    outer.counts[name] = (outer.counts[name] ?? 0) + requests;
  };
  outer.get = async (key) => {
    const entry = await driver.get(key);
    add('get', 1, size(entry?.value), 0);
    return entry;
  };
  if (driver.getMany) {
    outer.getMany = async (keys) => {
      const values = await driver.getMany(keys);
      add('getMany', 1, values.reduce((sum, value) => sum + size(value), 0), 0);
      return values;
    };
  }
  outer.list = async (...args) => {
    const page = await driver.list(...args);
    add('list', 1, page.keys.join('').length, 0);
    return page;
  };
  outer.put = async (key, value) => {
    add('put', 1, 0, size(value));
    return driver.put(key, value);
  };
  if (driver.commit) {
    outer.commit = async (checks, writes) => {
      add('commit', 1, 0, writes.reduce((sum, { value }) => sum + size(value), 0));
      return driver.commit(checks, writes);
    };
  }
  return outer;
}

const text = 'A sentence of an answer, as long as most are. '.repeat(10);
const turn = (n) => ({ messages: [{ role: 'user', content: `question ${n}` }, { role: 'assistant', content: text }] });
const shown = ({ requests = 0, read = 0, written = 0, ...kinds }) =>
  `${requests} (${Object.entries(kinds).map(([name, count]) => `${count} ${name}`).join(', ')}), ${(read / 1000).toFixed(1)} KB read, ${(written / 1000).toFixed(1)} KB written`;

async function measure(name, make) {
  const driver = counted(make());
  const session = await (await open({ store: driver })).session('s');
  for (let messages = 2; messages <= 10_000; messages += 2) {
    driver.counts = {};
    const start = performance.now();
    await session.append(turn(messages), 'openai-chat');
    const took = performance.now() - start;
    if (messages !== 100 && messages !== 10_000) continue;
    console.log(`| ${name} | ${messages} | turn | ${shown(driver.counts)} | ${took.toFixed(1)} ms |`);
    const reader = counted(make());
    const before = performance.now();
    const store = await open({ store: reader });
    reader.counts = {};
    await store.session('s');
    console.log(`| ${name} | ${messages} | open | ${shown(reader.counts)} | ${(performance.now() - before).toFixed(0)} ms |`);
    await store.close();
  }
}

console.log('| store | messages | | requests and bytes | time |\n|---|---|---|---|---|');
const server = await startRedis();
const client = new Redis(server.place);
await measure('redis', () => redis(client));
client.disconnect();
await server.stop();
const storage = createStorage();
await measure('unstorage', () => unstorage(storage));
