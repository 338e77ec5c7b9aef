// A TCP proxy before a PostgreSQL server that cuts connections: when a commit's reply comes, or before the commit is
// passed on.

import { createConnection, createServer } from 'node:net';
import path from 'node:path';

/** `cut(when, count)` cuts the next `count` commits "before" or "after" the server has them. */
export async function cuttingProxy({ host, port, ...place }) {
  const cuts = [];
  const proxy = createServer((client) => {
    const server = createConnection(path.join(host, `.s.PGSQL.${port}`));
    const end = () => {
      client.destroy();
      server.destroy();
    };
    for (const socket of [client, server]) socket.on('error', end).on('close', end);
    let isCut = false;
    client.on('data', (bytes) => {
      const cut = bytes.includes('COMMIT') ? cuts.shift() : undefined;
      if (cut === 'before') return end();
      isCut = cut === 'after';
      return server.write(bytes);
    });
    server.on('data', (bytes) => (isCut ? end() : client.write(bytes)));
  });
  await new Promise((resolve) => {
    proxy.listen(0, '127.0.0.1', resolve);
  });
  return {
    place: { ...place, host: '127.0.0.1', port: /** @type {import('node:net').AddressInfo} */ (proxy.address()).port },
    cut: (when, count = 1) => cuts.push(...Array.from({ length: count }, () => when)),
    close: () =>
      new Promise((resolve) => {
        proxy.close(resolve);
      }),
  };
}
