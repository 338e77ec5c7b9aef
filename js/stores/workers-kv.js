// Workers KV: has no compare-and-set, so keys are written once and one writer per session is expected.

import { RethreadError } from '../error.js';
import { withRateLimitErrors } from './rate-limits.js';

/** @type {typeof import('./cloudflare.js').workersKv} */
export function workersKv(binding, { prefix = '' } = {}) {
  /** @type {any} */
  const namespace = binding;
  if (typeof namespace?.getWithMetadata !== 'function' || typeof namespace.list !== 'function') {
    throw new RethreadError('config_invalid', '`workersKv` takes a KV namespace: a binding of `env`');
  }
  if (typeof prefix !== 'string') throw new RethreadError('config_invalid', '`prefix` must be a string');
  return {
    name: 'workers-kv',
    limits: { maxValueBytes: 25 * 1024 * 1024, minRewriteMs: 1000, readYourWrites: false },
    async get(key) {
      const value = await withRateLimitErrors(() => namespace.get(prefix + key, 'arrayBuffer'));
      return value && { value: new Uint8Array(value) };
    },
    async list(keyPrefix, cursor, limit) {
      const page = await withRateLimitErrors(() =>
        namespace.list({ prefix: prefix + keyPrefix, cursor, limit: Math.min(limit, 1000) }),
      );
      return {
        keys: page.keys.map(({ name }) => name.slice(prefix.length)),
        cursor: page.list_complete ? null : page.cursor,
      };
    },
    put: (key, value) => withRateLimitErrors(() => namespace.put(prefix + key, value)),
    delete: (key) => withRateLimitErrors(() => namespace.delete(prefix + key)),
  };
}
