// Files of UI messages, which are URLs, and the neutral parts of images and files.

import { base64OfText } from '../../bytes.js';
import { without } from '../plain.js';

const BASE64_URL = /^data:([^,]*);base64,/;
const TEXT_URL = /^data:([^,]*),/;

/** The bytes of a data URL as base64; undefined if it is none, or cannot be read. */
function dataOf(url) {
  const encoded = BASE64_URL.exec(url);
  if (encoded) return url.slice(encoded[0].length);
  const text = TEXT_URL.exec(url);
  try {
    return text ? base64OfText(decodeURIComponent(url.slice(text[0].length))) : undefined;
  } catch {
    return undefined;
  }
}

/** The first of the media types that is one: `image` alone names no format. */
function mediaTypeOf({ url, mediaType }) {
  const ofUrl = /^data:([^;,]+)/.exec(url)?.[1];
  return [mediaType, ofUrl].find((type) => typeof type === 'string' && /^[^/*]+\/[^/*]+$/.test(type));
}

/** The neutral part of a file, and what it has no member for; undefined for a URL that no provider can read. */
export function neutralFile(part) {
  if (typeof part.url !== 'string') return undefined;
  const data = dataOf(part.url);
  if (data === undefined && !/^https?:\/\//i.test(part.url)) return undefined;
  const mediaType = mediaTypeOf(part);
  const isImage = (mediaType ?? part.mediaType ?? '').startsWith?.('image') ?? false;
  const neutral = {
    type: isImage ? 'image' : 'file',
    ...(data === undefined ? { url: part.url } : { data }),
    ...(mediaType === undefined ? {} : { mediaType }),
    ...(typeof part.filename === 'string' && !isImage ? { name: part.filename } : {}),
  };
  const isWhole = data === undefined || part.url === `data:${part.mediaType};base64,${data}`;
  return { neutral, rest: without(part, 'type', ...(isWhole ? ['url'] : [])) };
}

/** The file of a neutral part; `rest` is what a mark has of it. A file that only its provider can read is shown by
 *  name. */
export function filePart({ type, url, data, mediaType, name }, rest) {
  const fallback = type === 'image' ? 'image/*' : 'application/octet-stream';
  const file = rest ?? { mediaType: mediaType ?? fallback, ...(name === undefined ? {} : { filename: name }) };
  const own = url ?? (data === undefined ? undefined : `data:${file.mediaType};base64,${data}`);
  if (own === undefined && file.url === undefined) return { type: 'data-file', data: { name, mediaType } };
  return { type: 'file', url: own, ...file };
}
