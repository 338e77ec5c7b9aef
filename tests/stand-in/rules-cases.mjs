// Cases of a dialect's rules as tests: what is refused and in which words, what is taken, and what was recorded.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import test from 'node:test';
import { fileURLToPath } from 'node:url';
import { addressOf } from './dialects.mjs';

export const data = process.env.RETHREAD_DATA ?? fileURLToPath(new URL('../corpora', import.meta.url));

/** `refused`: by name a body, the sentence and the second argument of `check`; `taken`: bodies. `messageOf(error)`
 *  finds the sentence. */
export function testCases(name, check, { refused, taken, messageOf, assertShape }) {
  for (const [what, [body, words, address]] of Object.entries(refused)) {
    test(`${name} rejects ${what}`, () => {
      const out = check(body, address);
      assert.ok(out, 'it is refused');
      assert.match(messageOf(out.error), words);
      assertShape(out);
    });
  }
  for (const [what, given] of Object.entries(taken)) {
    const [body, address] = Array.isArray(given) ? given : [given];
    test(`${name} accepts ${what}`, () => assert.equal(check(body, address), null));
  }
}

/** Fewer recorded requests that their provider accepted mean that some were lost. */
const LEAST = { 'openai-chat': 170, 'openai-responses': 130, anthropic: 120, gemini: 100, mistral: 30, bedrock: 40 };

/** Judges each recorded request as its provider did. */
export function testRecorded(name, check) {
  test(`${name} judges as the recorded provider did`, (t) => {
    const folder = path.join(data, 'exchanges', name);
    let taken = 0;
    for (const file of fs.readdirSync(folder)) {
      if (file === 'index.json' || !file.endsWith('.json')) continue;
      for (const [i, s] of JSON.parse(fs.readFileSync(path.join(folder, file), 'utf8')).steps.entries()) {
        const address = addressOf(s.url_path.slice(1), new URLSearchParams()) ?? {};
        if (s.status === 200) {
          assert.deepEqual(check(s.request, address), null, `${file} step ${i} was accepted`);
          taken += 1;
        } else if (s.status === 400 && s.response?.error?.code !== 'tool_use_failed') {
          // tool_use_failed is a judgement of what the model wrote, not of the request.
          assert.equal(check(s.request, address)?.status, 400, `${file} step ${i} was refused`);
        }
      }
    }
    assert.ok(taken >= LEAST[name], `${taken} accepted requests of ${name}, ${LEAST[name]} at least`);
    t.diagnostic(`${taken} accepted requests`);
  });
}
