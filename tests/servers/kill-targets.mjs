// What is killed with SIGKILL in the middle of appends: one row a store and a victim.
//
// A target is a function of a folder and a `TargetTest`. It returns `round(writer, appends)`, which begins to append as
// `writer`, kills after so many acknowledged turns, restarts what was killed, and returns `{ acknowledged, doubtful }`;
// and `check(acknowledged, doubtful)`.
//
// A target tells `onEnd` how to stop what it has started as soon as it runs, and stops appending when `signal` says
// that the test is over: so a test that fails or takes too long leaves nothing running.
//
// @typedef {{ onEnd: (end: () => unknown) => void, signal: AbortSignal }} TargetTest

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { open } from 'rethread';
import { askWorkerd, startWorkerd } from '../workerd.mjs';
import { checkFound, turn } from './acknowledged.mjs';
import { endsWithThisProcess } from './child-processes.mjs';
import { openDriver } from './drivers.mjs';
import { startPostgres } from './postgres-server.mjs';
import { startRedis } from './redis-server.mjs';
import { workerdProcess } from './workerd-process.mjs';

const writerProgram = fileURLToPath(new URL('kill-writer.mjs', import.meta.url));

/** Kills the process that appends. It may have appended one turn more than it could say. */
function writerKilled(store, start) {
  return async (folder, test) => {
    const { place } = await start(folder, test);
    return {
      async round(writer, appends) {
        const child = endsWithThisProcess(
          spawn(process.execPath, ['--no-warnings', writerProgram, store, place, 's', writer], {
            stdio: ['ignore', 'pipe', 'inherit'],
          }),
        );
        test.onEnd(() => child.kill('SIGKILL'));
        const exited = once(child, 'exit');
        let printed = '';
        for await (const chunk of child.stdout) {
          printed += chunk;
          if (printed.split('\n').length > appends) child.kill('SIGKILL');
        }
        const [code, signal] = await exited;
        assert.equal(signal, 'SIGKILL', `the writer ended by itself with ${code}`);
        const acknowledged = printed.split('\n').filter((line) => line.includes(':'));
        return { acknowledged, doubtful: [`${writer}:${acknowledged.length}`] };
      },
      async check(acknowledged, doubtful) {
        const { driver, end } = await openDriver(store, place);
        try {
          return await checkFound(await open({ store: driver }), 's', acknowledged, doubtful);
        } finally {
          await end();
        }
      },
    };
  };
}

/** Kills the server, or a part of it, while this process appends through one client, which goes on when the server is
 *  back. */
function serverKilled(store, start, kill) {
  return async (folder, test) => {
    const server = await start(folder, test);
    const { driver, end } = await openDriver(store, server.place);
    test.onEnd(end);
    const client = await open({ store: driver });
    const session = await client.session('s');
    return {
      async round(writer, appends) {
        const acknowledged = [];
        const doubtful = [];
        let killing;
        const startKilling = () => {
          killing = setTimeout(Math.random() * 5).then(() => kill(server));
          killing.catch(() => {}); // a round that fails does not wait for it
        };
        for (let number = 0; acknowledged.length < appends + 20; number += 1) {
          test.signal.throwIfAborted();
          if (acknowledged.length >= appends && !killing) startKilling();
          try {
            await session.append(turn(writer, number));
            acknowledged.push(`${writer}:${number}`);
          } catch (error) {
            assert.equal(error.name, 'RethreadError', String(error));
            assert.ok(['store_error', 'unavailable'].includes(error.code), `${error.code}: ${error.message}`);
            doubtful.push(`${writer}:${number}`);
            assert.ok(doubtful.length < 2000, `the store does not come back: ${error.message}`);
            await setTimeout(20);
          }
        }
        await killing;
        return { acknowledged, doubtful };
      },
      async check(acknowledged, doubtful) {
        const other = await openDriver(store, server.place);
        try {
          return await checkFound(await open({ store: other.driver }), 's', acknowledged, doubtful);
        } finally {
          await other.end();
        }
      },
    };
  };
}

/** Kills workerd, with all that runs in it. Of a request that got no answer, any number of its turns may be there. */
function workerdKilled(address) {
  return async (folder, test) => {
    const start = () =>
      startWorkerd(
        fileURLToPath(new URL('../..', import.meta.url)),
        fileURLToPath(new URL('kill-worker.js', import.meta.url)),
        {
          compatibilityFlags: ['nodejs_compat'],
          d1Databases: { DB: 'chats' },
          d1Persist: path.join(folder, 'd1'),
          durableObjects: { CHATS: { className: 'Chats', useSQLite: true } },
          durableObjectsPersist: path.join(folder, 'objects'),
        },
      );
    let worker = start();
    test.onEnd(() => worker.dispose());
    const ask = (path, body) =>
      askWorkerd(worker, `${address}/${path}`, body ? { method: 'POST', body: JSON.stringify(body) } : {});
    return {
      async round(writer, appends) {
        const acknowledged = [];
        const doubtful = [];
        const count = 10;
        await worker.ready;
        const pid = workerdProcess();
        let killing;
        for (let first = 0; !doubtful.length; first += count) {
          test.signal.throwIfAborted();
          const asked = ask(`append?writer=${writer}&first=${first}&count=${count}`);
          // In the middle of a request, not before it has arrived.
          if (acknowledged.length >= appends)
            killing ??= setTimeout(Math.random() * 40).then(() => process.kill(pid, 'SIGKILL'));
          try {
            acknowledged.push(...(await asked).tokens);
          } catch (error) {
            if (error.code === 'ERR_ASSERTION') throw error;
            doubtful.push(...Array.from({ length: count }, (_, at) => `${writer}:${first + at}`));
          }
          if (acknowledged.length > appends + 10 * count) await setTimeout(50);
        }
        await killing;
        await worker.dispose().catch(() => {}); // its process is gone
        test.signal.throwIfAborted();
        worker = start();
        return { acknowledged, doubtful };
      },
      check: async (acknowledged, doubtful) => (await ask('check', { acknowledged, doubtful })).found,
    };
  };
}

const file = async (folder) => ({ place: path.join(folder, 'chat.sqlite') });
const files = async (folder) => ({ place: path.join(folder, 'chats') });
const postgresServer = (options) => async (folder, test) => {
  const server = await startPostgres(options);
  test.onEnd(() => server.stop());
  return { ...server, place: JSON.stringify(server.place) };
};
// Redis has a command on the disk before it answers.
const SAFE = ['--appendfsync', 'always'];
const redisServer = async (folder, test) => {
  let server = await startRedis({ settings: SAFE });
  test.onEnd(() => server.stop());
  return {
    place: server.place,
    async crash() {
      await server.kill();
      test.signal.throwIfAborted();
      server = await startRedis({ folder: server.folder, settings: SAFE });
    },
  };
};

/** By file of tests: each file is one for node's test runner, which ends it after its time. */
export const TARGETS = {
  sqlite: {
    'node:sqlite, its process': writerKilled('node:sqlite', file),
    '@libsql/client, its process': writerKilled('@libsql/client', file),
  },
  // Its files are written in place, so a kill leaves a part of one.
  unstorage: {
    'unstorage with files, its process': writerKilled('unstorage fs', files),
  },
  postgres: {
    'PostgreSQL, the writing process': writerKilled('pg Pool', postgresServer()),
    'PostgreSQL, the server': serverKilled('pg Pool', postgresServer({ fsync: true }), (server) => server.crash()),
    'PostgreSQL, the backend': serverKilled('pg Pool', postgresServer({ fsync: true }), (server) =>
      server.crashBackends(),
    ),
  },
  redis: {
    'Redis, the writing process': writerKilled('ioredis', redisServer),
    'Redis, the server': serverKilled('ioredis', redisServer, (server) => server.crash()),
    'Redis with the other client, the server': serverKilled('redis', redisServer, (server) => server.crash()),
  },
  workerd: {
    'Durable Object, workerd': workerdKilled('object'),
    'D1, workerd': workerdKilled('d1'),
  },
};
