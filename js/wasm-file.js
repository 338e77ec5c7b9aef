// A wasm of the package, read from disk.

import { readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { RethreadError } from './error.js';
import { reasonOf } from './untrusted-value.js';

/** Returns the bytes of dist/`name`. `address` returns the URL of the file as bundlers understand it, and `moduleUrl`
 *  that of the entry; they are functions because a bundle may have no `import.meta.url`. Throws `not_initialized`. */
export function readWasm(name, address, moduleUrl) {
  try {
    return readFileSync(address());
  } catch (cause) {
    return readBeside(name, moduleUrl) ?? fail(cause);
  }
}

/** Reads the file where the entry is installed. In a bundle of Next the URL is that of an asset for browsers, and
 *  `import.meta.url` still the address of the source. */
function readBeside(name, moduleUrl) {
  try {
    return readFileSync(path.join(path.dirname(fileURLToPath(moduleUrl())), '../../dist', name));
  } catch {
    return null; // the first error says more
  }
}

/** @returns {never} */
function fail(cause) {
  throw new RethreadError(
    'not_initialized',
    `the wasm of the package could not be read: ${reasonOf(cause)}. A bundler may have moved the code away from the` +
      ' file: leave `rethread` out of the bundle (with Next `serverExternalPackages: ["rethread"]`, with others' +
      ' `external`), or bundle with the condition `base64`, which needs no file. Where a deployment leaves the file of' +
      ' the program of stores out, pass it to init(undefined, { stores })',
    {},
    { cause },
  );
}
