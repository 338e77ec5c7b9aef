// A PostgreSQL server of our own, on a temporary directory, reached by a socket in it.

import { execFileSync, spawn } from 'node:child_process';
import { chmodSync, chownSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout } from 'node:timers/promises';
import pg from 'pg';

/** PostgreSQL does not run as root: then as the user `postgres`, which its package makes. */
function account() {
  if (process.getuid() !== 0) return {};
  const id = (flag) => Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }));
  return { uid: id('-u'), gid: id('-g') };
}

/** Starts a server. `bin` is the folder of its programs, from `.ci/tools.mjs`. */
export async function startPostgres(bin = process.env.POSTGRES_BIN) {
  const folder = mkdtempSync(path.join(tmpdir(), 'rethread-postgres-'));
  const { uid, gid } = account();
  if (uid !== undefined) chownSync(folder, uid, gid);
  chmodSync(folder, 0o700);
  const options = { uid, gid, cwd: folder, stdio: 'ignore', env: { ...process.env, LC_ALL: 'C' } };
  const data = path.join(folder, 'data');
  execFileSync(path.join(bin, 'initdb'), ['-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--no-sync'], options);
  const server = spawn(path.join(bin, 'postgres'), ['-D', data, '-k', folder, '-c', 'listen_addresses=', '-c', 'fsync=off'], options);
  const place = { host: folder, port: 5432, user: 'postgres', database: 'postgres' };
  for (let attempt = 0; ; attempt += 1) {
    const client = new pg.Client(place);
    try {
      await client.connect();
      await client.end();
      break;
    } catch (error) {
      if (attempt > 200 || server.exitCode !== null) throw error;
      await setTimeout(100);
    }
  }
  return {
    place,
    async stop() {
      server.kill('SIGINT');
      if (server.exitCode === null) await new Promise((resolve) => { server.once('exit', resolve); });
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
