// Converts the Blobs and bytes of an input to base64, because JSON can represent neither.

import { base64Of } from './bytes.js';
import { RethreadError } from './error.js';
import { isBytes, isList, memberOf, reasonOf } from './untrusted-value.js';
import { time } from './arguments.js';
import { withJsonSchemas } from './tool.js';

async function plainPart(part) {
  const { data } = part ?? {};
  if (isBytes(data)) return { ...part, data: base64Of(data) };
  if (typeof Blob !== 'undefined' && data instanceof Blob) {
    const mediaType = part.mediaType ?? (data.type || undefined);
    return { ...part, mediaType, data: base64Of(new Uint8Array(await data.arrayBuffer())) };
  }
  return part;
}

/** The handoffs that a resumed run gets again. */
export function handoffsOf(request) {
  const handoffs = memberOf(request, 'handoffs');
  return Array.isArray(handoffs) ? handoffs : [];
}

function withPlainHandoffs(request) {
  const handoffs = handoffsOf(request);
  return handoffs.length ? { ...request, handoffs: handoffs.map(withJsonSchemas) } : request;
}

/** The request for the core: tools with JSON Schemas, bytes of the input as base64. Wrapped in an array, because a
 *  request with a `then` member would be awaited. */
export async function plainRequest(request) {
  try {
    const plain = withPlainHandoffs(withJsonSchemas(request));
    const { input } = plain;
    if (!Array.isArray(input)) return [plain];
    return [{ ...plain, input: await Promise.all(input.map(plainPart)) }];
  } catch (cause) {
    if (cause instanceof RethreadError) throw cause;
    throw new RethreadError('invalid_input', `the request cannot be read: ${reasonOf(cause)}`, {}, { cause });
  }
}

/** The messages of a page or of a view's snapshot, which may be given in their place. */
function messagesOf(content) {
  const shown = memberOf(content, 'messages');
  if (isList(shown) && typeof memberOf(content, 'hasOlder') === 'boolean') {
    if (!memberOf(content, 'hasOlder') && !memberOf(content, 'loading')) return shown;
    const message =
      'this snapshot does not have all messages of its session: older ones precede it; ' +
      'call `older()` of the view until `hasOlder` is false, or append the pages that `messages()` returns, the oldest page first';
    throw new RethreadError('invalid_input', message);
  }
  const items = Array.isArray(content) ? undefined : memberOf(content, 'items');
  if (!isList(items)) return content;
  if ((memberOf(content, 'cursor') ?? null) === null) return items;
  const message =
    'this page is not the first one of its session: older messages precede it; ' +
    'read all pages with `cursor`, and append their `items`, the oldest page first';
  throw new RethreadError('invalid_input', message);
}

/** Throws for a time of a message that JSON would write as `null`, which is no time. */
function checkTimes(message, at) {
  const check = time(`message ${at}`);
  check(message, 'createdAt');
  for (const part of Array.isArray(message?.parts) ? message.parts : []) {
    check(part, 'finishedAt');
    check(part?.call, 'finishedAt');
  }
}

/** A copy of the messages of an append. */
export async function appendedMessages(content) {
  return plainMessages(messagesOf(content));
}

/** A copy of neutral messages, with the bytes of their parts as base64. */
export async function plainMessages(messages) {
  let copy;
  try {
    copy = structuredClone(messages);
  } catch (cause) {
    throw new RethreadError(
      'invalid_input',
      'a message contains a value that cannot be stored, such as a function; pass plain data, Blobs or bytes',
      {},
      { cause },
    );
  }
  if (!Array.isArray(copy)) return copy;
  copy.forEach(checkTimes);
  return Promise.all(
    copy.map(async (message) =>
      Array.isArray(message?.parts) ? { ...message, parts: await Promise.all(message.parts.map(plainPart)) } : message,
    ),
  );
}
