// Serves a page's origin: static folders under prefixes, other requests by a handler, and a strict content security
// policy.

import { createHash } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import http from 'node:http';
import path from 'node:path';

const TYPES = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.ico': 'image/x-icon',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json',
  '.map': 'application/json',
  '.md': 'text/plain; charset=utf-8',
  '.mjs': 'text/javascript; charset=utf-8',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
  '.ts': 'text/plain; charset=utf-8',
  '.txt': 'text/plain; charset=utf-8',
  '.wasm': 'application/wasm',
  '.webmanifest': 'application/manifest+json',
};

/** The policy of a page. It allows the page's import maps by their hashes, without 'unsafe-inline'. */
function policy(html) {
  const maps = [...html.matchAll(/<script\s+type="importmap"\s*>([\s\S]*?)<\/script>/g)];
  const hashes = maps.map(([, text]) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`);
  return `default-src 'self'; script-src ${["'self'", "'wasm-unsafe-eval'", ...hashes].join(' ')}; connect-src *`;
}

/** Returns the file of a URL path, never one outside its folder. The longest prefix wins. */
async function find(folders, pathname) {
  const prefix = Object.keys(folders)
    .filter((one) => pathname.startsWith(one))
    .sort((a, b) => b.length - a.length)[0];
  if (prefix === undefined) return null;
  const folder = path.resolve(folders[prefix]);
  let file = path.join(folder, pathname.slice(prefix.length));
  if (file !== folder && !file.startsWith(folder + path.sep)) return null;
  let found = await stat(file).catch(() => null);
  if (found?.isDirectory()) {
    file = path.join(file, 'index.html');
    found = await stat(file).catch(() => null);
  }
  return found?.isFile() ? file : null;
}

/** Starts the server. `folders` maps URL prefixes that end in "/" to folders. `handle(req, res)` is called first and
 *  returns true if it has responded. If the port is taken, a free one is used. */
export async function serve({ folders, handle, port = 0, host = '127.0.0.1' }) {
  const server = http.createServer(async (req, res) => {
    try {
      if (await handle?.(req, res)) return;
      const file = await find(folders, decodeURIComponent(new URL(req.url, 'http://page').pathname));
      if (!file && req.url === '/favicon.ico') {
        res.writeHead(204).end(); // browsers request it by themselves; a 404 would be an error in the console
        return;
      }
      if (!file || !['GET', 'HEAD'].includes(req.method)) {
        res
          .writeHead(file ? 405 : 404, { 'content-type': 'text/plain' })
          .end(`${file ? 'not allowed' : 'not found'}: ${req.url}\n`);
        return;
      }
      const body = await readFile(file);
      const headers = {
        'content-type': TYPES[path.extname(file)] ?? 'application/octet-stream',
        'cache-control': 'no-cache',
        'x-content-type-options': 'nosniff',
      };
      if (file.endsWith('.html')) headers['content-security-policy'] = policy(body.toString('utf8'));
      res.writeHead(200, headers).end(req.method === 'HEAD' ? undefined : body);
    } catch (e) {
      if (!res.headersSent) res.writeHead(e instanceof URIError ? 400 : 500, { 'content-type': 'text/plain' });
      res.end(`${e.message}\n`);
    }
  });
  server.requestTimeout = 0; // tests hold requests of the stand-in for any time
  const listen = (at) =>
    new Promise((resolve, reject) => {
      server.once('error', reject);
      server.listen(at, host, () => {
        server.off('error', reject);
        resolve();
      });
    });
  await listen(port).catch((e) => {
    if (e.code !== 'EADDRINUSE') throw e;
    return listen(0);
  });
  const close = () =>
    new Promise((resolve) => {
      server.close(resolve);
      server.closeAllConnections();
    });
  return {
    url: `http://${host === '127.0.0.1' ? 'localhost' : host}:${server.address().port}`,
    port: server.address().port,
    close,
  };
}
