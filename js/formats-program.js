// The smaller wasm program: wire formats without sessions and stores.

import { createGlue } from '../dist/formats.js';
import { Program } from './program.js';

export const program = new Program(createGlue);
