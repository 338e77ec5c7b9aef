// Loads the program of SQL and key-value stores with the first store that needs it. Its glue is a module of its own, so
// that a page with another store fetches neither.

import { RethreadError } from './error.js';
import { notLoaded } from './program.js';
import { reasonOf } from './untrusted-value.js';

/** Gives the program its source.
 *  @type {((program: import('./program.js').Program) => void) | null} */
let setUp = null;
/** @type {import('./types/platform.js').WasmSource | undefined} */
let given;

/** Sets what gives the program its source on this platform. */
export function onStoresLoad(work) {
  setUp = work;
}

/** Sets the source that the application passed to `init`. */
export function setStoresSource(source) {
  given = source;
}

async function load() {
  try {
    return await import('./driver-store.js');
  } catch (cause) {
    throw new RethreadError(
      'not_initialized',
      `the program of SQL and key-value stores could not be loaded: ${reasonOf(cause)}. Check the connection and try again, or reload the page`,
      {},
      { cause },
    );
  }
}

/** Gives the program the source of this platform, which may read it at once. */
function setUpHere(program) {
  try {
    setUp?.(program);
  } catch (error) {
    throw notLoaded(error);
  }
  setUp = null;
}

/** Opens the store of a driver. `timeoutMs` limits each call of the driver. */
export async function openDriverStore(driver, isStrict, timeoutMs) {
  const { program, openDriverStore: open } = await load();
  if (!given) setUpHere(program);
  await program.load(given);
  return open(driver, isStrict, timeoutMs);
}
