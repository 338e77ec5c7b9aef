// A program whose wasm is text in a module: base64 of gzip.

import { bytesOf } from './bytes.js';
import { RethreadError } from './error.js';

/** Returns the bytes of a wasm that the build wrote as text. Throws `not_initialized` where nothing decompresses. */
export async function decompress(text) {
  if (typeof DecompressionStream !== 'function') {
    throw new RethreadError(
      'not_initialized',
      'this platform has no DecompressionStream, which the inlined wasm needs: import rethread/slim, and pass the bytes to init()',
    );
  }
  return new Response(new Blob([bytesOf(text)]).stream().pipeThrough(new DecompressionStream('gzip'))).arrayBuffer();
}
