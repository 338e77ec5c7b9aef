// Collects the credentials that `drive` sends and removes their values from error texts.

import { bytesOf } from './bytes.js';
import { headerPairs } from './header-pairs.js';

/** Headers that contain no credential. The core accepts the same names in `provider.headers`
 *  (src/provider/request/credentials.rs). */
export const PLAIN_HEADERS = new Set([
  'accept',
  'accept-encoding',
  'accept-language',
  'anthropic-beta',
  'anthropic-dangerous-direct-browser-access',
  'anthropic-version',
  'baggage',
  'cache-control',
  'content-language',
  'content-type',
  'http-referer',
  'idempotency-key',
  'openai-beta',
  'openai-organization',
  'openai-project',
  'origin',
  'pragma',
  'prefer',
  'priority',
  'referer',
  'traceparent',
  'tracestate',
  'user-agent',
  'x-client-request-id',
  'x-correlation-id',
  'x-goog-api-client',
  'x-goog-request-params',
  'x-goog-user-project',
  'x-grok-conv-id',
  'x-openrouter-categories',
  'x-openrouter-title',
  'x-request-id',
  'x-session-affinity',
  'x-title',
]);
/** The telemetry of the providers' own SDKs. */
const PLAIN_PREFIXES = ['x-stainless-'];

/** Replaces a credential. */
export const REDACTED = '[redacted]';

/** Minimum length of a value that is removed anywhere; shorter ones are too likely to be part of another word. */
const MIN_LENGTH = 8;
/** Minimum length of a value of letters and digits that is removed as a separate word. */
const MIN_WORD_LENGTH = 4;

const isPlainHeader = (name) => PLAIN_HEADERS.has(name) || PLAIN_PREFIXES.some((prefix) => name.startsWith(prefix));
/** Values that are never secrets: media types, dates (API versions), `true`, `keep-alive`, and so on. */
const isCommon = (value) =>
  /^(?:(?:application|audio|image|multipart|text|video)\/[\w.+*-]+(?:\s*;.*)?|\d{4}-\d{2}-\d{2}|true|false|null|undefined|keep-alive)$/i.test(
    value,
  );

/** The secrets in a header's value: the value itself, the token after the scheme, user name and password of Basic, and
 *  the values of `name=value` pairs (cookies, Digest, signatures). */
function secretsOf(value) {
  if (isCommon(value)) return [];
  const secrets = [value];
  const [, scheme, token] = /^([\w-]+)\s+(.+)$/s.exec(value) ?? [];
  if (token) secrets.push(token);
  if (/^basic$/i.test(scheme ?? '')) secrets.push(...basicParts(token));
  for (const part of (token ?? value).split(/[;,]/)) {
    const [, quoted, plain] = /^\s*[\w-]+=(?:"(.*)"|(.+))$/s.exec(part) ?? [];
    if (quoted ?? plain) secrets.push(quoted ?? plain);
  }
  return secrets.map((secret) => secret.trim());
}

function basicParts(token) {
  try {
    const pair = new TextDecoder().decode(bytesOf(token.trim()));
    const at = pair.indexOf(':');
    return at < 0 ? [pair] : [pair, pair.slice(0, at), pair.slice(at + 1)];
  } catch {
    return []; // not base64: only the token itself is a secret
  }
}

/** The code units of a secret in every encoding to search for: UTF-16 in strings; UTF-8 or Latin-1 in bytes. */
function spellings(secret) {
  const utf16 = Array.from({ length: secret.length }, (_, at) => secret.charCodeAt(at));
  const utf8 = [...new TextEncoder().encode(secret)];
  return utf8.length === utf16.length ? [utf16] : [utf16, utf8];
}

const isHex = (unit) => (unit >= 48 && unit <= 57) || (unit >= 65 && unit <= 70) || (unit >= 97 && unit <= 102);
const isWord = (unit) => (unit >= 48 && unit <= 57) || (unit >= 65 && unit <= 90) || (unit >= 97 && unit <= 122);
const ENTITIES = { amp: 38, apos: 39, gt: 62, lt: 60, nbsp: 160, quot: 34 };

const NO_MATCH = 0;
/** The input ends inside a possible match. */
const CUT = -1;

/**
 * Reads `count` hexadecimal digits: `{ end, value }`, where `end` is `NO_MATCH` or `CUT` if they are not there.
 *
 * @returns {{ end: number, value?: number }}
 */
function hexAt(units, length, at, count) {
  let value = 0;
  for (let place = at; place < at + count; place += 1) {
    if (place >= length) return { end: CUT };
    if (!isHex(units[place])) return { end: NO_MATCH };
    value = value * 16 + Number.parseInt(String.fromCharCode(units[place]), 16);
  }
  return { end: at + count, value };
}

/** @type {(read: { end: number, value?: number }, want: number) => number} */
const ifEqual = ({ end, value }, want) => (end > 0 && value !== want ? NO_MATCH : end);

/** `%2F`, or `%252F` if escaped twice. */
function percentAt(units, length, at, want) {
  let place = at + 1;
  for (let times = 0; times < 4 && units[place] === 50 && units[place + 1] === 53; times += 1) place += 2;
  return ifEqual(hexAt(units, length, place, 2), want);
}

/** `\/`, `\u002f`, `\x2f`, with more backslashes for JSON inside JSON. */
function backslashAt(units, length, at, want) {
  let place = at + 1;
  while (place < length && place < at + 8 && units[place] === 92) place += 1;
  if (place >= length) return CUT;
  if (units[place] === want) return place + 1;
  if (units[place] === 117) return ifEqual(hexAt(units, length, place + 1, 4), want);
  return units[place] === 120 ? ifEqual(hexAt(units, length, place + 1, 2), want) : NO_MATCH;
}

/** `&amp;`, `&#38;`, `&#x26;`. */
function entityAt(units, length, at, want) {
  let name = '';
  for (let place = at + 1; place < at + 10; place += 1) {
    if (place >= length) return CUT;
    if (units[place] !== 59) {
      name += String.fromCharCode(units[place]);
      continue;
    }
    const [, hex, decimal] = /^#(?:x([\da-f]+)|(\d+))$/i.exec(name) ?? [];
    const value = hex ? Number.parseInt(hex, 16) : decimal ? Number(decimal) : ENTITIES[name];
    return value === want ? place + 1 : NO_MATCH;
  }
  return NO_MATCH;
}

/** The reader of each escape, by its first code unit. */
const ESCAPES = new Map([
  [37, percentAt],
  [38, entityAt],
  [92, backslashAt],
]);

/** Matches the code unit `want` at `at`, plain or escaped, and returns its end. `&` may be plain or start `&amp;`. */
function unitAt(units, length, at, want, isRaw) {
  if (at >= length) return CUT;
  const unit = units[at];
  const same = unit === want || (unit === 43 && want === 32);
  const readEscape = ESCAPES.get(unit);
  if (!readEscape || (same && isRaw)) return same ? at + 1 : NO_MATCH;
  return readEscape(units, length, at, want) || (same ? at + 1 : NO_MATCH);
}

/** Matches a secret at `at` and returns where it ends. Skips zeros between its units: UTF-16 or UTF-32 read as
 *  bytes. */
function secretAt(units, length, at, { wanted, apart }, isRaw, isWhole) {
  if (apart && at > 0 && isWord(units[at - 1])) return NO_MATCH;
  let place = at;
  for (let next = 0; next < wanted.length; next += 1) {
    if (next > 0) for (let zeros = 0; zeros < 3 && units[place] === 0; zeros += 1) place += 1;
    place = unitAt(units, length, place, wanted[next], isRaw);
    if (place <= 0) return place;
  }
  if (!apart) return place;
  if (place < length) return isWord(units[place]) ? NO_MATCH : place;
  return isWhole ? place : CUT;
}

/**
 * The credentials of one `drive`: the values of all its `headers`, except headers that are known to hold none
 * (`PLAIN_HEADERS`), common values and values shorter than four characters. A value of four to seven characters counts
 * if it has letters and digits, and is removed only where it is a separate word.
 */
export class Credentials {
  #known = new Set();
  #secrets = [];
  /** For each code unit below 256: 1 if a secret may begin with it. */
  #begins = new Uint8Array(256);

  /** Adds the credentials of these headers. Earlier ones are kept: errors may still quote a token that was renewed. */
  add(headers) {
    for (const [name, value] of headerPairs(headers)) {
      if (!isPlainHeader(name)) secretsOf(value).forEach((secret) => this.#learn(secret));
    }
  }

  #learn(secret) {
    const apart = secret.length < MIN_LENGTH;
    const counts = apart ? secret.length >= MIN_WORD_LENGTH && /[a-z]/i.test(secret) && /\d/.test(secret) : true;
    if (!counts || isCommon(secret) || this.#known.has(secret)) return;
    this.#known.add(secret);
    for (const wanted of spellings(secret)) {
      this.#secrets.push({
        wanted,
        apart,
        readings: wanted.some((unit) => ESCAPES.has(unit)) ? [true, false] : [false],
      });
      if (wanted[0] < 256) this.#begins[wanted[0]] = 1;
    }
    for (const unit of ESCAPES.keys()) this.#begins[unit] = 1;
  }

  get isEmpty() {
    return this.#secrets.length === 0;
  }

  /** Finds the next secret from `from` on: `{ at, end }`, or null. `end` is -1 if the input ends inside a possible
   *  secret and is not complete (`isWhole` is false). */
  find(units, length, from, isWhole) {
    for (let at = from; at < length; at += 1) {
      const unit = units[at];
      if (unit < 256 && this.#begins[unit] === 0) continue;
      let end = NO_MATCH;
      for (const secret of this.#secrets) {
        for (const isRaw of secret.readings) {
          const found = secretAt(units, length, at, secret, isRaw, isWhole);
          if (found === CUT && !isWhole) return { at, end: CUT };
          if (found > end) end = found;
        }
      }
      if (end > 0) return { at, end };
    }
    return null;
  }

  /** Replaces every secret in the text. */
  redact(text) {
    if (this.isEmpty || typeof text !== 'string') return text;
    const units = Uint16Array.from({ length: text.length }, (_, at) => text.charCodeAt(at));
    let out = '';
    let from = 0;
    for (
      let found = this.find(units, units.length, 0, true);
      found;
      found = this.find(units, units.length, found.end, true)
    ) {
      out += text.slice(from, found.at) + REDACTED;
      from = found.end;
    }
    return from === 0 ? text : out + text.slice(from);
  }

  /** Replaces every secret in the values of an object. */
  redactEach(texts) {
    return Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, this.redact(text)]));
  }
}

/** Keeps only words and short numbers of a text that may quote an unknown credential. */
export function plainWords(text) {
  const isPlain = (word) =>
    /^(?:\p{L}+(?:-\p{L}+)*|\d{1,4})[.!?]*$/u.test(word) && word.length <= (/\p{Ll}\p{Lu}/u.test(word) ? 16 : 24);
  return text.replace(/[^\s"'`,;:()<>{}[\]|]+/gu, (word) =>
    isPlain(word) || !/[\p{L}\p{N}]/u.test(word) ? word : REDACTED,
  );
}

const READ_FAILED = 'an error whose text cannot be read';

/** Code and message of an error, including its causes: Node's fetch throws "fetch failed" with the reason in
 *  `cause`. */
export function errorWords(error) {
  const messages = [];
  let code;
  let cause = error;
  try {
    for (let depth = 0; depth < 4 && cause !== undefined && cause !== null; depth += 1) {
      const message = typeof cause === 'object' || typeof cause === 'function' ? cause.message : cause;
      const text = typeof message === 'string' ? message : depth === 0 ? String(message ?? cause) : '';
      if (text && !messages.some((before) => before.includes(text))) messages.push(text);
      if (typeof cause.code === 'string') code ??= cause.code;
      cause = cause.cause;
    }
    if (typeof error?.name === 'string') code ??= error.name;
  } catch {
    if (messages.length === 0) messages.push(READ_FAILED);
  }
  const [first = 'it failed without a message', ...causes] = messages;
  return { ...(code ? { code } : {}), message: causes.length > 0 ? `${first} (${causes.join('; ')})` : first };
}
