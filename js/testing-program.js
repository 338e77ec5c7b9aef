// The wasm program of the conformance suite for stores.

import { createGlue } from '../dist/testing.js';
import { Program } from './program.js';

export const program = new Program(createGlue);
