// Encryption at rest with WebCrypto. Keys stay handles of the platform: no key is in the memory of the program.

import { RethreadError } from './error.js';

const NONCE_BYTES = 12;
const SESSION_KEY = { name: 'AES-GCM', length: 256 };
/** @type {KeyUsage[]} */
const USAGES = ['encrypt', 'decrypt'];

const invalid = (message) => new RethreadError('config_invalid', `\`encryption\`: ${message}`);
const canWrap = (key) => ['wrapKey', 'unwrapKey'].every((usage) => key.usages.includes(usage));

function checkedKey(key, name) {
  if (key?.algorithm?.name !== 'AES-GCM' || !Array.isArray(key.usages))
    throw invalid(
      `\`${name}\` must be a CryptoKey of AES-GCM: \`crypto.subtle.generateKey({ name: "AES-GCM", length: 256 }, false, ["encrypt", "decrypt"])\``,
    );
  if (!canWrap(key) && !USAGES.every((usage) => key.usages.includes(usage)))
    throw invalid(`\`${name}\` must have the usages "encrypt" and "decrypt", or "wrapKey" and "unwrapKey"`);
  return key;
}

function checkedKeys(options) {
  if (typeof options !== 'object' || options === null) throw invalid('it must be an object with a `key`');
  const unknown = Object.keys(options).find((name) => !['key', 'previous'].includes(name));
  if (unknown) throw invalid(`\`${unknown}\` is no option; there are \`key\` and \`previous\``);
  const { key, previous = [] } = options;
  if (!Array.isArray(previous)) throw invalid('`previous` must be an array of keys');
  return [checkedKey(key, 'key'), ...previous.map((one, at) => checkedKey(one, `previous[${at}]`))];
}

const parameters = (iv, additionalData) => ({ name: 'AES-GCM', iv, additionalData });

/** Encrypts with a new nonce, which the result begins with. */
async function withNonce(place, encrypt) {
  const nonce = crypto.getRandomValues(new Uint8Array(NONCE_BYTES));
  const sealed = new Uint8Array(await encrypt(parameters(nonce, place)));
  const out = new Uint8Array(NONCE_BYTES + sealed.length);
  out.set(nonce);
  out.set(sealed, NONCE_BYTES);
  return out;
}

/** The result of decrypting what `withNonce` returned; null if the key or the place is another, or a byte was changed. */
async function opened(sealed, place, decrypt) {
  if (sealed.length < NONCE_BYTES) return null;
  try {
    return await decrypt(parameters(sealed.subarray(0, NONCE_BYTES), place), sealed.subarray(NONCE_BYTES));
  } catch (error) {
    if (error?.name === 'OperationError') return null;
    throw error;
  }
}

function wrap(sessionKey, key, place) {
  const { subtle } = crypto;
  return withNonce(place, async (how) => {
    if (canWrap(key)) return subtle.wrapKey('raw', sessionKey, key, how);
    const raw = new Uint8Array(await subtle.exportKey('raw', sessionKey));
    const wrapped = await subtle.encrypt(how, key, raw);
    raw.fill(0);
    return wrapped;
  });
}

function unwrap(wrapped, key, place, isExtractable) {
  const { subtle } = crypto;
  return opened(wrapped, place, async (how, bytes) => {
    if (canWrap(key)) return subtle.unwrapKey('raw', bytes, key, how, SESSION_KEY, isExtractable, USAGES);
    const raw = new Uint8Array(await subtle.decrypt(how, key, bytes));
    const sessionKey = await subtle.importKey('raw', raw, SESSION_KEY, isExtractable, USAGES);
    raw.fill(0);
    return sessionKey;
  });
}

/** Wraps a session's key, and returns it as one that cannot be exported, with its wrapped form. */
async function wrapped(sessionKey, key, place) {
  const form = await wrap(sessionKey, key, place);
  const own = await unwrap(form, key, place, false);
  // It was wrapped a moment ago: this is no wrong key.
  if (!own) throw new Error('a key that was wrapped cannot be unwrapped');
  return [own, form];
}

/** What the program encrypts with. Throws `config_invalid` for wrong keys. */
export function cipherOf(options) {
  const keys = checkedKeys(options);
  const [current] = keys;
  const subtle = globalThis.crypto?.subtle;
  if (!subtle) throw invalid('this page has no `crypto.subtle`: browsers have it on https and localhost only');
  return {
    /** A new key of a session, and its wrapped form. */
    async generate(place) {
      return wrapped(await subtle.generateKey(SESSION_KEY, true, USAGES), current, place);
    },

    /** The key of a session, and its form wrapped by the current key if a previous one had wrapped it. */
    async unwrap(form, place) {
      const key = await unwrap(form, current, place, false);
      if (key) return [key];
      for (const previous of keys.slice(1)) {
        const sessionKey = await unwrap(form, previous, place, true);
        if (sessionKey) return wrapped(sessionKey, current, place);
      }
      return null;
    },

    seal: (values) =>
      Promise.all(values.map(([key, place, value]) => withNonce(place, (how) => subtle.encrypt(how, key, value)))),

    open: (values) =>
      Promise.all(
        values.map(async ([key, place, value]) => {
          const plain = await opened(value, place, (how, bytes) => subtle.decrypt(how, key, bytes));
          return plain && new Uint8Array(plain);
        }),
      ),
  };
}
