// r64: in workerd, which gets the compiled wasm by an import.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { startStandIn } from '../stand-in/server.mjs';
import { startWorkerd } from '../workerd.mjs';
import { BROKEN } from './bodies.mjs';

test('every form of a body is repaired in workerd', async () => {
  const standIn = await startStandIn();
  const worker = startWorkerd(
    fileURLToPath(new URL('../..', import.meta.url)),
    fileURLToPath(new URL('worker.js', import.meta.url)),
  );
  try {
    const url = `${standIn.url}/lane/workerd/v1/chat/completions`;
    const response = await worker.dispatchFetch('http://worker/', {
      method: 'POST',
      body: JSON.stringify({ url, text: JSON.stringify(BROKEN['openai-chat']) }),
    });
    const { answers, reports } = await response.json();
    assert.deepEqual(answers, [200, 200, 200, 200, 200, 200]);
    assert.deepEqual(reports, Array(5).fill(['openai-chat', 'dangling_call']));
    const requests = await (await fetch(`${standIn.url}/lane/workerd/control/requests`)).json();
    assert.equal(
      requests.at(-1).bodyText,
      '{"model":"m", "messages":[{"role":"user","content":"q"}]}',
      'a valid body byte for byte',
    );
  } finally {
    await worker.dispose();
    await standIn.close();
  }
});
