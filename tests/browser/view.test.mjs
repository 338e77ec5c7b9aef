// r56: what a page paints.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openWorld } from './page.mjs';

let world;
before(async () => {
  world = await openWorld();
});
after(() => world?.close());

async function opened(name, context, extra) {
  const page = await world.page(context);
  await page.evaluate(
    async ([name, extra]) => {
      globalThis.client = await rethread.open({ name });
      globalThis.session = await client.session('s', extra);
      globalThis.until = async (test) => {
        for (const end = Date.now() + 60_000; Date.now() < end; ) {
          if (await test()) return true;
          await new Promise((resolve) => setTimeout(resolve, 5));
        }
        return false;
      };
      globalThis.textOf = ({ parts }) =>
        parts
          .filter(({ type }) => type === 'text')
          .map(({ text }) => text)
          .join('');
      globalThis.user = (content) => ({ messages: [{ role: 'user', content }] });
    },
    [name, extra ?? {}],
  );
  return page;
}

test('r56 the snapshot is one object between changes, and so is every unchanged message', async () => {
  const page = await opened('identity');
  const facts = await page.evaluate(async () => {
    // As React's useSyncExternalStore calls them.
    const { getSnapshot, subscribe } = session.view();
    let calls = 0;
    const end = subscribe(() => {
      calls += 1;
    });
    const empty = getSnapshot();
    const same = empty === getSnapshot();
    await session.append(user('one'), 'openai-chat');
    const one = getSnapshot();
    const stable = one === getSnapshot() && one !== empty;
    await session.append(user('two'), 'openai-chat');
    const two = getSnapshot();
    const called = calls;
    end();
    await session.append(user('three'), 'openai-chat');
    return {
      empty,
      same,
      stable,
      called,
      afterEnd: calls,
      kept: two.messages[0] === one.messages[0],
      list: two.messages !== one.messages,
      oldOne: one.messages.length,
      two: two.messages.map(textOf),
      saved: two.messages.map(({ saved }) => saved),
      one: session.view() === session.view(),
      revision: two.revision,
      again: (await client.session('s')).view().getSnapshot().messages.length,
    };
  });
  assert.deepEqual(facts.empty, {
    loading: false,
    revision: 0,
    branch: 'main',
    hasOlder: false,
    messages: [],
    queued: [],
    run: null,
  });
  assert.deepEqual([facts.same, facts.stable, facts.kept, facts.list, facts.one], [true, true, true, true, true]);
  assert.ok(facts.called >= 2);
  assert.equal(facts.afterEnd, facts.called, 'ended means ended');
  assert.equal(facts.oldOne, 1, 'an old snapshot stays as it was');
  assert.deepEqual(facts.two, ['one', 'two']);
  assert.deepEqual(facts.saved, [true, true]);
  assert.equal(facts.revision, 2);
  assert.equal(facts.again, 3);
  assert.deepEqual(page.complaints, []);
});

test('r56 changes of another tab arrive without a refresh; unchanged messages keep their identity', async () => {
  const context = await world.context();
  const [one, two] = [await opened('tabs', context), await opened('tabs', context)];
  await one.evaluate(() => session.append(user('first'), 'openai-chat'));
  await two.evaluate(async () => {
    const view = session.view();
    await until(() => view.getSnapshot().messages.length === 1);
    globalThis.kept = view.getSnapshot().messages[0];
    globalThis.changes = 0;
    view.subscribe(() => {
      changes += 1;
    });
  });
  await one.evaluate(() => session.append(user('second'), 'openai-chat'));
  const facts = await two.evaluate(async () => {
    const { getSnapshot } = session.view();
    await until(() => getSnapshot().messages.length === 2 && changes > 0);
    return { texts: getSnapshot().messages.map(textOf), same: getSnapshot().messages[0] === kept, changes };
  });
  assert.deepEqual(facts.texts, ['first', 'second']);
  assert.equal(facts.same, true);
  assert.ok(facts.changes > 0);
});

for (const dialect of ['openai-chat', 'anthropic']) {
  test(`r56 the streaming answer grows, its calls are joined, and messages of history keep their identity, over ${dialect}`, async () => {
    const page = await opened(`growing-${dialect}`);
    const lane = world.lane(`growing-${dialect}`);
    await lane.script([
      { text: 'Looking.', calls: [{ name: 'get_weather', arguments: { city: 'Oslo' } }] },
      { text: 'one two three four five six', gate: 'half', atPiece: 3 },
    ]);
    await page.evaluate(
      async ([dialect, url]) => {
        await session.append(
          {
            messages: [
              { role: 'user', content: 'old' },
              { role: 'assistant', content: 'older answer' },
            ],
          },
          'openai-chat',
        );
        const { getSnapshot, subscribe } = session.view();
        globalThis.before = getSnapshot();
        globalThis.seen = [];
        globalThis.identities = new Set();
        subscribe(() => {
          const { messages, run } = getSnapshot();
          identities.add(messages[0]);
          seen.push({
            status: run?.status ?? null,
            length: messages.length,
            last: textOf(messages.at(-1)),
            saved: messages.at(-1).saved,
            tools: messages
              .flatMap(({ parts }) => parts)
              .filter(({ type }) => type === 'tool')
              .map(({ call }) => call.status),
          });
        });
        const city = { type: 'object', properties: { city: { type: 'string' } } };
        globalThis.driven = drive(
          await session.run({
            input: 'Go',
            provider: { dialect, url, params: { model: 'm' }, stream: true },
            tools: {
              get_weather: {
                parameters: city,
                execute: async () => {
                  await new Promise((resolve) => setTimeout(resolve, 30));
                  return 'mild';
                },
              },
            },
          }),
        );
      },
      [dialect, dialect === 'anthropic' ? lane.messages : lane.chat],
    );
    const half = await page.evaluate(async () => {
      const { getSnapshot } = session.view();
      await until(() => textOf(getSnapshot().messages.at(-1)).startsWith('one two'));
      const { messages, run } = getSnapshot();
      const answer = messages.at(-1);
      const tool = messages.flatMap(({ parts }) => parts).find(({ type }) => type === 'tool');
      return {
        run: { status: run.status, id: typeof run.id },
        text: textOf(answer),
        saved: messages.map(({ saved }) => saved),
        tool: { status: tool.call.status, result: tool.call.result, name: tool.call.name },
      };
    });
    assert.deepEqual(half.run, { status: 'running', id: 'string' });
    assert.match(half.text, /^one two/);
    assert.deepEqual(half.saved, [true, true, false, false, false]);
    assert.deepEqual(half.tool, { status: 'ok', result: { content: 'mild', isError: false }, name: 'get_weather' });
    await lane.openGate('half');
    const end = await page.evaluate(async () => {
      const { status } = await driven.result;
      const { messages, run } = session.view().getSnapshot();
      return {
        status,
        run,
        saved: messages.map(({ saved }) => saved),
        last: textOf(messages.at(-1)),
        same: messages[0] === before.messages[0] && messages[1] === before.messages[1],
        identities: identities.size,
        seen,
      };
    });
    assert.equal(end.status, 'finished');
    assert.equal(end.run, null);
    assert.deepEqual(end.saved, [true, true, true, true, true]);
    assert.equal(end.last, 'one two three four five six');
    assert.deepEqual([end.same, end.identities], [true, 1], 'what was there is not painted again');
    const lengths = end.seen.filter(({ last }) => last.startsWith('one')).map(({ last }) => last.length);
    assert.ok(lengths.length >= 3, 'it grows');
    assert.deepEqual(
      lengths,
      lengths.slice().sort((a, b) => a - b),
      'and never shrinks',
    );
    assert.ok(
      end.seen.some(({ tools }) => tools[0] === 'pending'),
      'a call shows before its result',
    );
    assert.deepEqual(page.complaints, []);
  });
}

test('r56 a failed turn is shown as failed, with its question', async () => {
  const page = await opened('failed');
  const lane = world.lane('view-failed');
  await lane.script([{ status: 400, message: 'no' }]);
  const facts = await page.evaluate(async (url) => {
    const { getSnapshot } = session.view();
    const run = await session.run({ input: 'Go', provider: { dialect: 'openai-chat', url, params: { model: 'm' } } });
    await drive(run).result;
    return { messages: getSnapshot().messages.map(textOf), run: getSnapshot().run, id: run.id };
  }, lane.chat);
  assert.deepEqual(facts.messages, ['Go']);
  assert.equal(facts.run.id, facts.id);
  assert.equal(facts.run.status, 'failed');
});

test('r56 a wait for a retry states its end', async () => {
  const page = await opened('retry');
  const lane = world.lane('view-retry');
  await lane.script([{ status: 429, headers: { 'retry-after': '20' } }]);
  const facts = await page.evaluate(async (url) => {
    const { getSnapshot } = session.view();
    const run = await session.run({ input: 'Go', provider: { dialect: 'openai-chat', url, params: { model: 'm' } } });
    const driven = drive(run);
    await until(() => getSnapshot().run?.retryAt);
    const wait = getSnapshot().run.retryAt - Date.now();
    await run.cancel();
    return { wait, status: (await driven.result).status, run: getSnapshot().run.status };
  }, lane.chat);
  assert.ok(facts.wait > 15_000 && facts.wait <= 20_000, String(facts.wait));
  assert.equal(facts.status, 'cancelled');
  assert.equal(facts.run, 'cancelled');
});

test('r56 older() pages back through 260 messages, and messages() by cursor', async () => {
  const context = await world.context();
  const writer = await opened('long', context);
  await writer.evaluate(() =>
    session.append(
      { messages: Array.from({ length: 260 }, (_, n) => ({ role: n % 2 ? 'assistant' : 'user', content: `m${n}` })) },
      'openai-chat',
    ),
  );
  await writer.close();
  const page = await opened('long', context);
  const facts = await page.evaluate(async () => {
    const { getSnapshot, older, subscribe } = session.view();
    let calls = 0;
    subscribe(() => {
      calls += 1;
    });
    const look = () => ({
      length: getSnapshot().messages.length,
      first: textOf(getSnapshot().messages[0]),
      hasOlder: getSnapshot().hasOlder,
    });
    const shown = [look()];
    const newest = getSnapshot().messages.at(-1);
    const asked = [];
    for (let n = 0; n < 3; n += 1) {
      asked.push(await older());
      shown.push(look());
    }
    const pages = [];
    let cursor;
    do {
      const next = await session.messages({ limit: 70, ...(cursor ? { cursor } : {}) });
      pages.push(next.items.map(({ parts }) => parts[0].text));
      cursor = next.cursor;
    } while (cursor);
    return { shown, asked, calls, same: getSnapshot().messages.at(-1) === newest, pages };
  });
  assert.deepEqual(facts.asked, [true, true, false]);
  assert.deepEqual(facts.shown, [
    { length: 100, first: 'm160', hasOlder: true },
    { length: 200, first: 'm60', hasOlder: true },
    { length: 260, first: 'm0', hasOlder: false },
    { length: 260, first: 'm0', hasOlder: false },
  ]);
  assert.equal(facts.same, true);
  assert.ok(facts.calls >= 2);
  assert.deepEqual(
    facts.pages.map((page) => page.length),
    [70, 70, 70, 50],
  );
  assert.deepEqual(
    facts.pages.reverse().flat(),
    Array.from({ length: 260 }, (_, n) => `m${n}`),
  );
});

test('r35 title, channel, metadata and the state bag survive a reload', async () => {
  const context = await world.context();
  const first = await opened('kept', context, { title: 'First', channel: 'chat', metadata: { tags: ['a'] } });
  const before = await first.evaluate(async () => {
    session.state.set('cursor', { at: 7, deep: [null, 'é'] });
    session.state.set('gone', 1);
    await session.append(user('hello'), 'openai-chat');
    session.state.set('gone', null);
    session.state.set('later', 'saved');
    await session.save();
    await session.update({ title: 'Second', metadata: { tags: ['b'] } });
    return session.revision;
  });
  await first.close();
  const second = await opened('kept', context);
  const facts = await second.evaluate(async () => {
    const listed = (await client.sessions()).items;
    const out = {
      title: session.title,
      revision: session.revision,
      keys: session.state.keys(),
      cursor: session.state.get('cursor'),
      gone: session.state.get('gone'),
      none: session.state.get('none') === undefined,
      listed,
    };
    await session.update({ title: null, channel: null, metadata: null });
    out.cleared = (await client.sessions()).items[0];
    return out;
  });
  assert.equal(facts.title, 'Second');
  assert.equal(facts.revision, before);
  assert.deepEqual(facts.keys, ['cursor', 'gone', 'later']);
  assert.deepEqual(facts.cursor, { at: 7, deep: [null, 'é'] });
  assert.equal(facts.gone, null);
  assert.equal(facts.none, true);
  const [{ createdAt, updatedAt, ...summary }] = facts.listed;
  assert.deepEqual(summary, {
    id: 's',
    channel: 'chat',
    title: 'Second',
    revision: before,
    messageCount: 1,
    preview: { role: 'user', text: 'hello' },
    unread: 0,
    pendingRuns: 0,
    pendingApprovals: 0,
    archived: false,
    metadata: { tags: ['b'] },
  });
  assert.ok(createdAt > 1.7e12 && updatedAt >= createdAt);
  assert.deepEqual([facts.cleared.title, facts.cleared.channel, facts.cleared.metadata], [null, null, null]);
});

test('r39 sessions() by page and by channel; status() and persist()', async () => {
  const page = await opened('many');
  const facts = await page.evaluate(async () => {
    for (let n = 0; n < 25; n += 1) {
      const one = await client.session(`s${String(n).padStart(2, '0')}`, n % 5 ? {} : { channel: 'five' });
      await one.append(user(`m${n}`), 'openai-chat');
    }
    const pages = [];
    let cursor;
    do {
      const next = await client.sessions({ limit: 10, ...(cursor ? { cursor } : {}) });
      pages.push(next.items.map(({ id, updatedAt }) => ({ id, updatedAt })));
      cursor = next.cursor;
    } while (cursor);
    const five = [];
    do {
      const next = await client.sessions({ channel: 'five', limit: 2, ...(cursor ? { cursor } : {}) });
      five.push(...next.items.map(({ id }) => id));
      cursor = next.cursor;
    } while (cursor);
    return { pages, five, status: await client.status(), persist: await client.persist() };
  });
  assert.deepEqual(
    facts.pages.map((page) => page.length),
    [10, 10, 5],
  );
  const all = facts.pages.flat();
  assert.deepEqual(
    all.map(({ id }) => id).sort(),
    Array.from({ length: 25 }, (_, n) => `s${String(n).padStart(2, '0')}`),
  );
  const recent = all.toSorted((a, b) => b.updatedAt - a.updatedAt || (a.id < b.id ? -1 : 1));
  assert.deepEqual(all, recent, 'the newest first');
  const five = ['s00', 's05', 's10', 's15', 's20'];
  assert.deepEqual(
    facts.five,
    recent.map(({ id }) => id).filter((id) => five.includes(id)),
  );
  assert.equal(facts.status.store, 'indexeddb');
  assert.equal(facts.status.state, 'ready');
  assert.deepEqual(facts.status.findings, []);
  assert.equal(typeof facts.status.usageBytes, 'number');
  assert.equal(typeof facts.status.quotaBytes, 'number');
  assert.equal(typeof facts.status.persisted, 'boolean');
  assert.equal(typeof facts.persist, 'boolean');
});
