// The complete wasm program: sessions, stores, runs and wire formats.

import { createGlue } from '../dist/rethread.js';
import { Program } from './program.js';

export const program = new Program(createGlue);
