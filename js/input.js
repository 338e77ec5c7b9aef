// Blobs and bytes in an input become base64 before they cross: JSON holds neither.

import { RethreadError } from './error.js';
import { isBytes, reasonOf } from './foreign.js';

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

/** The request, its input's bytes as base64; in a list, for a request may have a `then` of its own. */
export async function plainInput(request) {
  try {
    const { input } = request;
    if (!Array.isArray(input)) return [request];
    return [{ ...request, input: await Promise.all(input.map(plainPart)) }];
  } catch (cause) {
    throw new RethreadError('invalid_input', `\`input\` cannot be read: ${reasonOf(cause)}`, {}, { cause });
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
