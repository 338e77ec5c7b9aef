// The application's headers, which hold its credentials.

import { errorWords, plainWords } from '../credentials.js';
import { memberOf } from '../untrusted-value.js';
import { headerPairs } from '../header-pairs.js';

/** The application's headers for a model call, with names in lower case, registered as credentials. A `headers`
 *  function must answer within `timeout`. */
export async function requestHeaders({ request, dialect }, { headers, credentials }, timeout) {
  let provided = headers;
  if (typeof headers === 'function') {
    try {
      provided = await timeout.limit(headers({ url: request.url, dialect, model: modelOf(request.body) }));
    } catch (error) {
      if (timeout.hasExpired)
        throw headersError(`\`headers\` of \`drive\`: ${timeout.signal.reason.message}`, timeout.signal.reason.name);
      // The error may quote a credential that is not registered yet: repeat only plain words.
      const { code, message } = errorWords(error);
      throw headersError(`\`headers\` of \`drive\` threw: ${plainWords(credentials.redact(message))}`, code);
    }
  }
  try {
    credentials.add(provided);
    return Object.fromEntries(headerPairs(provided));
  } catch (error) {
    throw headersError(
      '`headers` of `drive` must be an object of strings, or a function that returns one',
      memberOf(error, 'name'),
    );
  }
}

/** Headers that are lists: those of the run's request and those of the application are both sent. */
const LISTS = ['anthropic-beta'];

/** The headers of a request, of which the application's replace those of the run. */
export function mergedHeaders(own, provided) {
  const merged = { ...own, ...provided };
  for (const name of LISTS) {
    if (own[name] === undefined || provided[name] === undefined) continue;
    const values = `${own[name]},${provided[name]}`
      .split(',')
      .map((value) => value.trim())
      .filter(Boolean);
    merged[name] = [...new Set(values)].join(', ');
  }
  return merged;
}

/** Registers static headers before the first model call: a tool of a resumed run may run first and quote one. */
export function registerStaticHeaders({ headers, credentials }) {
  try {
    if (typeof headers !== 'function') credentials.add(headers);
  } catch {
    // The model call reports invalid headers.
  }
}

/** An error of `headers`. Only a plain word is kept as its code, since a code may quote a credential. */
function headersError(message, code) {
  return Object.assign(new Error(message), /^[A-Za-z_]{1,40}$/.test(code ?? '') ? { code } : {});
}

/** The model of a request body, or null. Parameters come first, so that only the beginning is searched. A request that
 *  picks an answer up has no body. */
function modelOf(body) {
  if (!body) return null;
  const head = new TextDecoder().decode(body.subarray(0, 2048));
  const found = /"model"\s*:\s*("(?:[^"\\]|\\.)*")/.exec(head);
  return found ? JSON.parse(found[1]) : null;
}
