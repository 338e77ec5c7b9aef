// What every entry of `rethread/formats` exports.

import { formatsOf } from './formats.js';
import { program } from './formats-program.js';

export { RethreadError } from './error.js';

export const { StreamAssembler, convert, heal, repair, validate } = formatsOf(program);
/** @type {typeof import('./types.js').init} */
export const init = (source) => program.load(source);
