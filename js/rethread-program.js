// The whole program: sessions, stores, runs and the formats.

import { createGlue } from '../dist/rethread.js';
import { Program } from './program.js';

export const program = new Program(createGlue);
