// r47: who listens hears of other processes without `refresh`, where the store has a way: PostgreSQL's LISTEN and
// NOTIFY, Redis's PUBLISH and SUBSCRIBE.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { DatabaseSync } from 'node:sqlite';
import { after, before, describe, test } from 'node:test';
import { setImmediate, setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Redis } from 'ioredis';
import pg from 'pg';
import { createClient } from 'redis';
import { open } from 'rethread';
import { postgres } from 'rethread/postgres';
import { redis } from 'rethread/redis';
import { sqlite } from 'rethread/sqlite';
import { openDriver } from './drivers.mjs';
import { until } from './polling.mjs';
import { startPostgres } from './postgres-server.mjs';
import { startRedis } from './redis-server.mjs';
import { allTexts } from './texts.mjs';

const message = (text) => [{ role: 'user', parts: [{ type: 'text', text }] }];
const appender = fileURLToPath(new URL('appender.mjs', import.meta.url));

/** Resolves when the session has so many messages, by what its listener hears alone. */
const hears = (session, count) =>
  new Promise((resolve, reject) => {
    const look = () =>
      allTexts(session).then((texts) => {
        if (texts.length >= count) resolve(texts);
      }, reject);
    session.subscribe(look);
  });

/** Listens to a session until an append of another store was heard. Returns all texts. */
async function subscribed(session, other, text) {
  // The first append may come before the server has begun to listen: others follow until one is heard.
  const count = (await allTexts(session)).length + 1;
  let isHeard = false;
  const heard = hears(session, count).then(() => {
    isHeard = true;
  });
  await until(
    'a notice',
    async () => {
      if (!isHeard) {
        await other.append(message(text));
        await Promise.race([heard, setTimeout(50)]);
      }
      return isHeard;
    },
    600,
  );
  // The notices of the last appends may be under way.
  await session.refresh();
  return allTexts(session);
}

/** Ends what the tests of a server left, and the server. A test that failed left clients in use, whose end would wait
 *  for ever. */
async function stopAll(ends, server) {
  const ended = Promise.allSettled(ends.map(async (end) => end()));
  await Promise.race([ended, setTimeout(5000, undefined, { ref: false })]);
  await server?.stop();
}

describe('PostgreSQL', () => {
  let server;
  const ends = [];
  before(async () => {
    server = await startPostgres();
  });
  after(() => stopAll(ends, server));
  const pool = (more) => {
    const made = new pg.Pool({ ...server.place, max: 3, ...more });
    made.on('error', () => {});
    ends.push(() => made.end());
    return made;
  };

  for (const [name, make] of Object.entries({
    'a Pool': async () => postgres(pool()),
    'a Client': async () => {
      const client = new pg.Client(server.place);
      await client.connect();
      ends.push(() => client.end());
      return postgres(client);
    },
  })) {
    test(`r47 with ${name} a session and a store are notified by another process`, async () => {
      const id = `heard by ${name}`;
      const store = await open({ store: await make() });
      const session = await store.session(id);
      const changes = [];
      store.subscribe((change) => {
        changes.push(change);
      });
      const beside = await open({ store: postgres(pool()) });
      await subscribed(session, await beside.session(id), 'x');
      const before = (await allTexts(session)).length;
      const heard = hears(session, before + 3);
      await promisify(execFile)(process.execPath, [
        '--no-warnings',
        appender,
        'pg Pool',
        JSON.stringify(server.place),
        id,
        '7',
        '3',
      ]);
      assert.deepEqual((await heard).slice(-3), ['7:0', '7:1', '7:2']);
      assert.ok(changes.every((change) => change.session === id && change.revision > 0 && !('from' in change)));
      // Its own appends are announced once.
      changes.length = 0;
      const { revision } = await session.append(message('own'));
      const gone = new Promise((resolve) => {
        store.subscribe((change) => {
          if (change.deleted) resolve(change);
        });
      });
      await beside.deleteSession(id);
      assert.deepEqual(await gone, { session: id, revision: 0, deleted: true });
      assert.deepEqual(changes.filter((change) => change.revision === revision).length, 1);
      await store.close();
      await beside.close();
    });
  }

  test('r47 a session whose id is longer than a notice is notified', async () => {
    const id = 'long '.repeat(2000);
    const [one, two] = [await open({ store: postgres(pool()) }), await open({ store: postgres(pool()) })];
    assert.deepEqual((await subscribed(await two.session(id), await one.session(id), 'x'))[0], 'x');
    await Promise.all([one.close(), two.close()]);
  });

  test('r47 a lost listening connection is replaced, and missed changes are read', async () => {
    const [one, two] = [
      await open({ store: postgres(pool({ application_name: 'writes' })) }),
      await open({ store: postgres(pool({ application_name: 'listens' })) }),
    ];
    const session = await two.session('lost');
    const other = await one.session('lost');
    await subscribed(session, other, 'x');
    const before = (await allTexts(session)).length;
    const heard = hears(session, before + 1);
    const { rowCount } = await pool().query(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'listens'",
    );
    assert.ok(rowCount >= 1);
    await other.append(message('while nobody listened'));
    assert.equal((await heard).at(-1), 'while nobody listened');
    await Promise.all([one.close(), two.close()]);
  });

  test('r47 a pool of one connection, and `listen: false`, work without; closing returns every connection', async () => {
    const single = pool({ max: 1 });
    const quiet = pool();
    for (const [of, driver] of [
      [single, postgres(single)],
      [quiet, postgres(quiet, { listen: false })],
    ]) {
      const store = await open({ store: driver });
      const session = await store.session('quiet');
      let calls = 0;
      session.subscribe(() => {
        calls += 1;
      });
      await session.append(message('own'));
      assert.equal(calls, 1);
      assert.equal(of.totalCount, of.idleCount);
      await store.close();
    }
    const shared = pool();
    const store = await open({ store: postgres(shared) });
    const session = await store.session('closed');
    const writer = await open({ store: postgres(pool()) });
    await subscribed(session, await writer.session('closed'), 'x');
    assert.equal(shared.totalCount - shared.idleCount, 1);
    await store.close();
    await until('every connection', () => shared.totalCount === shared.idleCount);
    await writer.close();
  });

  test('a wrong `listen` is rejected', () => {
    assert.throws(() => postgres(pool(), { listen: 'yes' }), { code: 'config_invalid' });
  });
});

for (const client of ['ioredis', 'redis']) {
  describe(`Redis, with ${client}`, () => {
    let server;
    /** @type {Redis} */
    let raw;
    const ends = [];
    before(async () => {
      server = await startRedis();
      raw = new Redis(server.place);
    });
    after(async () => {
      raw?.disconnect();
      await stopAll(ends, server);
    });
    const driver = async (name) => {
      const opened = await openDriver(client, `${server.place} ${name}:`);
      ends.push(opened.end);
      return opened.driver;
    };
    const listeners = async () => (await raw.client('LIST', 'TYPE', 'pubsub')).split('\n').filter(Boolean).length;
    const gone = () => until('the end of all listeners', async () => (await listeners()) === 0);

    test('r47 a session and a store are notified by another process, once for each append', async () => {
      const store = await open({ store: await driver('heard') });
      const session = await store.session('s');
      const changes = [];
      store.subscribe((change) => {
        changes.push(change);
      });
      const beside = await open({ store: await driver('heard') });
      await subscribed(session, await beside.session('s'), 'x');
      const heard = hears(session, (await allTexts(session)).length + 3);
      await promisify(execFile)(process.execPath, [
        '--no-warnings',
        appender,
        client,
        `${server.place} heard:`,
        's',
        '7',
        '3',
      ]);
      assert.deepEqual((await heard).slice(-3), ['7:0', '7:1', '7:2']);
      assert.ok(changes.every((change) => change.session === 's' && change.revision > 0 && !('from' in change)));
      changes.length = 0;
      const { revision } = await session.append(message('own'));
      const deleted = new Promise((resolve) => {
        store.subscribe((change) => {
          if (change.deleted) resolve(change);
        });
      });
      await beside.deleteSession('s');
      assert.deepEqual(await deleted, { session: 's', revision: 0, deleted: true });
      assert.equal(changes.filter((change) => change.revision === revision).length, 1);
      await Promise.all([store.close(), beside.close()]);
      await gone();
    });

    test('r47 the script of a commit sends the notice, and only to its prefix', async () => {
      const inner = await driver('commit');
      const published = [];
      const heard = [];
      const end = await inner.changes.subscribe((notice) => heard.push(notice));
      const store = await open({
        store: {
          ...inner,
          changes: {
            ...inner.changes,
            publish: (notice) => {
              published.push(notice);
            },
          },
        },
      });
      const beside = await open({ store: await driver('beside') });
      await (await beside.session('s')).append(message('not for this prefix'));
      const session = await store.session('s');
      const { revision } = await session.append(message('q'));
      await store.deleteSession('s');
      await until('a notice', () => heard.length > 0);
      assert.deepEqual(
        heard.map((notice) => {
          const { from, ...change } = JSON.parse(notice);
          return change;
        }),
        [{ session: 's', revision }],
      );
      assert.deepEqual(
        published.map((notice) => JSON.parse(notice).deleted),
        [true],
      );
      end();
      await Promise.all([store.close(), beside.close()]);
      await gone();
    });

    test('r47 a lost listening connection is replaced, and missed changes are read', async () => {
      const [one, two] = [await open({ store: await driver('lost') }), await open({ store: await driver('lost') })];
      const [other, session] = [await one.session('s'), await two.session('s')];
      await subscribed(session, other, 'x');
      for (const text of ['while nobody listened', 'and again']) {
        const heard = hears(session, (await allTexts(session)).length + 1);
        assert.ok((await raw.client('KILL', 'TYPE', 'pubsub')) >= 1);
        await other.append(message(text));
        assert.equal((await heard).at(-1), text);
      }
      // Then it hears again, not only reads again.
      await subscribed(session, other, 'y');
      await Promise.all([one.close(), two.close()]);
      await gone();
    });

    test('r47 the connection opens with the first listener, and closing the store ends it', async () => {
      const store = await open({ store: await driver('closed') });
      const session = await store.session('s');
      await session.append(message('q'));
      assert.equal(await listeners(), 0);
      session.subscribe(() => {});
      session.subscribe(() => {});
      await until('a listener', async () => (await listeners()) > 0);
      assert.equal(await listeners(), 1);
      await store.close();
      await gone();
    });

    test('a client without permission for the channel can write', async () => {
      await raw.call('ACL', 'SETUSER', 'quiet', 'on', 'nopass', '~*', '+@all', 'resetchannels');
      const made =
        client === 'ioredis'
          ? new Redis(server.place, { username: 'quiet', password: 'any' })
          : createClient({ socket: { path: server.place }, username: 'quiet', password: 'any' });
      if (client === 'redis') await made.connect();
      const warnings = [];
      const store = await open({
        store: redis(made),
        onWarning: ({ code, message }) => warnings.push(`${code}: ${message}`),
      });
      const session = await store.session('s');
      await session.append(message('q'));
      assert.deepEqual(await allTexts(session), ['q']);
      session.subscribe(() => {});
      await until('a warning', () => warnings.length > 0);
      assert.match(warnings[0], /^callback_failed: the redis store does not hear of changes/);
      await store.deleteSession('s');
      await store.close();
      made[client === 'ioredis' ? 'disconnect' : 'destroy']();
    });
  });
}

describe('a change feed of an application', () => {
  const withFeed = (changes) => ({ ...sqlite(new DatabaseSync(':memory:')), changes });

  test('a value of a wrong type is rejected', async () => {
    const throwing = {
      get subscribe() {
        throw new Error('no');
      },
    };
    for (const changes of [7, 'x', {}, { subscribe: 1 }, { subscribe() {}, publish: 1 }, throwing]) {
      await assert.rejects(open({ store: withFeed(changes) }), (error) => error.code === 'config_invalid');
    }
  });

  test('a failing feed is a warning, never a trap', async () => {
    for (const subscribe of [
      () => {
        throw new Error('no way');
      },
      () => Promise.reject(new Error('no way')),
      () => 7,
      async () => undefined,
    ]) {
      const warnings = [];
      const store = await open({
        store: withFeed({
          subscribe,
          publish() {
            throw new Error('no');
          },
        }),
        onWarning: (warning) => warnings.push(warning.code),
      });
      const session = await store.session('s');
      session.subscribe(() => {});
      await session.append(message('a'));
      await setImmediate();
      assert.deepEqual(warnings, ['callback_failed']);
      await store.close();
    }
  });

  test('an unreadable notice makes all sessions read again', async () => {
    const database = new DatabaseSync(':memory:');
    let give;
    const feed = {
      subscribe(listener) {
        give = listener;
        return () => {
          give = null;
        };
      },
    };
    const store = await open({ store: { ...sqlite(database), changes: feed } });
    const session = await store.session('s');
    const other = await open({ store: sqlite(database) });
    const opened = await other.session('s');
    let count = 0;
    for (const notice of [
      null,
      undefined,
      7,
      '',
      '{',
      '[]',
      '"x"',
      '{"session":7}',
      'x'.repeat(10_000),
      '{"from":1}',
      Symbol('x'),
      { session: 's' },
    ]) {
      count += 1;
      const heard = hears(session, count);
      await opened.append(message(String(count)));
      give(notice);
      assert.equal((await heard).length, count);
    }
    await store.close();
    assert.equal(give, null);
    await other.close();
  });
});
