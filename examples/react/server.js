// Bundles and serves the page, and forwards its requests to the model and to the services of the tools: the keys stay here.

import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { build } from 'esbuild';

const { OPENAI_API_KEY, MODEL = 'gpt-4.1-mini', WEATHER_URL = 'https://wttr.in', WEBHOOK_URL, HOST = '127.0.0.1', PORT = '3000' } = process.env;
const MODEL_URL = process.env.MODEL_URL || (OPENAI_API_KEY ? 'https://api.openai.com/v1/chat/completions' : await standIn());

/** Without a key the model of the repository's tests answers. */
async function standIn() {
  const { startStandIn } = await import('../../tests/stand-in/server.mjs');
  return `${(await startStandIn()).url}/v1/chat/completions`;
}

const here = (name) => fileURLToPath(new URL(name, import.meta.url));
const { outputFiles } = await build({
  entryPoints: [here('main.jsx')],
  bundle: true,
  write: false,
  format: 'esm',
  target: 'es2022',
  jsx: 'automatic',
  loader: { '.wasm': 'file' },
  define: { 'globalThis.MODEL': JSON.stringify(MODEL) },
  outdir: '/',
});
const TYPES = { '.js': 'text/javascript', '.wasm': 'application/wasm' };
const files = new Map(outputFiles.map((file) => [path.basename(file.path), { type: TYPES[path.extname(file.path)], body: file.contents }]));
files.set('', { type: 'text/html; charset=utf-8', body: readFileSync(here('index.html')) });

/** Where a request goes, and with which headers. */
function targetOf({ pathname, search }) {
  if (pathname === '/v1/chat/completions') return [MODEL_URL, OPENAI_API_KEY ? { authorization: `Bearer ${OPENAI_API_KEY}` } : {}];
  if (pathname.startsWith('/weather/')) return [WEATHER_URL + pathname.slice('/weather'.length) + search, {}];
  if (pathname === '/notes') return [WEBHOOK_URL, {}];
  return null;
}

async function forward(incoming, outgoing, [url, headers]) {
  if (!url) {
    console.log(`note: ${await text(incoming)}`); // no webhook
    return void outgoing.end('printed');
  }
  const stopped = new AbortController();
  outgoing.on('close', () => stopped.abort()); // the page stopped the answer
  const body = incoming.method === 'POST' ? Readable.toWeb(incoming) : undefined;
  const sent = { method: incoming.method, headers: { ...headers, 'content-type': 'application/json' }, body, duplex: 'half', signal: stopped.signal };
  const response = await fetch(url, sent);
  const told = ['content-type', 'retry-after'].filter((name) => response.headers.has(name));
  outgoing.writeHead(response.status, Object.fromEntries(told.map((name) => [name, response.headers.get(name)])));
  if (response.body) await pipeline(Readable.fromWeb(response.body), outgoing);
  else outgoing.end(); // 204, of a webhook for example
}

const server = createServer(async (incoming, outgoing) => {
  try {
    const address = new URL(incoming.url, 'http://server');
    const file = files.get(address.pathname.slice(1));
    if (file) return void outgoing.writeHead(200, { 'content-type': file.type }).end(file.body);
    // Pages of other sites must not spend the key.
    const target = incoming.headers['sec-fetch-site'] === 'same-origin' && targetOf(address);
    if (!target) return void outgoing.writeHead(404).end('not found');
    await forward(incoming, outgoing, target);
  } catch (error) {
    if (outgoing.destroyed) return; // the page has left
    console.error(`failed: ${error.code ?? error.name}`); // a message may quote a secret URL
    if (outgoing.headersSent) outgoing.destroy(); // what was cut must not look complete
    else outgoing.writeHead(502).end('the service could not be reached');
  }
});
server.listen(Number(PORT), HOST, () => console.log(`http://${HOST}:${server.address().port}`));
