// A function from a `Request` to a `Response` as a server of node:http.

import http from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';

/** Starts the server on a free port. Returns its origin and what ends it. */
export async function serveRequests(handle) {
  const server = http.createServer(async (incoming, outgoing) => {
    const { method, headers } = incoming;
    const body = method === 'POST' ? Readable.toWeb(incoming) : undefined;
    const url = `http://${headers.host}${incoming.url}`;
    try {
      const response = await handle(new Request(url, { method, headers, body, duplex: 'half' }));
      outgoing.writeHead(response.status, Object.fromEntries(response.headers));
      outgoing.flushHeaders();
      if (response.body) await pipeline(Readable.fromWeb(response.body), outgoing);
      else outgoing.end();
    } catch (error) {
      // A page that has left.
      if (error?.code === 'ERR_STREAM_PREMATURE_CLOSE') return;
      if (!outgoing.headersSent) outgoing.writeHead(500);
      outgoing.end(String(error));
    }
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const close = () =>
    new Promise((resolve) => {
      server.close(resolve);
      server.closeAllConnections();
    });
  return { origin: `http://127.0.0.1:${server.address().port}`, close };
}
