// A Redis server of our own, on a temporary directory, reached by a socket in it.

import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { createClient } from 'redis';
import { endsWithThisProcess } from './child-processes.mjs';

/** Starts a server that writes each command to its file before it answers. Start it again with `folder` to go on with
 *  its data. */
export async function startRedis({ folder = mkdtempSync(path.join(tmpdir(), 'rethread-redis-')), settings = [] } = {}) {
  const socket = path.join(folder, 'redis.sock');
  const program = process.env.REDIS_SERVER || 'redis-server';
  const args = [
    '--port',
    '0',
    '--unixsocket',
    socket,
    '--dir',
    folder,
    '--appendonly',
    'yes',
    '--appendfsync',
    'no',
    '--save',
    '',
    ...settings,
  ];
  const server = endsWithThisProcess(spawn(program, args, { stdio: 'ignore' }));
  for (let attempt = 0; ; attempt += 1) {
    const client = createClient({ socket: { path: socket, reconnectStrategy: false } });
    client.on('error', () => {});
    try {
      await client.connect();
      await client.ping();
      await client.close();
      break;
    } catch (error) {
      if (attempt > 200 || server.exitCode !== null) throw error;
      await setTimeout(50);
    }
  }
  const end = async (signal) => {
    server.kill(signal);
    if (server.exitCode === null && server.signalCode === null)
      await new Promise((resolve) => {
        server.once('exit', resolve);
      });
  };
  return {
    place: socket,
    pid: () => server.pid,
    folder,
    kill: () => end('SIGKILL'),
    async stop() {
      await end('SIGTERM');
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
