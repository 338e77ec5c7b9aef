// What `drive` says about a request whose `fetch` failed: `failed.sent`.

import assert from 'node:assert/strict';
import http from 'node:http';
import net from 'node:net';
import { test } from 'node:test';
import { drive } from '../../js/host.js';
import { wasSent } from '../../js/host/request-evidence.js';

/** The answer that `drive` gives to a `call_model` of this address. */
function failedAnswer(url, options = {}) {
  return new Promise((resolve) => {
    const request = { method: 'POST', url, headers: {}, body: new TextEncoder().encode('{}') };
    const effects = [
      { type: 'call_model', id: 'e1', dialect: 'openai-chat', request, stream: false, repeatable: true },
    ];
    let changed;
    const run = {
      status: 'running',
      maxResponseBytes: 1e6,
      effects: () => effects,
      takeEffects: () => ({ opened: [], closed: [] }),
      events: () => [],
      changed: () =>
        new Promise((change) => {
          changed = change;
        }),
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
  await new Promise((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  return {
    url: `http://127.0.0.1:${server.address().port}/`,
    close: () =>
      new Promise((resolve) => {
        server.close(resolve);
      }),
  };
}

test('r27 nothing was sent where no connection was made', async () => {
  const { url, close } = await listening(net.createServer());
  await close(); // nobody listens at this address any more
  const refused = await failedAnswer(url);
  assert.deepEqual([refused.sent, refused.error.code], [false, 'ECONNREFUSED']);
  const unknown = await failedAnswer('http://name.invalid/');
  assert.equal(unknown.sent, false, unknown.error.message);
  const headers = await failedAnswer('http://name.invalid/', {
    headers: () => {
      throw new Error('no key');
    },
  });
  assert.equal(headers.sent, false);
});

test('r27 a connection that breaks after it was made may have sent the request', async () => {
  const { url, close } = await listening(net.createServer((socket) => socket.once('data', () => socket.destroy())));
  assert.equal((await failedAnswer(url)).sent, undefined);
  await close();
  // A fetch of the application may have sent the request more than once.
  const refused = async () => {
    throw Object.assign(new Error('refused'), { code: 'ECONNREFUSED' });
  };
  assert.equal((await failedAnswer(url, { fetch: refused })).sent, undefined);
});

test('r27 a code that an established connection can have too is evidence with the system call `connect` only', () => {
  const failure = (...causes) =>
    causes.reduceRight((cause, members) => Object.assign(new Error('x', { cause }), members), undefined);
  const cases = [
    [{ code: 'ECONNREFUSED', syscall: 'connect' }, false],
    [{ code: 'EHOSTUNREACH', syscall: 'connect' }, false],
    [{ code: 'ENETUNREACH', syscall: 'read' }, undefined],
    [{ code: 'EHOSTUNREACH', syscall: 'read' }, undefined],
    [{ code: 'ECONNREFUSED', syscall: 'read' }, undefined],
    [{ code: 'ECONNREFUSED' }, undefined],
    [{ code: 'EADDRNOTAVAIL' }, undefined],
    [{ code: 'ERR_SSL_WRONG_VERSION_NUMBER' }, undefined],
    [{ code: 'UND_ERR_SOCKET' }, undefined],
    [{ code: 'ENOTFOUND', syscall: 'getaddrinfo' }, false],
    [{ code: 'UND_ERR_CONNECT_TIMEOUT' }, false],
    [{ code: 'CERT_HAS_EXPIRED' }, false],
    // A host with several addresses: each of them must have refused.
    [{ code: 'ECONNREFUSED', errors: [{ syscall: 'connect' }, { syscall: 'connect' }] }, false],
    [{ code: 'ECONNREFUSED', errors: [{ syscall: 'connect' }, { syscall: 'read' }] }, undefined],
    [{ errors: [] }, undefined],
  ];
  for (const [members, sent] of cases) {
    assert.equal(wasSent(failure({}, members), globalThis.fetch), sent, JSON.stringify(members));
    assert.equal(
      wasSent(failure({}, members), async () => {}),
      undefined,
      'another fetch',
    );
  }
});

test('r27 a global fetch that was replaced says nothing about what was sent', async () => {
  const { fetch } = globalThis;
  try {
    globalThis.fetch = (...request) => fetch(...request);
    const { error, sent } = await failedAnswer('http://name.invalid/');
    assert.deepEqual([typeof error.code, sent], ['string', undefined]);
  } finally {
    globalThis.fetch = fetch;
  }
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
