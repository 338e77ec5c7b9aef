// Reads the arguments of `fetch` without changing them, and rebuilds them with another body.

/** Larger than any provider accepts: such a body is sent unread. */
const MAX_BYTES = 32 * 1024 * 1024;

/** Headers with a digest or signature of the body: a changed body would not match. */
const DIGESTS = ['x-amz-content-sha256', 'content-digest', 'repr-digest', 'digest', 'content-md5', 'signature'];
const JSON_TYPE = /^(?:application\/(?:[\w.-]+\+)?json|text\/(?:plain|json))\s*(?:;|$)/i;
/** Members of a `Request` used as `init`: getters of its class, which spreading does not copy. */
const MEMBERS = [
  'method',
  'headers',
  'mode',
  'credentials',
  'cache',
  'redirect',
  'referrer',
  'referrerPolicy',
  'integrity',
  'keepalive',
  'signal',
  'duplex',
];

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

// Recognized by their methods: a client may have classes of its own.
const isRequest = (input) =>
  typeof input === 'object' && input !== null && typeof input.url === 'string' && typeof input.clone === 'function';
const isBytes = (body) => body instanceof ArrayBuffer || ArrayBuffer.isView(body);
const isBlob = (body) => typeof Blob === 'function' && body instanceof Blob;
const isWebStream = (body) => typeof body?.getReader === 'function';
const isIterable = (body) => typeof body?.[Symbol.asyncIterator] === 'function';
const isUnreadStream = (body) => (isWebStream(body) || isIterable(body)) && !body.locked;

/** {url, headers, signal, and body or request} of a POST request that may contain JSON; null for any other. */
export function readableRequest(input, init) {
  const request = isRequest(input) ? input : null;
  const method = init?.method ?? request?.method;
  if (typeof method !== 'string' || method.toUpperCase() !== 'POST') return null;
  const headers = new Headers(init?.headers ?? request?.headers);
  const body = init?.body ?? null;
  const type = headers.get('content-type') ?? (isBlob(body) ? body.type : '');
  if (type && !JSON_TYPE.test(type)) return null;
  if (headers.has('content-encoding') || isSigned(headers)) return null;
  if (Number(headers.get('content-length')) > MAX_BYTES) return null;
  const url = new URL(request ? request.url : String(input), globalThis.location?.href);
  const readable = { url, headers, signal: init?.signal ?? request?.signal };
  if (typeof body === 'string' || isBytes(body) || isBlob(body) || isUnreadStream(body)) return { ...readable, body };
  // Firefox does not implement `Request.body`.
  return body === null && request && request.body !== null && !request.bodyUsed ? { ...readable, request } : null;
}

function isSigned(headers) {
  return /^AWS4-/.test(headers.get('authorization') ?? '') || DIGESTS.some((name) => headers.has(name));
}

/** Reads the body. `text` is null if it is too large or not UTF-8. If reading consumed the body, `again()` returns an
 *  equal one. */
export async function readBody({ body, request, signal }) {
  if (typeof body === 'string') return { text: isTooLarge(body) ? null : body };
  if (isBytes(body)) return { text: decoded(body) };
  if (isBlob(body)) return { text: body.size > MAX_BYTES ? null : decoded(await body.arrayBuffer()) };
  if (!request) return readStream(body, signal);
  // Reads a clone, so that the request itself stays unread.
  const copy = request.clone();
  if (!copy.body) return { text: decoded(await copy.arrayBuffer()) };
  const { text, stop } = await readStream(copy.body, signal);
  stop();
  return { text };
}

/** True if the text has more bytes than the limit. A UTF-16 unit has at most three. */
function isTooLarge(text) {
  return (
    text.length > MAX_BYTES || (text.length > MAX_BYTES / 3 && new TextEncoder().encode(text).byteLength > MAX_BYTES)
  );
}

function decoded(bytes) {
  if (bytes.byteLength > MAX_BYTES) return null;
  try {
    return utf8.decode(bytes);
  } catch {
    return null; // not UTF-8, so not JSON
  }
}

/** Reads a stream until it ends, fails or is too large. */
async function readStream(stream, signal) {
  const source = isWebStream(stream) ? stream.getReader() : readerOf(stream[Symbol.asyncIterator]());
  const stop = (reason) => void source.cancel(reason).catch(() => {});
  const aborted = () => stop(signal.reason);
  signal?.addEventListener('abort', aborted, { once: true });
  const chunks = [];
  let size = 0;
  const unread = (rest) => ({ text: null, stop, again: () => replay(stream, chunks, rest, stop) });
  try {
    for (;;) {
      const { value, done } = await source.read();
      if (done) {
        const bytes = joined(chunks, size);
        const again = () => (isWebStream(stream) ? replay(stream, chunks, async () => ({ done }), stop) : bytes);
        return { text: decoded(bytes), stop, again };
      }
      chunks.push(value);
      size += value?.byteLength ?? Infinity; // `fetch` rejects chunks that are not bytes
      if (size > MAX_BYTES) return unread(() => source.read());
    }
  } catch (error) {
    return unread(() => Promise.reject(error));
  } finally {
    signal?.removeEventListener('abort', aborted);
  }
}

const readerOf = (iterator) => ({ read: () => iterator.next(), cancel: async () => iterator.return?.() });

function joined(chunks, size) {
  const bytes = new Uint8Array(size);
  let at = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, at);
    at += chunk.byteLength;
  }
  return bytes;
}

/** A stream of the same kind with the chunks that were read, then the rest. */
function replay(stream, chunks, rest, stop) {
  async function* allChunks() {
    yield* chunks;
    for (let next = await rest(); !next.done; next = await rest()) yield next.value;
  }
  const source = allChunks();
  if (!isWebStream(stream)) return source;
  return new ReadableStream({
    async pull(controller) {
      const { value, done } = await source.next();
      if (done) controller.close();
      else controller.enqueue(value);
    },
    cancel: stop,
  });
}

/** The arguments with `text` as the body, of the same type as the original body. */
export function withText(args, { body, headers }, text) {
  const bytes = new TextEncoder().encode(text);
  const changes = { body: typeof body === 'string' ? text : bytes };
  if (isBlob(body)) changes.body = new Blob([bytes], { type: body.type });
  if (headers.has('content-length')) {
    headers.set('content-length', String(bytes.byteLength));
    changes.headers = headers;
  }
  return withChanges(args, changes);
}

/** The arguments with another body. */
export const withBody = (args, body) => withChanges(args, { body });

/** True if reading consumes the caller's own body. */
export const isUsedUp = ({ body }) => isWebStream(body) || isIterable(body);

function withChanges([input, init, ...rest], changes) {
  const members = { ...init };
  for (const name of init ? MEMBERS : [])
    if (!(name in members) && init[name] !== undefined) members[name] = init[name];
  return [input, { ...members, ...changes }, ...rest];
}
