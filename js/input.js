// Blobs and bytes in an input become base64 before they cross: JSON holds neither.

const CHUNK = 0x8000;

function base64(bytes) {
  let binary = '';
  for (let at = 0; at < bytes.length; at += CHUNK) binary += String.fromCharCode(...bytes.subarray(at, at + CHUNK));
  return btoa(binary);
}

async function plainPart(part) {
  const { data } = part ?? {};
  if (data instanceof Uint8Array) return { ...part, data: base64(data) };
  if (typeof Blob !== 'undefined' && data instanceof Blob) {
    const mediaType = part.mediaType ?? (data.type || undefined);
    return { ...part, mediaType, data: base64(new Uint8Array(await data.arrayBuffer())) };
  }
  return part;
}

/** The request, its input's bytes as base64. */
export async function plainInput(request) {
  if (!Array.isArray(request?.input)) return request;
  return { ...request, input: await Promise.all(request.input.map(plainPart)) };
}
