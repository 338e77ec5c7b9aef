// What services say when they limit the rate of requests, as an error that the engine waits for.

import { RethreadError } from '../error.js';

/** The wait that a response asks for, in milliseconds: seconds, or a date. */
function retryAfterMs(headers) {
  const text = headers?.get?.('retry-after');
  if (!text) return undefined;
  const wait = /^\d+$/.test(text) ? Number(text) * 1000 : Date.parse(text) - Date.now();
  return Number.isFinite(wait) ? Math.max(0, wait) : undefined;
}

/** Sends a request. A 429 is thrown as `rate_limited`; bindings of Workers have the number in the message alone. */
export async function request(send) {
  try {
    return await send();
  } catch (error) {
    const isLimit = [error?.status, error?.statusCode, error?.response?.status].includes(429) || /\b429\b/.test(error?.message ?? '');
    if (!isLimit) throw error;
    const wait = retryAfterMs(error.response?.headers);
    throw new RethreadError('rate_limited', error.message, wait === undefined ? {} : { retryAfterMs: wait }, { cause: error });
  }
}
