// `repairingMiddleware()`: repairs conversations in a client of the AWS SDK, before their requests are signed.

import { heal } from '../formats-api.js';
import { program } from '../formats-program.js';
import { chatAddress, isOtherService, publicUrl } from './address.js';
import { isRefusal, RefusedMarks } from './healing.js';
import { inspect, rejection, withModel } from './inspect.js';
import { checkedOptions } from './options.js';
import { notify, warnOnce } from './warnings.js';

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** {url, address, text} of a request that may contain a conversation; null for any other. */
function readable(request, { dialect }) {
  if (request?.method !== 'POST' || !request.hostname) return null;
  const port = request.port ? `:${request.port}` : '';
  const url = new URL(`${request.protocol ?? 'https:'}//${request.hostname}${port}${request.path ?? '/'}`);
  const address = isOtherService(url) ? null : chatAddress(url);
  const { body } = request;
  if ((!address && !dialect) || isOtherService(url)) return null;
  if (typeof body !== 'string' && !(body instanceof Uint8Array)) return null;
  return { url, address, text: typeof body === 'string' ? body : utf8.decode(body) };
}

/** The arguments with a request that has another body, and `from` as headers. The signature is made of it later. */
function withBody(args, text, from = args.request.headers) {
  const { request } = args;
  const headers = { ...from };
  const length = Object.keys(headers).find((name) => name.toLowerCase() === 'content-length');
  if (length) headers[length] = String(new TextEncoder().encode(text).byteLength);
  const changed = Object.assign(Object.create(Object.getPrototypeOf(request)), request, { body: text, headers });
  return { ...args, request: changed };
}

const statusOf = (error) => error?.$metadata?.httpStatusCode ?? error?.$response?.statusCode;

/** @type {typeof import('../fetch.d.ts').repairingMiddleware} */
export function repairingMiddleware(userOptions = {}) {
  const options = checkedOptions(userOptions);
  const { danglingCalls, danglingText } = options;
  const warn = warnOnce();
  const refused = new RefusedMarks();

  return (next) => async (args) => {
    const repaired = await repairedArgs(args);
    try {
      return await next(repaired.args);
    } catch (error) {
      const healed = repaired.sent && options.heal && options.mode === 'repair' ? healedArgs(error, repaired) : null;
      if (!healed) throw error;
      return next(healed);
    }
  };

  async function repairedArgs(args) {
    let found = null;
    let request = null;
    try {
      request = readable(args.request, options);
      if (!request) return { args };
      await program.load();
      found = inspect(request.text, request, options, (dialect) => refused.of(request.url, dialect));
    } catch (error) {
      warn('a request could not be inspected and was sent unchanged', error);
      return { args };
    }
    if (!found) return { args };
    if (found.info && options.mode === 'reject' && found.info.report.some(({ severity }) => severity === 'error'))
      throw rejection(found);
    if (found.info) notify(options.onRepair, found.info, warn);
    const isRepaired = options.mode === 'repair' && found.body !== request.text;
    const text = isRepaired ? found.body : request.text;
    // Later steps write into the headers, and would add to what they wrote if they got them again: the user agent.
    const headers = { ...args.request.headers };
    const sent = { text, headers, url: request.url, dialect: found.dialect, model: found.model };
    return { args: isRepaired ? withBody(args, text) : args, sent };
  }

  /** The arguments to be sent once more, if the service refused the request with a known error; otherwise null. */
  function healedArgs(error, { args, sent: { text, headers, url, dialect, model } }) {
    try {
      if (!isRefusal(statusOf(error), dialect)) return null;
      const answer = new TextEncoder().encode(JSON.stringify({ message: String(error.message) }));
      const healed = withModel(text, model, (body) => heal(body, dialect, answer, { danglingCalls, danglingText }));
      if (!healed) return null;
      refused.add(url, dialect, healed.refused);
      notify(options.onRepair, { url: publicUrl(url), dialect, report: healed.report }, warn);
      return withBody(args, healed.body, headers);
    } catch (failure) {
      warn('an error of the provider could not be read and was returned unchanged', failure);
      return null;
    }
  }
}
