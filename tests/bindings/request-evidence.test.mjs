// What `drive` says about a request whose `fetch` failed: `failed.sent`.

import assert from 'node:assert/strict';
import http from 'node:http';
import net from 'node:net';
import { test } from 'node:test';
import { drive } from '../../js/host.js';

/** The answer that `drive` gives to a `call_model` of this address. */
function failedAnswer(url, options = {}) {
  return new Promise((resolve) => {
    const request = { method: 'POST', url, headers: {}, body: new TextEncoder().encode('{}') };
    const effects = [{ type: 'call_model', id: 'e1', dialect: 'openai-chat', request, stream: false, repeatable: true }];
    let changed;
    const run = {
      status: 'running',
      maxResponseBytes: 1e6,
      effects: () => effects,
      takeEffects: () => ({ opened: [], closed: [] }),
      events: () => [],
      changed: () => new Promise((change) => { changed = change; }),
      result: () => ({}),
      isErrorResponse: () => false,
      cancel: async () => {},
      async feed() {},
      async answer(_id, answer) {
        if (answer.type !== 'failed') return;
        run.status = 'failed';
        changed();
        resolve(answer);
      },
    };
    drive(run, options);
  });
}

/** A server of one test; `destroy` resets its connections. */
async function listening(server) {
  await new Promise((resolve) => { server.listen(0, '127.0.0.1', resolve); });
  return { url: `http://127.0.0.1:${server.address().port}/`, close: () => new Promise((resolve) => { server.close(resolve); }) };
}

test('r27 nothing was sent where no connection was made', async () => {
  const { url, close } = await listening(net.createServer());
  await close(); // nobody listens at this address any more
  const refused = await failedAnswer(url);
  assert.deepEqual([refused.sent, refused.error.code], [false, 'ECONNREFUSED']);
  const unknown = await failedAnswer('http://name.invalid/');
  assert.equal(unknown.sent, false, unknown.error.message);
  const headers = await failedAnswer('http://name.invalid/', { headers: () => { throw new Error('no key'); } });
  assert.equal(headers.sent, false);
});

test('r27 a connection that breaks after it was made may have sent the request', async () => {
  const { url, close } = await listening(net.createServer((socket) => socket.once('data', () => socket.destroy())));
  assert.equal((await failedAnswer(url)).sent, undefined);
  await close();
  // A fetch of the application may have sent the request more than once.
  const refused = async () => { throw Object.assign(new Error('refused'), { code: 'ECONNREFUSED' }); };
  assert.equal((await failedAnswer(url, { fetch: refused })).sent, undefined);
});

test('r27 a response that times out was sent', async () => {
  const server = http.createServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.write('{');
  });
  const { url, close } = await listening(server);
  assert.equal((await failedAnswer(url, { idleTimeoutMs: 50 })).sent, true);
  server.closeAllConnections();
  await close();
});
