// R70 and R71 through JavaScript: reasoning goes back where nothing before it changed, and a run's requests extend each
// other.

import { test } from 'node:test';
import { playSeed } from './scenarios/reasoning-interleavings.mjs';
import { playSeeds } from './seeded-interleavings.mjs';

const models = {
  binding: [
    'claude-opus-5-5',
    'claude-sonnet-5-5',
    'claude-haiku-5-5',
    'claude-fable-5-2',
    'gpt-6.2-sol',
    'gpt-6.2-astra',
  ],
  others: ['claude-opus-4-6', 'claude-sonnet-5', 'gpt-5'],
};
const play = playSeeds((options) => playSeed({ ...options, models }), {
  count: 200,
  longCount: 10_000,
  options: { binding: true },
});

test('r70 r71 no request is refused, and reasoning is left out only where something before it changed', play);
