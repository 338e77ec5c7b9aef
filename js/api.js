// What every entry exports.

import { formatsOf } from './formats.js';
import { setStoresSource } from './load-stores.js';
import { program } from './rethread-program.js';

export { RethreadError } from './error.js';
export { open } from './rethread.js';
export { defineTool, pending } from './tool.js';

export const { StreamAssembler, convert, heal, repair, validate } = formatsOf(program);
/** @type {typeof import('./types.js').init} */
export const init = (source, options) => {
  if (options?.stores) setStoresSource(options.stores);
  return program.load(source);
};
