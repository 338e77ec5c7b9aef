// R67 in a browser: two builds work on one IndexedDB database. The later build has added fields, an added variant and
// removed fields (tests/evolution/builds.mjs).

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { laterDist } from '../evolution/builds.mjs';
import { openWorld } from './page.mjs';

let world;
before(async () => {
  world = await openWorld({ laterDist });
});
after(() => world?.close());

const NOW = '/';
const LATER = '/later.html';

/** Opens a page of one of the builds with the session `s` of the database `name`. */
async function tab(context, path, name) {
  const page = await world.page(context, path);
  await page.evaluate(async (name) => {
    globalThis.client = await rethread.open({ name });
    globalThis.session = await client.session('s');
    globalThis.texts = async () => {
      await session.refresh();
      return (await session.messages({ limit: 100 })).items.flatMap(({ parts }) =>
        parts.flatMap(({ type, text }) => (type === 'text' ? [text] : [])),
      );
    };
    globalThis.appendTurn = (text, options) =>
      session.append(
        {
          messages: [
            { role: 'user', content: text },
            { role: 'assistant', content: 'ok' },
          ],
        },
        'openai-chat',
        options,
      );
    /** The bytes of all values of a table, as Latin-1. */
    globalThis.stored = async (table) => {
      const request = indexedDB.open(name);
      const database = await new Promise((resolve, reject) =>
        Object.assign(request, { onsuccess: () => resolve(request.result), onerror: () => reject(request.error) }),
      );
      const values = database.transaction(table).objectStore(table).getAll();
      await new Promise((resolve, reject) => Object.assign(values, { onsuccess: resolve, onerror: reject }));
      database.close();
      const arrays = values.result.flatMap((value) =>
        value instanceof Uint8Array ? [value] : Object.values(value).filter((member) => member instanceof Uint8Array),
      );
      return arrays.map((bytes) => new TextDecoder('latin1').decode(bytes)).join('\n');
    };
  }, name);
  return page;
}

async function bothTabs(name) {
  const context = await world.context();
  return { context, now: await tab(context, NOW, name), later: await tab(context, LATER, name) };
}

const tables = ['heads', 'log', 'tool_invocations', 'runs'];
const allStored = (page) => page.evaluate(async (names) => Promise.all(names.map((name) => stored(name))), tables);

describe('r67 two builds in one browser', () => {
  test('r67 in IndexedDB each build reads the records of the other one and loses nothing when it writes', async () => {
    const { now, later } = await bothTabs('beside');
    await now.evaluate(async () => {
      await session.update({ title: 'Title' });
      await appendTurn('a');
    });
    // The later build has no titles any more.
    assert.deepEqual(await later.evaluate(async () => ({ texts: await texts(), title: session.title })), {
      texts: ['a', 'ok'],
      title: null,
    });
    await later.evaluate(async () => {
      await appendTurn('b');
      const call = { id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } };
      await session.append(
        {
          messages: [
            { role: 'user', content: 'call' },
            { role: 'assistant', content: null, tool_calls: [call] },
          ],
        },
        'openai-chat',
      );
    });
    const [heads, log, invocations] = await allStored(later);
    assert.ok(
      heads.includes('bright') && log.includes('calm') && invocations.includes('calm'),
      'the later build stores its new fields',
    );

    const read = await now.evaluate(async () => ({
      texts: await texts(),
      title: session.title,
      status: await client.status(),
    }));
    assert.deepEqual(
      [read.texts, read.title, read.status.state, read.status.findings],
      [['a', 'ok', 'b', 'ok', 'call'], 'Title', 'ready', []],
    );
    await now.evaluate(async () => {
      await session.answer('c', { type: 'tool_result', content: 'done' });
      await appendTurn('d');
    });
    const [headsAfter, , invocationsAfter] = await allStored(now);
    assert.ok(headsAfter.includes('bright'), 'the head keeps the new field');
    assert.ok(headsAfter.includes('Title'), 'the head keeps the title, which the later build wrote without knowing it');
    assert.ok(invocationsAfter.includes('calm'), 'the audit row keeps the new field');

    const after = await later.evaluate(async () => {
      const seen = await texts();
      const { items } = await session.invocations({ payload: true });
      return {
        texts: seen,
        calls: items.map(({ status, result }) => [status, result.content]),
        state: (await client.status()).state,
      };
    });
    assert.deepEqual(after, {
      texts: ['a', 'ok', 'b', 'ok', 'call', 'd', 'ok'],
      calls: [['ok', 'done']],
      state: 'ready',
    });
    assert.deepEqual([now.complaints, later.complaints], [[], []]);
  });

  test('r67 in IndexedDB an unknown variant makes the session read-only, and nothing is written', async () => {
    const { now, later } = await bothTabs('variant');
    await now.evaluate(() => appendTurn('a'));
    await later.evaluate(() => appendTurn('b', { source: { type: 'plugin' } }));
    const before = await allStored(later);
    const seen = await now.evaluate(async () => ({
      texts: await texts(),
      state: (await client.status()).state,
      append: (await caught(() => appendTurn('c'))).code,
      update: (await caught(() => session.update({ title: 'T' }))).code,
    }));
    assert.deepEqual(seen, {
      texts: ['a', 'ok'],
      state: 'read_only',
      append: 'unsupported_version',
      update: 'unsupported_version',
    });
    assert.deepEqual(await allStored(now), before);
    assert.deepEqual(await later.evaluate(() => texts()), ['a', 'ok', 'b', 'ok']);
  });

  for (const [writer, reader] of [
    [NOW, LATER],
    [LATER, NOW],
  ]) {
    const promise =
      writer === NOW
        ? 'the current build left unfinished is resumed by the later one'
        : 'the later build left unfinished is rejected by the current one, and is kept';
    test(`r67 in IndexedDB a run that ${promise}`, async () => {
      const name = `run${writer === NOW ? '-now' : '-later'}`;
      const lane = world.lane(name);
      const request = { provider: { dialect: 'openai-chat', url: lane.chat, params: { model: 'm' }, stream: true } };
      const context = await world.context();
      const first = await tab(context, writer, name);
      const id = await first.evaluate(async (request) => {
        const parameters = { type: 'object', properties: { city: { type: 'string' } } };
        const started = Promise.withResolvers();
        const execute = () => {
          started.resolve();
          return new Promise(() => {});
        };
        const run = await session.run({
          input: 'Weather in Oslo?',
          ...request,
          tools: { get_weather: { parameters, execute }, get_time: { parameters, execute } },
        });
        drive(run);
        await started.promise;
        return run.id;
      }, request);
      await first.close();

      const second = await tab(context, reader, name);
      const resume = (page) =>
        page.evaluate(
          async ([id, request]) => {
            const list = async () => (await session.pendingRuns()).map(({ id, state }) => `${id} ${state}`);
            let listed = await list();
            // The platform may still hold the lock of the page before.
            while (listed.includes(`${id} live`)) {
              await new Promise((resolve) => setTimeout(resolve, 20));
              listed = await list();
            }
            const parameters = { type: 'object', properties: { city: { type: 'string' } } };
            const tool = { parameters, execute: () => 'mild', onInterrupted: 'rerun' };
            const outcome = await caught(async () => {
              const { status, error } = await drive(
                await session.resume(id, { ...request, tools: { get_weather: tool, get_time: tool } }),
              ).result;
              return error ? `${status}: ${error.message}` : status;
            });
            return {
              listed,
              code: outcome.code,
              value: outcome.value,
              findings: (await client.status()).findings.length,
            };
          },
          [id, request],
        );
      const finished = { listed: [`${id} interrupted`], code: null, value: 'finished', findings: 0 };
      const outcome = await resume(second);
      if (writer === NOW) {
        assert.deepEqual(outcome, finished);
        return;
      }
      // What it cannot read it reports instead of listing it.
      assert.deepEqual(outcome, { listed: [], code: 'unsupported_version', value: undefined, findings: 1 });
      await second.close();
      assert.deepEqual(await resume(await tab(context, writer, name)), finished);
    });
  }
});
