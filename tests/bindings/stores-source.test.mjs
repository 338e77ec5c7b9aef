// Where the second program comes from: what the application passes to `init`, and what a failure says.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { after, before, test } from 'node:test';
import { init, open } from 'rethread';
import { keyValueService } from './key-value-service.mjs';

const wasm = readFileSync(new URL('../../dist/stores_bg.wasm', import.meta.url));
/** What the server does with the next requests. */
let answers = [];
let requests = 0;
let stores;
const server = createServer((_request, response) => {
  requests += 1;
  const answer = answers.shift() ?? 'wasm';
  if (answer === 'none') return response.destroy();
  response.setHeader('content-type', 'application/wasm');
  if (answer === 'half') {
    response.setHeader('content-length', wasm.length);
    response.write(wasm.subarray(0, wasm.length / 2), () => response.destroy());
    return;
  }
  response.end(answer === 'other' ? Buffer.from('\0asm, but not a program') : wasm);
});
before(async () => {
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  stores = `http://127.0.0.1:${server.address().port}/stores.wasm`;
});
after(() => server.close());

test('r50 Node loads the second program from where the application says', async () => {
  await init(undefined, { stores });
  for (const [answer, reason] of [
    ['none', /fetch failed: other side closed/],
    ['half', /./],
    ['other', /WebAssembly/],
  ]) {
    answers = [answer];
    await assert.rejects(open({ store: keyValueService() }), (error) => {
      assert.equal(error.code, 'not_initialized', error.message);
      assert.equal(error.name, 'RethreadError');
      assert.ok(error.message.startsWith(`the wasm could not be loaded from ${stores}: `), error.message);
      assert.match(error.message, reason);
      assert.match(error.message, /try again.*rethread\/stores\.wasm.*as `stores`/);
      return true;
    });
  }
  assert.equal(requests, 3);
  for (let time = 0; time < 2; time += 1) {
    const client = await open({ store: keyValueService() });
    assert.equal((await client.status()).store, 'key-value');
    await client.close();
  }
  assert.equal(requests, 4, 'a program that is loaded is kept');
});
