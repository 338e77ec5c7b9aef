// `repairing()`: a `fetch` that repairs the conversations it sends, and heals those that the provider refuses. All
// other requests go to the underlying `fetch` with the same arguments, and so do requests for which anything here
// fails.

import { RethreadError } from './error.js';
import { chatAddress, isOtherService } from './fetch/address.js';
import { RefusedMarks, healedRequest } from './fetch/healing.js';
import { inspect, rejection } from './fetch/inspect.js';
import { checkedOptions } from './fetch/options.js';
import { isUsedUp, readableRequest, readBody, withBody, withText } from './fetch/request.js';
import { notify, warnOnce } from './fetch/warnings.js';
import { program } from './formats-program.js';

export { repairingMiddleware } from './fetch/middleware.js';
export { RethreadError };

const ABORTED = Symbol('aborted');

/** @type {typeof import('./fetch.d.ts').repairing} */
export function repairing(userOptions = {}) {
  const options = checkedOptions(userOptions);
  // Taken now, so that `globalThis.fetch = repairing()` does not call itself.
  const send = options.fetch ?? globalThis.fetch;
  const warn = warnOnce();
  const refused = new RefusedMarks();

  return function fetch(...args) {
    const request = conversationRequest(args, options);
    return request ? sendRepaired(args, request) : send(...args);
  };

  async function sendRepaired(args, request) {
    const loading = program.load().then(
      () => true,
      (error) => warn('the wasm could not be loaded, so requests are sent unchanged', error),
    );
    let next = args;
    let found = null;
    let sent = null;
    try {
      const work = Promise.all([readBody(request), loading]);
      const done = await unlessAborted(work, request.signal);
      if (done === ABORTED) return isUsedUp(request) ? Promise.reject(request.signal.reason) : send(...args);
      const [{ text, again }, isLoaded] = done;
      if (again) next = withBody(args, again());
      if (isLoaded && text !== null)
        found = inspect(text, request, options, (dialect) => refused.of(request.url, dialect));
      const isRepaired = found?.info && options.mode === 'repair' && found.body !== text;
      if (found && isRepaired) next = withText(args, request, found.body);
      if (found)
        sent = { text: isRepaired ? found.body : text, url: request.url, dialect: found.dialect, model: found.model };
      if (!found?.info) found = null;
    } catch (error) {
      warn('a request could not be inspected and was sent unchanged', error);
    }
    if (found && options.mode === 'reject' && hasErrors(found)) throw rejection(found);
    if (found) notify(options.onRepair, found.info, warn);
    const response = await send(...next);
    const healed = sent && options.heal && options.mode === 'repair' ? await heal(response, sent, request) : null;
    return healed ? send(...withText(args, request, healed.text)) : response;
  }

  /** What is to be sent once more, if the provider refused the request with a known error; otherwise null. */
  async function heal(response, sent, { signal }) {
    try {
      const healed = await unlessAborted(healedRequest(response, sent, options), signal);
      if (!healed || healed === ABORTED || signal?.aborted) return null;
      refused.add(sent.url, sent.dialect, healed.refused);
      notify(options.onRepair, healed.info, warn);
      // Nobody reads it: the connection is free for the next request.
      Promise.resolve(response.body?.cancel?.()).catch(() => {});
      return healed;
    } catch (error) {
      warn('an error of the provider could not be read and was returned unchanged', error);
      return null;
    }
  }
}

const hasErrors = ({ info }) => info.report.some(({ severity }) => severity === 'error');

/** The request if it may contain a conversation, else null: {url, address, headers, signal, and body or request}. */
function conversationRequest(args, { dialect }) {
  try {
    const request = readableRequest(...args);
    if (!request || request.signal?.aborted || isOtherService(request.url)) return null;
    const address = chatAddress(request.url);
    return address || dialect ? { ...request, address } : null;
  } catch {
    return null; // `fetch` reports invalid arguments
  }
}

/** The value of the promise, or ABORTED if the signal aborts first. */
function unlessAborted(promise, signal) {
  if (!signal) return promise;
  return new Promise((resolve, reject) => {
    const stop = () => resolve(ABORTED);
    signal.addEventListener('abort', stop, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop));
  });
}
