// What every entry exports.

export * from '../dist/rethread.js';
export { init } from './load.js';
import { init } from './load.js';

export async function open(options) {
  await init();
  throw new Error(`open is not there yet (${typeof options})`);
}
