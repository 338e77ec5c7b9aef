// Blobs and bytes in an input become base64 before they cross: JSON holds neither.

import { RethreadError } from './error.js';
import { isBytes, reasonOf } from './foreign.js';
import { withJsonSchemas } from './tool.js';

const CHUNK = 0x8000;

function base64(bytes) {
  let binary = '';
  for (let at = 0; at < bytes.length; at += CHUNK) binary += String.fromCharCode(...bytes.subarray(at, at + CHUNK));
  return btoa(binary);
}

async function plainPart(part) {
  const { data } = part ?? {};
  if (isBytes(data)) return { ...part, data: base64(data) };
  if (typeof Blob !== 'undefined' && data instanceof Blob) {
    const mediaType = part.mediaType ?? (data.type || undefined);
    return { ...part, mediaType, data: base64(new Uint8Array(await data.arrayBuffer())) };
  }
  return part;
}

/** The request as the core takes it: tools with JSON Schemas, the input's bytes as base64. In a list, since a request may have a
 *  `then` of its own. */
export async function plainRequest(request) {
  try {
    const plain = withJsonSchemas(request);
    const { input } = plain;
    if (!Array.isArray(input)) return [plain];
    return [{ ...plain, input: await Promise.all(input.map(plainPart)) }];
  } catch (cause) {
    if (cause instanceof RethreadError) throw cause;
    throw new RethreadError('invalid_input', `the request cannot be read: ${reasonOf(cause)}`, {}, { cause });
  }
}

/** Neutral messages as they are now, as JSON text, the bytes of their parts as base64. */
export async function plainMessages(messages) {
  let own;
  try {
    own = structuredClone(messages);
  } catch (cause) {
    throw new RethreadError('invalid_input', 'a message holds what cannot be stored: a function, say', {}, { cause });
  }
  if (!Array.isArray(own)) return own;
  return Promise.all(own.map(async (message) =>
    Array.isArray(message?.parts) ? { ...message, parts: await Promise.all(message.parts.map(plainPart)) } : message));
}
