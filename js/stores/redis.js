// "rethread/redis": a client of ioredis or redis.

import { RethreadError } from '../error.js';
import { changesOf } from './redis-changes.js';

/**
 * Writes if every checked key has its version, which is the SHA-1 of its value. The sorted set KEYS[1] lists all keys
 * in order. The last argument is a notice; if it is not empty, it is published to the channel named by the argument
 * before it. `pcall`: a user without permission for the channel can still write.
 */
const COMMIT = `
local count = tonumber(ARGV[1])
for i = 1, count do
  local value = redis.call('GET', KEYS[1 + i])
  if (value and redis.sha1hex(value) or '') ~= ARGV[1 + i] then return 0 end
end
for i = 1, #KEYS - 1 - count do
  local key = KEYS[1 + count + i]
  if ARGV[count + 2 * i] == '1' then
    redis.call('SET', key, ARGV[count + 2 * i + 1])
    redis.call('ZADD', KEYS[1], 0, key)
  else
    redis.call('DEL', key)
    redis.call('ZREM', KEYS[1], key)
  end
end
if ARGV[#ARGV] ~= '' then redis.pcall('PUBLISH', ARGV[#ARGV - 1], ARGV[#ARGV]) end
return 1`;
const GET = `
local value = redis.call('GET', KEYS[1])
return value and { value, redis.sha1hex(value) } or false`;

/** Replies as bytes, in every version of redis. 36 is the type of a bulk string. */
const BYTES = { returnBuffers: true, typeMapping: { 36: Buffer } };

/** @type {typeof import('./redis.js').redis} */
export function redis(client, { prefix = 'rethread:' } = {}) {
  /** @type {any} */
  const redisClient = client;
  const isIoredis = typeof redisClient?.callBuffer === 'function';
  if (!isIoredis && typeof redisClient?.sendCommand !== 'function')
    throw new RethreadError('config_invalid', '`redis` takes a connected client of ioredis or redis');
  if (typeof prefix !== 'string' || !prefix)
    throw new RethreadError('config_invalid', '`prefix` must be a string that is not empty');
  /** @type {(...args: (string | Buffer)[]) => Promise<any>} */
  const call = isIoredis
    ? (...args) => redisClient.callBuffer(...args)
    : async (...args) => redisClient.sendCommand(args, BYTES);
  const index = `${prefix}:keys`;
  const bytes = (value) => value && new Uint8Array(value);
  const channel = `${prefix}:changes`;
  const commit = async (checks, writes, notice = '') => {
    const keys = [...checks, ...writes].map(({ key }) => prefix + key);
    const values = writes.flatMap(({ value }) =>
      value ? ['1', Buffer.from(value.buffer, value.byteOffset, value.byteLength)] : ['0', ''],
    );
    return (
      (await call(
        'EVAL',
        COMMIT,
        String(keys.length + 1),
        index,
        ...keys,
        String(checks.length),
        ...checks.map(({ version }) => version ?? ''),
        ...values,
        channel,
        notice,
      )) === 1
    );
  };
  return {
    name: 'redis',
    limits: { maxValueBytes: 8 * 1024 * 1024 },
    async get(key) {
      const found = await call('EVAL', GET, '1', prefix + key);
      return found && { value: bytes(found[0]), version: String(found[1]) };
    },
    getMany: async (keys) => (await call('MGET', ...keys.map((key) => prefix + key))).map(bytes),
    async list(keyPrefix, cursor, limit) {
      // The engine lists all keys once, if the store seems to be new: keys of other applications are not in the index.
      if (!keyPrefix && !cursor) return { keys: await scan(call, prefix), cursor: null };
      const from = cursor === null ? `[${prefix}${keyPrefix}` : `(${prefix}${cursor}`;
      const found = await call(
        'ZRANGEBYLEX',
        index,
        from,
        Buffer.concat([Buffer.from(`[${prefix}${keyPrefix}`), Buffer.of(255)]),
        'LIMIT',
        '0',
        String(limit),
      );
      const keys = found.map((key) => String(key).slice(prefix.length));
      return { keys, cursor: keys.length < limit ? null : keys.at(-1) };
    },
    put: (key, value) => commit([], [{ key, value }]).then(() => {}),
    delete: (key) => commit([], [{ key, value: null }]).then(() => {}),
    commit,
    changes:
      typeof redisClient.duplicate === 'function'
        ? changesOf(redisClient, channel, (notice) => call('PUBLISH', channel, notice))
        : undefined,
  };
}

/** Some keys that begin with the prefix, if the first hundred thousand keys of the database have any. */
async function scan(call, prefix) {
  const pattern = `${prefix.replace(/[*?[\]\\]/g, '\\$&')}*`;
  let cursor = '0';
  for (let round = 0; round < 100; round += 1) {
    const [next, found] = await call('SCAN', cursor, 'MATCH', pattern, 'COUNT', '1000');
    const keys = found.map((key) => String(key).slice(prefix.length)).filter((key) => key !== ':keys');
    cursor = String(next);
    if (keys.length || cursor === '0') return keys;
  }
  return [];
}
