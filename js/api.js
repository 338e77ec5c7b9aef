// What every entry exports.

export { StreamAssembler } from './assembler.js';
export { RethreadError } from './error.js';
export { convert, repair, validate } from './formats.js';
export { load as init } from './load.js';
export { open } from './rethread.js';
