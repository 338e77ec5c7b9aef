// `rethread/formats` for bundlers and platforms that have no place for a file: the wasm is text in a module.

import wasm from '../../dist/formats_base64.js';
import { decompress } from '../base64.js';
import { program } from '../formats-program.js';

program.setSource(() => decompress(wasm));

export * from '../formats-api.js';
