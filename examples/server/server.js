// A chat on Node, stored in PostgreSQL (DATABASE_URL) or in a SQLite file (SQLITE_FILE).

import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import pg from 'pg';
import { open } from 'rethread';
import { postgres } from 'rethread/postgres';
import { sqlite } from 'rethread/sqlite';
import { Chat } from '../chat/chat.js';

const { DATABASE_URL, SQLITE_FILE = 'chats.sqlite', LEASE_MS = '30000', HOST = '127.0.0.1', PORT = '3000' } = process.env;
const page = readFileSync(new URL('../chat/page.html', import.meta.url));
// Only the code: a driver's error may quote the URL of the database, with its password.
const report = (error) => console.error(`failed: ${error.code ?? error.name}`);

const pool = DATABASE_URL ? new pg.Pool({ connectionString: DATABASE_URL }) : null;
pool?.on('error', report); // an idle connection was lost; the pool opens another one
// The lease: how long a killed process counts as the owner of its runs. Several processes can share a database.
const store = await open({ store: pool ? postgres(pool) : sqlite(SQLITE_FILE), leaseMs: Number(LEASE_MS) });
const chat = async (id) => new Chat(await store.session(id), process.env);

/** Resumes runs that a crash interrupted: of this server before its restart, and of other processes on the same database. */
async function resumeInterrupted() {
  for (const { session, state } of await store.pendingRuns()) {
    // rejects with `busy` if another process was faster
    if (state === 'interrupted') await (await chat(session)).resume().catch(report);
  }
}

async function answer(request) {
  const { pathname } = new URL(request.url);
  if (pathname === '/') return new Response(page, { headers: { 'content-type': 'text/html; charset=utf-8' } });
  // Authenticate here: as written, anyone who knows a chat's id can read it.
  const id = /^\/chats\/([\w-]{36})$/.exec(pathname)?.[1];
  return id ? (await chat(id)).fetch(request) : new Response('not found', { status: 404 });
}

const server = createServer(async (incoming, outgoing) => {
  try {
    const { method, url, headers } = incoming;
    const address = URL.canParse(url, 'http://server') ? new URL(url, 'http://server') : null;
    if (!address) return void outgoing.writeHead(400).end();
    // Other methods are no `Request`.
    if (!['GET', 'HEAD', 'POST'].includes(method)) return void outgoing.writeHead(405, { allow: 'GET, HEAD, POST' }).end();
    const body = method === 'POST' ? Readable.toWeb(incoming) : undefined;
    const { status, headers: sent, body: stream } = await answer(new Request(address, { method, headers, body, duplex: 'half' }));
    outgoing.writeHead(status, Object.fromEntries(sent));
    await pipeline(Readable.fromWeb(stream), outgoing);
  } catch (error) {
    if (error.code !== 'ERR_STREAM_PREMATURE_CLOSE') report(error); // that code: the client has disconnected
    if (!outgoing.headersSent) outgoing.writeHead(error.code === 'busy' ? 409 : 500);
    outgoing.end();
  }
});
server.listen(Number(PORT), HOST, () => console.log(`http://${HOST}:${server.address().port}`));
await resumeInterrupted();
setInterval(() => resumeInterrupted().catch(report), Number(LEASE_MS)).unref();
