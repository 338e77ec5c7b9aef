// What services say when they limit the rate of requests, as an error that the engine waits for.

import { RethreadError } from '../error.js';

/** The wait that a response asks for, in milliseconds: seconds, or a date. */
function retryAfterMs(headers) {
  const text = headers?.get?.('retry-after');
  if (!text) return undefined;
  const wait = /^\d+$/.test(text) ? Number(text) * 1000 : Date.parse(text) - Date.now();
  return Number.isFinite(wait) ? Math.max(0, wait) : undefined;
}

/** The message of a Workers KV binding, whose errors have no status. Anchored, since other messages may have a number
 *  in a key. */
const WORKERS_KV_LIMIT = /^KV [A-Z_]+ failed: 429\b/;

/** Runs an operation of a service. A response with status 429 is thrown as `rate_limited`: the service executed
 *  nothing. */
export async function withRateLimitErrors(operation) {
  try {
    return await operation();
  } catch (error) {
    const isLimit =
      [error?.status, error?.statusCode, error?.response?.status].includes(429) ||
      WORKERS_KV_LIMIT.test(error?.message ?? '');
    if (!isLimit) throw error;
    const wait = retryAfterMs(error.response?.headers);
    throw new RethreadError('rate_limited', error.message, wait === undefined ? {} : { retryAfterMs: wait }, {
      cause: error,
    });
  }
}
