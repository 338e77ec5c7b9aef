// r53: `chatHandler` of `rethread/ai-sdk` in two processes over one SQLite file, with `ai` 6 and 7; in long runs also over
// one server of PostgreSQL and of Redis.

import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { open } from 'rethread';
import { toUIMessages } from 'rethread/ai-sdk';
import { shown, until } from '../judges/ai-sdk-chat.mjs';
import { VERSIONS } from '../judges/ai-sdk-models.mjs';
import { pageOf } from '../judges/ai-sdk-page.mjs';
import { endsWithThisProcess } from './child-processes.mjs';
import { openDriver } from './drivers.mjs';
import { startPostgres } from './postgres-server.mjs';
import { startRedis } from './redis-server.mjs';

const PROGRAM = fileURLToPath(new URL('ai-sdk-served-program.mjs', import.meta.url));
/** Long enough for a holder on a busy machine to be alive. */
const LEASE_MS = 4000;
const folder = mkdtempSync(path.join(tmpdir(), 'rethread-ai-sdk-'));
const children = [];
after(() => {
  for (const child of children) child.kill('SIGKILL');
  rmSync(folder, { recursive: true, force: true });
});

const sqliteFile = (name) => () => ({ place: path.join(folder, name), stop: () => {} });
/** A server whose place is a text. */
const started = (start) => async () => {
  const { place, stop } = await start();
  return { place: typeof place === 'string' ? place : JSON.stringify(place), stop };
};
/** The name of a driver, what starts its database, and the version of `ai`. */
const STORES = [
  ['node:sqlite', sqliteFile('6.sqlite'), VERSIONS[0]],
  ['node:sqlite', sqliteFile('7.sqlite'), VERSIONS[1]],
];
if (process.env.RETHREAD_LONG)
  STORES.push(['pg Pool', started(startPostgres), VERSIONS[1]], ['redis', started(startRedis), VERSIONS[1]]);

/** A process that serves the chats of a database. `said`: what it has sent. */
async function serverOf(database, version) {
  const child = endsWithThisProcess(fork(PROGRAM, [...database, String(version), String(LEASE_MS)]));
  children.push(child);
  const messages = [];
  child.on('message', (message) => messages.push(message));
  const ended = once(child, 'exit').then(([code]) => assert.fail(`the server ended with ${code}`));
  await Promise.race([once(child, 'message'), ended]);
  ended.catch(() => {});
  const [{ origin }] = messages;
  return {
    origin,
    said: messages,
    open: (place) => child.send({ open: place }),
    kill: () => child.kill('SIGKILL'),
    stop: (id) => fetch(`${origin}/api/chat/${id}/stop`, { method: 'POST' }),
    stream: (id) => fetch(`${origin}/api/chat/${id}/stream`),
    hasSaid: (key, value) => messages.some((message) => message[key] === value),
  };
}

/** Processes over one database, and pages that each of them serves. */
async function worldOf(name, start, [version, ai]) {
  const { place, stop } = await start();
  const servers = await Promise.all([1, 2, 3].map(() => serverOf([name, place], version)));
  const { driver, end } = await openDriver(name, place);
  const store = await open({ store: driver });
  const pageAt = (server, id, messages = []) =>
    pageOf(ai, { id, messages, transport: new ai.DefaultChatTransport({ api: `${server.origin}/api/chat` }) });
  const load = async (server, id) => pageAt(server, id, await (await fetch(`${server.origin}/messages/${id}`)).json());
  const items = async (id) => {
    const session = await store.session(id);
    await session.refresh();
    // Another opening keeps the branch that it shows.
    const branch = (await session.branches()).at(-1).branch;
    return (await session.messages({ limit: 1000, branch })).items;
  };
  /** The mark of the newest answer. */
  const markOf = async (id) => {
    const session = await store.session(id);
    await session.refresh();
    return session.state.get('rethread/ai-sdk:holder');
  };
  const branches = async (id) => (await store.session(id)).branches();
  const stored = async (id) => shown(toUIMessages(await items(id)));
  const close = async () => {
    for (const { kill } of servers) kill();
    store.close();
    await end();
    await stop();
  };
  return { servers, pageAt, load, items, markOf, branches, stored, close };
}

/** A page asks, and is shown this. */
async function asked(page, text, last) {
  const done = page.sendMessage({ text });
  await until(() => shown(page.messages).at(-1) === last);
  return done;
}
const statuses = async (items) => (await items).map(({ status }) => status);
const ids = ({ messages }) => messages.map(({ id }) => id);

function testServed([name, start, version]) {
  const [number] = version;
  describe(`${name}, ai ${number}`, { timeout: 60_000, concurrency: true }, () => {
    let world;
    before(async () => {
      world = await worldOf(name, start, version);
    });
    after(() => world?.close());

    test(`r53 a reconnect in another process finds the answer under way, and doubles nothing, with ai ${number}`, async () => {
      const { servers, pageAt, load, stored, branches } = world;
      const [a, b] = servers;
      const page = pageAt(a, 'f');
      const done = page.sendMessage({ text: 'tool' });
      await until(() => a.hasSaid('ran', 'f-c1'));
      const other = await load(b, 'f');
      assert.deepEqual(shown(other.messages), ['user: tool', 'assistant: f-c1 input-available']);
      const resumed = other.resumeStream();
      await until(() => other.status === 'streaming');
      a.open('f tool');
      await until(() => shown(other.messages)[1] === 'assistant: f-c1 output-available: Hel');
      const third = await load(b, 'f');
      const again = third.resumeStream();
      await until(() => third.status === 'streaming');
      a.open('f text');
      await Promise.all([done, resumed, again]);
      const told = ['user: tool', 'assistant: f-c1 output-available: Hello'];
      for (const one of [page, other, third, await load(b, 'f')]) {
        assert.deepEqual([shown(one.messages), one.status, one.error], [told, 'ready', undefined]);
        assert.deepEqual(ids(one), ids(page));
      }
      assert.deepEqual(await stored('f'), told);
      assert.equal((await branches('f')).length, 1);
      assert.deepEqual(await Promise.all([a, b].map(async ({ stream }) => (await stream('f')).status)), [204, 204]);
      assert.ok(
        !b.said.some(({ chat, ran }) => chat === 'f' || ran === 'f-c1'),
        'the other process asks and runs nothing',
      );
    });

    test(`r53 a stop, and a question, that reach another process end the answer, with ai ${number}`, async () => {
      const { servers, pageAt, load, items, stored, branches } = world;
      const [a, b] = servers;
      const page = pageAt(a, 's');
      const done = asked(page, 'hang', 'assistant: Hel');
      await until(() => shown(page.messages).at(-1) === 'assistant: Hel');
      const other = await load(b, 's');
      const resumed = other.resumeStream();
      await until(() => other.status === 'streaming');
      assert.equal((await b.stop('s')).status, 204);
      await Promise.all([done, resumed]);
      assert.ok(a.hasSaid('aborted', 's'));
      const told = ['user: hang', 'assistant: Hel'];
      assert.deepEqual([shown(page.messages), shown(other.messages), await stored('s')], [told, told, told]);
      assert.deepEqual(
        [page.status, other.status, await statuses(items('s'))],
        ['ready', 'ready', ['complete', 'stopped']],
      );

      const next = asked(page, 'hang', 'assistant: Hel');
      await until(() => a.said.filter(({ chat }) => chat === 's').length === 2);
      // What came is stored within a second.
      await until(async () => (await load(b, 's')).messages.length === 4);
      const late = await load(b, 's');
      await late.sendMessage({ text: 'else' });
      await next;
      assert.deepEqual(shown(late.messages), [...told, ...told, 'user: else', `assistant: else ${number}.1`]);
      assert.deepEqual(await stored('s'), shown(late.messages));
      assert.deepEqual(await statuses(items('s')), [
        'complete',
        'stopped',
        'complete',
        'stopped',
        'complete',
        'complete',
      ]);
      assert.equal((await branches('s')).length, 1);
    });

    test(`r53 a page that follows an answer whose process is killed keeps what came, and another process goes on, with ai ${number}`, async () => {
      const { servers, pageAt, load, stored } = world;
      const [, b, a] = servers;
      const page = pageAt(a, 'k');
      page.sendMessage({ text: 'pay' }).catch(() => {});
      await until(() => a.hasSaid('ran', 'k-p1'));
      const other = await load(b, 'k');
      const resumed = other.resumeStream();
      await until(() => other.status === 'streaming');
      a.kill();
      await resumed;
      const kept = ['user: pay', 'assistant: k-p1 input-available'];
      assert.deepEqual([shown(other.messages), other.status, other.error], [kept, 'ready', undefined]);
      assert.equal((await b.stream('k')).status, 204);
      const next = await load(b, 'k');
      await next.sendMessage();
      const { prompt } = b.said.findLast(({ chat }) => chat === 'k');
      assert.match(prompt.at(-1), /^tool: k-p1 = .*may or may not have run/);
      const told = ['user: pay', `assistant: k-p1 output-error: pay ${number}.1`];
      assert.deepEqual([shown(next.messages), await stored('k')], [told, told]);
      assert.ok(!b.hasSaid('ran', 'k-p1'));
    });

    test(`r53 another answer that one process has made is shown by the other one, which goes on with it, with ai ${number}`, async () => {
      const { servers, pageAt, load, stored } = world;
      const [a, b] = servers;
      const page = pageAt(a, 'b');
      await page.sendMessage({ text: 'one' });
      assert.deepEqual(shown((await load(b, 'b')).messages), ['user: one', `assistant: one ${number}.1`]);
      await page.regenerate();
      const next = await load(b, 'b');
      assert.deepEqual(shown(next.messages), ['user: one', `assistant: one ${number}.2`]);
      await next.sendMessage({ text: 'two' });
      const told = ['user: one', `assistant: one ${number}.2`, 'user: two', `assistant: two ${number}.1`];
      assert.deepEqual([shown(next.messages), await stored('b')], [told, told]);
      assert.deepEqual(shown((await load(a, 'b')).messages), told);
    });

    test(`r53 an answer that says nothing for longer than its mark counts is under way all the same, with ai ${number}`, async () => {
      const { servers, pageAt, markOf } = world;
      const [a, b] = servers;
      const page = pageAt(a, 'w');
      const done = asked(page, 'hang', 'assistant: Hel');
      await until(async () => (await markOf('w'))?.until);
      const { until: first } = await markOf('w');
      await until(() => Date.now() > first);
      const { status, body } = await b.stream('w');
      await body?.cancel();
      assert.equal(status, 200);
      await b.stop('w');
      await done;
      assert.equal(page.status, 'ready');
    });

    test(`r53 of two questions at once in two processes one answer stays, with ai ${number}`, async () => {
      const { servers, pageAt, items, markOf } = world;
      const asked = servers.slice(0, 2).map((server) => ({ server, page: pageAt(server, 't') }));
      const sent = asked.map(({ page }) => page.sendMessage({ text: 'hang' }));
      const is = (wanted) => asked.filter(({ page }) => page.status === wanted);
      await until(() => is('streaming').length === 1 && is('ready').length === 1);
      const [[winner], [loser]] = [is('streaming'), is('ready')];
      await until(() => shown(winner.page.messages).at(-1) === 'assistant: Hel');
      // It goes on when each process has looked: its mark is renewed a second later.
      const first = await markOf('t');
      await until(async () => (await markOf('t')).until > first.until);
      assert.equal((await markOf('t')).holder, first.holder);
      assert.deepEqual([winner.page.status, winner.server.hasSaid('aborted', 't')], ['streaming', false]);
      // One that was stopped before its model was asked has nothing to abort.
      assert.ok(loser.server.hasSaid('aborted', 't') || !loser.server.hasSaid('chat', 't'));

      assert.equal((await loser.server.stop('t')).status, 204);
      await Promise.all(sent);
      assert.ok(winner.server.hasSaid('aborted', 't'));
      const ofRole = async (wanted) => (await items('t')).filter(({ role }) => role === wanted);
      const texts = (messages) => messages.flatMap(({ parts }) => parts.flatMap(({ text }) => text ?? []));
      assert.deepEqual(texts(await ofRole('user')), ['hang', 'hang']);
      const answers = await ofRole('assistant');
      assert.ok(texts(answers).length >= 1 && answers.every(({ status }) => status === 'stopped'), 'both are stopped');
      const streams = await Promise.all(asked.map(({ server }) => server.stream('t')));
      assert.deepEqual(
        streams.map(({ status }) => status),
        [204, 204],
      );
    });
  });
}

// They wait most of the time.
describe('chats in several processes', { concurrency: 2 }, () => STORES.forEach(testServed));
