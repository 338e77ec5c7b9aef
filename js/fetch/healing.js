// Healing: a request that its provider refused with a known error is repaired and sent once more.

import { REFUSAL_STATUSES } from '../dialects.js';
import { heal } from '../formats-api.js';
import { publicUrl } from './address.js';
import { withModel } from './inspect.js';

/** As the core's limit: errors of providers are shorter. */
const MAX_ERROR_BYTES = 64 * 1024;
/** How long an error's body may take to arrive, in milliseconds. A slower one is the caller's to read. */
const MAX_ERROR_MS = 5_000;
/** Some clones of responses stop if the original is not read meanwhile, from this length on. */
const MAX_BUFFERED_BYTES = 16 * 1024;
const MAX_REMEMBERED = 1_000;

/** Remembers what was refused, by origin and dialect: the newest marks. */
export class RefusedMarks {
  /** @type {Map<string, { scope: string, mark: string }>} */
  #marks = new Map();

  /** The marks of an origin and a dialect. */
  of(url, dialect) {
    const scope = scopeOf(url, dialect);
    const marks = [];
    for (const entry of this.#marks.values()) if (entry.scope === scope) marks.push(entry.mark);
    return marks;
  }

  add(url, dialect, marks) {
    const scope = scopeOf(url, dialect);
    for (const mark of marks) {
      const key = `${scope} ${mark}`;
      this.#marks.delete(key);
      this.#marks.set(key, { scope, mark });
    }
    for (const key of this.#marks.keys()) {
      if (this.#marks.size <= MAX_REMEMBERED) break;
      this.#marks.delete(key);
    }
  }
}

const scopeOf = (url, dialect) => `${url.origin} ${dialect}`;

/** True for the status of an answer that refuses a request, which was not processed then. */
export const isRefusal = (status, dialect) => REFUSAL_STATUSES[dialect].includes(status);

/** The repaired request as {text, info, refused}, if the answer is a known refusal of this body; otherwise null. The
 *  answer stays unread. */
export async function healedRequest(response, { text, url, dialect, model }, { danglingCalls, danglingText }) {
  // After a redirect, another address than this one answered.
  if (!isRefusal(response?.status, dialect) || response.redirected) return null;
  if (response.bodyUsed || typeof response.clone !== 'function') return null;
  const answer = await readAnswer(response);
  const healed =
    answer && withModel(text, model, (body) => heal(body, dialect, answer, { danglingCalls, danglingText }));
  return (
    healed && {
      text: healed.body,
      refused: healed.refused,
      info: { url: publicUrl(url), dialect, report: healed.report },
    }
  );
}

/** The bytes of an answer, read from a clone; null if there are too many, or if they take too long. */
async function readAnswer(response) {
  const length = Number(response.headers?.get?.('content-length') ?? NaN);
  const limit = response instanceof Response ? MAX_ERROR_BYTES : MAX_BUFFERED_BYTES;
  if (length > limit || (!(response instanceof Response) && !(length > 0))) return null;
  const copy = response.clone();
  if (typeof copy.body?.getReader !== 'function') {
    const buffer = await inTime(copy.arrayBuffer());
    return buffer && new Uint8Array(buffer);
  }
  const reader = copy.body.getReader();
  const chunks = await inTime(readChunks(reader, limit));
  if (chunks) return new Uint8Array(await new Blob(chunks).arrayBuffer());
  reader.cancel().catch(() => {});
  return null;
}

/** What a promise resolves to; null if it takes longer than MAX_ERROR_MS. */
async function inTime(promise) {
  let timer;
  const late = new Promise((resolve) => {
    timer = setTimeout(resolve, MAX_ERROR_MS, null);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** All chunks; null if they have more bytes than `limit`. */
async function readChunks(reader, limit) {
  const chunks = [];
  let size = 0;
  for (let next = await reader.read(); !next.done; next = await reader.read()) {
    size += next.value.byteLength;
    if (size > limit) return null;
    chunks.push(next.value);
  }
  return chunks;
}
