// One origin for a page: static folders under prefixes, the model stand-in beside them, and a strict content policy.

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
  '.mjs': 'text/javascript; charset=utf-8',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
  '.ts': 'text/plain; charset=utf-8',
  '.txt': 'text/plain; charset=utf-8',
  '.wasm': 'application/wasm',
  '.webmanifest': 'application/manifest+json',
};

/** An import map must stand in the page; its hash lets the policy stay free of 'unsafe-inline'. */
function policy(html) {
  const maps = [...html.matchAll(/<script\s+type="importmap"\s*>([\s\S]*?)<\/script>/g)];
  const hashes = maps.map(([, text]) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`);
  return `default-src 'self'; script-src ${["'self'", "'wasm-unsafe-eval'", ...hashes].join(' ')}; connect-src *`;
}

/** The file of a URL path: the longest prefix wins; never one outside its folder. */
async function find(folders, pathname) {
  const prefix = Object.keys(folders).filter((one) => pathname.startsWith(one)).sort((a, b) => b.length - a.length)[0];
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

/** `folders`: URL prefix, ending in "/", to folder. `handle(req, res)` answers first and says whether it did.
 *  A port that is taken gives way to any free one. */
export async function serve({ folders, handle, port = 0, host = '127.0.0.1' }) {
  const server = http.createServer(async (req, res) => {
    try {
      if (await handle?.(req, res)) return;
      const file = await find(folders, decodeURIComponent(new URL(req.url, 'http://page').pathname));
      if (!file && req.url === '/favicon.ico') {
        res.writeHead(204).end(); // browsers ask unasked; a 404 would stand in every console
        return;
      }
      if (!file || !['GET', 'HEAD'].includes(req.method)) {
        res.writeHead(file ? 405 : 404, { 'content-type': 'text/plain' }).end(`${file ? 'not allowed' : 'not found'}: ${req.url}\n`);
        return;
      }
      const body = await readFile(file);
      const headers = { 'content-type': TYPES[path.extname(file)] ?? 'application/octet-stream', 'cache-control': 'no-cache', 'x-content-type-options': 'nosniff' };
      if (file.endsWith('.html')) headers['content-security-policy'] = policy(body.toString('utf8'));
      res.writeHead(200, headers).end(req.method === 'HEAD' ? undefined : body);
    } catch (e) {
      if (!res.headersSent) res.writeHead(e instanceof URIError ? 400 : 500, { 'content-type': 'text/plain' });
      res.end(`${e.message}\n`);
    }
  });
  server.requestTimeout = 0; // the stand-in holds requests for as long as a test wants
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
  return { url: `http://${host === '127.0.0.1' ? 'localhost' : host}:${server.address().port}`, port: server.address().port, close };
}
