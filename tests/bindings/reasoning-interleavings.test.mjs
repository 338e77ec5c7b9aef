// R71 through JavaScript: what a run sends extends what it has sent, whatever happens meanwhile. The lanes bind reasoning to its prefix; these models do not.

import { test } from 'node:test';
import { playSeed } from './scenarios/reasoning-interleavings.mjs';
import { playSeeds } from './seeded-interleavings.mjs';

const models = ['claude-opus-4-6', 'claude-sonnet-4-6'];
const play = playSeeds((options) => playSeed({ ...options, models }), { count: 100, longCount: 10_000, options: { binding: true } });

test('r71 reasoning is left out only where something before it changed, and nothing changes inside a run by itself', play);
