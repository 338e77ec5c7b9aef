// Failures of the repair itself, which must not fail a request.

import { reasonOf } from '../untrusted-value.js';

/** Returns a function that logs each kind of failure once. */
export function warnOnce() {
  const logged = new Set();
  return (message, error) => {
    if (!logged.has(message)) console.warn(`rethread/fetch: ${message}: ${reasonOf(error)}`);
    logged.add(message);
    return false;
  };
}

/** Calls `onRepair`, which may be asynchronous and is not awaited. */
export function notify(onRepair, info, warn) {
  const failed = (error) => warn('`onRepair` failed', error);
  try {
    Promise.resolve(onRepair?.(info)).catch(failed);
  } catch (error) {
    failed(error);
  }
}
