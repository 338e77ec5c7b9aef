// Bodies for every build to judge: each recorded request, and recorded ones broken in every way that a seed draws.

import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

export const DIALECTS = ['openai-chat', 'openai-responses', 'anthropic', 'gemini', 'mistral'];
const LISTS = { gemini: 'contents', 'openai-responses': 'input' };
export const corpora = process.env.RETHREAD_DATA || fileURLToPath(new URL('../corpora', import.meta.url));

/** [{dialect, body}], the body as bytes. */
export function recorded() {
  return DIALECTS.flatMap((dialect) => {
    const folder = path.join(corpora, 'exchanges', dialect);
    return readdirSync(folder)
      .filter((name) => name.endsWith('.json') && name !== 'index.json')
      .sort()
      .flatMap((name) => {
        const { steps } = JSON.parse(readFileSync(path.join(folder, name), 'utf8'));
        return steps.map(({ request }) => ({ dialect, body: Buffer.from(JSON.stringify(request)) }));
      });
  });
}

/** Numbers below `n`, the same ones for the same seed. */
function dice(seed) {
  let state = seed >>> 0;
  return (n) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % n;
  };
}

const STRANGE = [
  null,
  true,
  0,
  -1.5,
  '',
  '\ud83d',
  'x',
  [],
  {},
  [null],
  { type: 'text' },
  { role: 'tool' },
  '\u0000\u2028é',
];

/** A place in a JSON value: {holder, key}. */
function somewhere(value, roll) {
  let holder = value;
  for (;;) {
    const keys = Object.keys(holder);
    if (!keys.length) return null;
    const key = keys[roll(keys.length)];
    const inner = holder[key];
    if (typeof inner !== 'object' || inner === null || roll(4) === 0) return { holder, key };
    holder = inner;
  }
}

const WAYS = [
  (list, roll) => list.splice(roll(list.length), 1),
  (list, roll) => list.splice(roll(list.length + 1), 0, structuredClone(list[roll(list.length)])),
  (list, roll) => list.push(...list.splice(roll(list.length), 1)),
  (list, roll) => list.splice(roll(list.length)),
  (list, roll) => list.splice(roll(list.length), 0, STRANGE[roll(STRANGE.length)]),
  (list, roll) => {
    const place = somewhere(list, roll);
    if (place) place.holder[place.key] = STRANGE[roll(STRANGE.length)];
  },
  (list, roll) => {
    const place = somewhere(list, roll);
    if (place && !Array.isArray(place.holder)) delete place.holder[place.key];
  },
];

/** `count` broken bodies. */
export function broken(from, count, seed) {
  const roll = dice(seed);
  return Array.from({ length: count }, () => {
    const { dialect, body } = from[roll(from.length)];
    const value = JSON.parse(body);
    const list = value[LISTS[dialect] ?? 'messages'];
    for (let times = 1 + roll(4); times > 0; times -= 1)
      if (Array.isArray(list) && list.length) WAYS[roll(WAYS.length)](list, roll);
    let text = Buffer.from(JSON.stringify(roll(12) ? value : list) ?? 'null');
    if (roll(10) === 0) text = text.subarray(0, roll(text.length)); // cut off
    if (roll(15) === 0) text[roll(text.length)] = roll(256); // one byte of another kind, UTF-8 or not
    return { dialect: roll(20) ? dialect : DIALECTS[roll(DIALECTS.length)], body: text };
  });
}

/** Texts that no JSON.stringify makes. */
export const odd = () =>
  [
    '',
    'null',
    '7',
    '"x"',
    '[]',
    '{}',
    '{"messages":7}',
    '{"messages":[{"role":"user","role":"tool","content":1e400}]}',
    '{"messages":[{"role":"user","content":"\\ud83d"}]}',
    '\ufeff{"messages":[]}',
    ` ${'['.repeat(5000)}`,
    `{"messages":${'['.repeat(2000)}${']'.repeat(2000)}}`,
  ].flatMap((text) => DIALECTS.map((dialect) => ({ dialect, body: Buffer.from(text) })));
