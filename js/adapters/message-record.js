// What another library keeps of a message, in a part of the stored message that no provider is sent: its items
// exactly as they were, in JSON, where texts that the message itself has are not stored twice.

import { RethreadError } from '../error.js';

/** Shorter texts are stored again: a reference is no smaller. */
const SHORTEST_REFERENCE = 48;
const MARKS = ['$text', '$data', '$bytes', '$object'];

/** The texts of a part that a record may refer to: two, one of which may be missing. */
function textsOf(part) {
  switch (part.type) {
    case 'text':
    case 'refusal':
    case 'reasoning':
      return [part.text, undefined];
    case 'image':
    case 'file':
      return [part.data, undefined];
    case 'tool':
      return [part.arguments, part.result];
    case 'tool_call':
      return [part.argumentsText, part.result?.content];
    default:
      return [undefined, undefined];
  }
}

const base64 = (bytes) => btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''));
const bytesOf = (text) => Uint8Array.from(atob(text), (character) => character.charCodeAt(0));

function encodeText(value, texts) {
  if (value.length < SHORTEST_REFERENCE) return value;
  const at = texts.indexOf(value);
  if (at >= 0) return { $text: at };
  // A data URL, of which a part has the bytes.
  const start = value.startsWith('data:') ? value.indexOf(',') + 1 : 0;
  const bytesAt = start ? texts.indexOf(value.slice(start)) : -1;
  return bytesAt < 0 ? value : { $data: bytesAt, before: value.slice(0, start) };
}

function encode(value, texts) {
  if (typeof value === 'string') return encodeText(value, texts);
  if (value instanceof Uint8Array) return { $bytes: base64(value) };
  if (Array.isArray(value)) return value.map((entry) => encode(entry ?? null, texts));
  if (typeof value !== 'object' || value === null) return value;
  if (typeof value.toJSON === 'function') return encode(value.toJSON(), texts);
  const members = Object.entries(value).filter(([, member]) => member !== undefined && typeof member !== 'function');
  const encoded = Object.fromEntries(members.map(([key, member]) => [key, encode(member, texts)]));
  return MARKS.some((mark) => Object.hasOwn(encoded, mark)) ? { $object: encoded } : encoded;
}

function referred(texts, at) {
  if (texts[at] !== undefined) return texts[at];
  throw new RethreadError('corrupt_record', 'a stored item refers to a text that its message does not have');
}

function decode(value, texts) {
  if (Array.isArray(value)) return value.map((entry) => decode(entry, texts));
  if (typeof value !== 'object' || value === null) return value;
  if (Object.hasOwn(value, '$text')) return referred(texts, value.$text);
  if (Object.hasOwn(value, '$data')) return value.before + referred(texts, value.$data);
  if (Object.hasOwn(value, '$bytes')) return bytesOf(value.$bytes);
  const members = Object.hasOwn(value, '$object') ? value.$object : value;
  return Object.fromEntries(Object.entries(members).map(([key, member]) => [key, decode(member, texts)]));
}

const isRecordOf = (name) => (part) => part.type === 'data' && part.name === name;

/** Returns the value as JSON keeps it: without undefined members, bytes included. */
export const asStored = (value) => decode(encode(value, []), []);

/** Returns the part that keeps `record` beside these parts. */
export function recordPart(name, record, parts) {
  return { type: 'data', name, value: encode(record, parts.flatMap(textsOf)) };
}

/** Returns what `recordPart` kept in a stored message, or undefined. */
export function recordOf(name, message) {
  const part = message.parts.find(isRecordOf(name));
  if (!part) return undefined;
  const others = message.parts.filter((other) => other !== part);
  return decode(part.value, others.flatMap(textsOf));
}

/** The messages of a branch, by default the one that is shown, oldest first. */
export async function readPages(session, branch) {
  const pages = [];
  let cursor;
  do {
    const page = await session.messages({ limit: 1000, cursor, branch });
    pages.unshift(page.items);
    cursor = page.cursor ?? undefined;
  } while (cursor !== undefined);
  return pages.flat();
}

/** Reads the session anew, and returns its messages, oldest first. */
export async function readMessages(session) {
  await session.refresh();
  for (;;) {
    const { revision, branch } = session;
    const messages = await readPages(session);
    // Another append in between would have moved the pages.
    if (session.revision === revision && session.branch === branch) return { revision, messages };
  }
}

const hasCall = (message, callIds) =>
  message.parts.some((part) => part.type === 'tool_call' && callIds.has(part.callId));

/** The messages with the newest ones of a page; null if messages before that may have changed: the results of these
 *  calls. */
export function withNewest(messages, items, callIds) {
  const start = messages.findLastIndex(({ id }) => id === items[0]?.id);
  const earlier = messages.slice(0, Math.max(start, 0));
  return start < 0 || earlier.some((message) => hasCall(message, callIds)) ? null : [...earlier, ...items];
}

/** The messages of a session as they were read last. */
export class KnownMessages {
  #session;
  /** @type {{ revision: number, branch: string, messages: any[] } | null} */
  #known = null;

  constructor(session) {
    this.#session = session;
  }

  async read() {
    await this.#session.refresh();
    const { revision, branch } = this.#session;
    const known = this.#known;
    if (known && known.revision === revision && known.branch === branch) return known;
    const read = { ...(await readMessages(this.#session)), branch: this.#session.branch };
    this.#known = read;
    return read;
  }

  /** Appends messages if the session has this revision, and returns their ids. */
  async append(messages, revision) {
    const { messageIds } = await this.#session.append(messages, { expectedRevision: revision });
    const answers = messages.flatMap(({ role, parts }) => (role === 'tool' ? parts : []));
    await this.readAppended(revision, new Set(answers.map(({ callId }) => callId)), messageIds.length);
    return messageIds;
  }

  /** After an append of this object's owner to the revision `before`, of `added` messages: reads only the end. Messages
   *  that precede it are the same, unless the append has answered their calls. */
  async readAppended(before, callIds, added) {
    const known = this.#known;
    const { revision, branch } = this.#session;
    this.#known = null;
    if (!known || known.revision !== before || revision !== before + 1 || branch !== known.branch) return;
    const answered = callIds.size ? known.messages.findIndex((message) => hasCall(message, callIds)) : -1;
    // One of them is known.
    const limit = added + (answered < 0 ? 1 : known.messages.length - answered);
    // The append is stored: what cannot be read now is the next read's to report.
    const items = await this.#session.messages({ limit: Math.min(limit, 1000) }).then(
      (page) => page.items,
      () => [],
    );
    const messages = withNewest(known.messages, items, callIds);
    if (messages && this.#session.revision === revision) this.#known = { revision, branch, messages };
  }
}

/** Times that a change begins again because another writer was first. */
const ATTEMPTS = 20;

/** Performs a change for what the session has; anew for what it has then if another writer was first.
 *  @template R, C @param {any} session @param {() => Promise<R & { revision: number }>} read
 *  @param {(read: R & { revision: number }) => Promise<C>} change @returns {Promise<C>} */
export async function changeSession(session, read, change) {
  for (let attempt = 1; ; attempt += 1) {
    const known = await read();
    try {
      return await change(known);
    } catch (error) {
      // A result whose call was answered meanwhile is `invalid_input`.
      const isLate = error?.code === 'invalid_input' && (await session.refresh()).revision !== known.revision;
      if (attempt === ATTEMPTS || (error?.code !== 'conflict' && !isLate)) throw error;
    }
  }
}

/** True if both have the same JSON value. */
export function isSameJson(left, right) {
  return canonicalJson(left) === canonicalJson(right);
}

/** Returns the JSON text with members sorted by name. */
export function canonicalJson(value) {
  return JSON.stringify(value, (_, member) =>
    typeof member === 'object' && member !== null && !Array.isArray(member)
      ? Object.fromEntries(Object.entries(member).sort(([a], [b]) => (a < b ? -1 : 1)))
      : member,
  );
}
