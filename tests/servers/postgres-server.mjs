// A PostgreSQL server of our own, on a temporary directory, reached by a socket in it.

import { execFileSync, spawn } from 'node:child_process';
import { chmodSync, chownSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout } from 'node:timers/promises';
import pg from 'pg';
import { endsWithThisProcess } from './child-processes.mjs';

/** PostgreSQL does not run as root: then it runs as the user `postgres`, which its package makes. */
export function postgresAccount() {
  if (process.getuid() !== 0) return {};
  const id = (flag) => Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }));
  return { uid: id('-u'), gid: id('-g') };
}

async function query(place, sql) {
  const client = new pg.Client(place);
  client.on('error', () => {});
  await client.connect();
  try {
    return (await client.query(sql)).rows;
  } finally {
    await client.end().catch(() => {});
  }
}

/** Starts a server. `bin` is the folder of its programs, from `.ci/servers.mjs`. `fsync`: it survives more than the
 *  tests need. */
export async function startPostgres({ bin = process.env.POSTGRES_BIN, fsync = false } = {}) {
  if (!bin)
    throw new Error(
      'POSTGRES_BIN is not set: set it to the folder of initdb and postgres, or run `npm test -- --only servers`, which finds or installs them',
    );
  const folder = mkdtempSync(path.join(tmpdir(), 'rethread-postgres-'));
  const { uid, gid } = postgresAccount();
  if (uid !== undefined) chownSync(folder, uid, gid);
  chmodSync(folder, 0o700);
  const options = { uid, gid, cwd: folder, stdio: 'ignore', env: { ...process.env, LC_ALL: 'C' } };
  const data = path.join(folder, 'data');
  execFileSync(
    path.join(bin, 'initdb'),
    ['-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--no-sync'],
    options,
  );
  const place = { host: folder, port: 5432, user: 'postgres', database: 'postgres' };
  let server;
  let exited;
  let isStopped = false;
  const launch = () => {
    // Its other processes end when this one is gone.
    server = endsWithThisProcess(
      spawn(
        path.join(bin, 'postgres'),
        ['-D', data, '-k', folder, '-c', 'listen_addresses=', '-c', `fsync=${fsync ? 'on' : 'off'}`],
        options,
      ),
    );
    exited = new Promise((resolve) => {
      server.once('exit', resolve);
    });
  };
  const ready = async () => {
    for (let attempt = 0; ; attempt += 1) {
      if (isStopped) throw new Error('the server was stopped');
      // After a crash it does not start while a process of the former server lives.
      if (!server || server.exitCode !== null || server.signalCode !== null) launch();
      try {
        return await query(place, 'SELECT 1');
      } catch (error) {
        if (attempt > 200) throw error;
        await setTimeout(100);
      }
    }
  };
  await ready();
  return {
    place,
    pid: () => server.pid,
    /** Kills the server with SIGKILL, and starts it again. */
    async crash() {
      server.kill('SIGKILL');
      await exited;
      await ready();
    },
    /** Kills the processes of all connections with SIGKILL: the server recovers by itself. */
    async crashBackends() {
      const rows = await query(
        place,
        "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()",
      );
      for (const { pid } of rows) process.kill(pid, 'SIGKILL');
      await ready();
    },
    async stop() {
      isStopped = true;
      server.kill('SIGINT');
      await exited;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
