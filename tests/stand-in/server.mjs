// The stand-in server: routes, lanes and cross-origin headers. Runs alone or mounted in another server.

import http from 'node:http';
import { pathToFileURL } from 'node:url';
import { follow, isResponsePath } from './background-state.mjs';
import { control } from './control.mjs';
import { addressOf } from './dialects.mjs';
import { Lane } from './lane.mjs';
import { answerModel } from './model.mjs';
import { isConversationPath } from './service-state.mjs';

const ROUTE = /^(?:\/lane\/([^/]+))?\/(?:control\/(.+?)|(.+?))\/?$/;

function openToAll(req, res) {
  res.setHeader('access-control-allow-origin', '*');
  res.setHeader('access-control-expose-headers', 'retry-after, retry-after-ms, request-id, x-request-id');
  if (req.method !== 'OPTIONS') return;
  res.setHeader('access-control-allow-methods', 'GET, POST, DELETE, OPTIONS');
  res.setHeader('access-control-allow-headers', req.headers['access-control-request-headers'] ?? '*');
  res.setHeader('access-control-allow-private-network', 'true');
  res.setHeader('access-control-max-age', '600');
}

async function read(req) {
  const parts = [];
  for await (const part of req) parts.push(part);
  return Buffer.concat(parts).toString('utf8');
}

function json(res, status, body) {
  if (res.destroyed || res.headersSent) return;
  res.writeHead(status, { 'content-type': 'application/json', 'cache-control': 'no-store' });
  res.end(JSON.stringify(body));
}

/** {handle, state}: `handle` answers what is its own and says whether it was. `base` is a path prefix of the host
 *  server. */
export function createStandIn({ base = '' } = {}) {
  const lanes = new Map();
  const laneOf = (name) => {
    if (!lanes.has(name)) lanes.set(name, new Lane(name));
    return lanes.get(name);
  };
  const reset = (name) => {
    lanes.get(name)?.dispose();
    lanes.delete(name);
  };

  async function serve(req, res, { name, target, isControl, path, query }) {
    const gone = new AbortController();
    const lane = laneOf(name);
    const close = () => {
      res.socket?.destroy();
    };
    lane.closers.add(close);
    // `close` comes after every answer too; only one that was not finished means that the client left.
    res.on('close', () => {
      lane.closers.delete(close);
      if (!res.writableFinished) gone.abort();
    });
    res.on('error', () => {});
    const bodyText = await read(req);
    if (target) {
      if (req.method !== 'POST')
        return json(res, 405, {
          error: {
            message: `Not allowed to ${req.method} on /${path}.`,
            type: 'invalid_request_error',
            param: null,
            code: null,
          },
        });
      return answerModel({ req, res, lane, target, path: req.url, query, bodyText, signal: gone.signal });
    }
    let body = {};
    try {
      if (bodyText) body = JSON.parse(bodyText);
    } catch {
      return json(res, 400, { error: 'the body is not JSON' });
    }
    if (!isControl && isResponsePath(path)) {
      const found = lane.background.answer({ method: req.method, path, query });
      lane.fetched.push({ method: req.method, path: req.url, headers: req.headers, bodyText });
      const cut = found.work ? (lane.cuts.shift() ?? undefined) : undefined;
      if (found.work) return follow({ res, ...found, cut, signal: gone.signal });
      return json(res, found.status, found.json);
    }
    const kept = isControl ? null : lane.service.answer({ method: req.method, path, query, body });
    if (kept) return json(res, kept.status ?? 200, kept.json);
    // A reset must not cut the very request that asks for it.
    const resetLane = () => {
      lane.closers.delete(close);
      reset(name);
    };
    const out = await control({ lane, reset: resetLane, method: req.method, path, body, signal: gone.signal });
    return json(res, out.status ?? 200, out.json);
  }

  async function handle(req, res) {
    const [pathname, search = ''] = req.url.split('?', 2);
    if (!pathname.startsWith(base)) return false;
    const route = ROUTE.exec(pathname.slice(base.length));
    const query = new URLSearchParams(search);
    const target = route?.[3] ? addressOf(route[3].replaceAll('%3A', ':'), query) : null;
    if (!route?.[2] && !target && !isConversationPath(route?.[3]) && !isResponsePath(route?.[3])) return false;
    openToAll(req, res);
    if (req.method === 'OPTIONS') {
      res.writeHead(204);
      res.end();
      return true;
    }
    try {
      await serve(req, res, {
        name: decodeURIComponent(route[1] ?? 'default'),
        target,
        isControl: Boolean(route[2]),
        path: route[2] ?? route[3],
        query,
      });
    } catch (e) {
      // A client that leaves while it still sends is no fault of ours.
      if (!req.destroyed || req.complete) console.error('stand-in:', e);
      json(res, 500, { error: { message: `stand-in: ${e.message}`, type: 'server_error', param: null, code: null } });
      if (!res.writableEnded) res.socket?.destroy();
    }
    return true;
  }

  const dispose = () => {
    for (const name of [...lanes.keys()]) reset(name);
  };
  return { handle, state: { lanes, lane: laneOf, reset, dispose } };
}

export async function startStandIn({ port = 0, host = '127.0.0.1' } = {}) {
  const { handle, state } = createStandIn();
  const server = http.createServer(async (req, res) => {
    if (await handle(req, res)) return;
    openToAll(req, res);
    json(res, 404, {
      error: {
        message: `Invalid URL (${req.method} ${req.url})`,
        type: 'invalid_request_error',
        param: null,
        code: null,
      },
    });
  });
  server.on('clientError', (_, socket) => socket.destroy());
  // A held request may hang for as long as a test needs.
  server.requestTimeout = 0;
  // The client closes idle connections: if both did, a stalled process would send a request on a closed one.
  server.keepAliveTimeout = 0;
  await new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, resolve);
  });
  const at = server.address().port;
  const close = () =>
    new Promise((resolve) => {
      server.close(() => resolve());
      state.dispose();
      server.closeAllConnections();
    });
  return { url: `http://${host}:${at}`, port: at, close, handle, state };
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const { url } = await startStandIn({ port: Number(process.argv[2] ?? 8787) });
  console.log(`model stand-in on ${url}`);
}
