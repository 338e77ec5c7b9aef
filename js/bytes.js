// Bytes as base64, and back.

/** Numbers that one call of `String.fromCharCode` gets: its arguments are limited. */
const CHUNK = 0x8000;

/** Returns the base64 of bytes. @param {Uint8Array} bytes */
export function base64Of(bytes) {
  let binary = '';
  for (let at = 0; at < bytes.length; at += CHUNK) binary += String.fromCharCode(...bytes.subarray(at, at + CHUNK));
  return btoa(binary);
}

/** Returns the base64 of the UTF-8 bytes of a text. @param {string} text */
export const base64OfText = (text) => base64Of(new TextEncoder().encode(text));

/** Returns the bytes of base64. Throws what `atob` throws for any other text. @param {string} base64 */
export const bytesOf = (base64) => Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
