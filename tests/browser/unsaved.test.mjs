// r69: the view alone shows what is not in history yet: after a reload, a failure, a stop, and from another tab.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { openWorld } from './page.mjs';

let world;
before(async () => {
  world = await openWorld();
});
after(() => world?.close());

/** A page with the session `s` of the database `name`, and what the tests read of its view. */
async function opened(name, context) {
  const page = await world.page(context);
  await page.evaluate((name) => globalThis.openSession(name), name);
  return page;
}

/** Part of the page: nothing here may call `pendingRuns` or `refresh`. */
async function prepare(context) {
  await context.addInitScript(() => {
    const textOf = ({ parts }) =>
      parts
        .filter(({ type }) => type === 'text')
        .map(({ text }) => text)
        .join('');
    globalThis.openSession = async (name) => {
      globalThis.client = await rethread.open({ name });
      globalThis.session = await client.session('s');
      globalThis.view = session.view();
      globalThis.changes = 0;
      session.subscribe(() => {
        changes += 1;
      });
    };
    globalThis.until = async (test, ms = 60_000) => {
      for (const end = Date.now() + ms; Date.now() < end; ) {
        if (await test()) return true;
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
      return false;
    };
    /** A snapshot of the view as plain facts. */
    globalThis.look = ({ messages, run, revision } = view.getSnapshot()) => {
      return {
        revision,
        run: run && {
          status: run.status,
          ...(run.error ? { error: run.error.code } : {}),
          ours: typeof run.cancel === 'function',
        },
        messages: messages.map((message) => {
          const calls = message.parts
            .filter(({ type }) => type === 'tool')
            .map(({ call }) => `${call.name} ${call.status} ${call.result?.content ?? '-'}`);
          return `${message.role} ${message.status}${message.saved ? '' : ' unsaved'}: ${textOf(message)}${calls.length ? ` [${calls.join(', ')}]` : ''}`;
        }),
      };
    };
    globalThis.texts = () => view.getSnapshot().messages.map(textOf);
    /** Waits until a client that opens the database now shows `text`, as a page after a reload would: a result is
     *  shown a moment before it is stored. */
    globalThis.untilStored = (name, text) =>
      until(async () => {
        const other = await rethread.open({ name });
        const { messages } = look((await other.session('s')).view().getSnapshot());
        await other.close();
        return messages.some((message) => message.includes(text));
      });
    const city = { type: 'object', properties: { city: { type: 'string' } } };
    globalThis.ask = async (url, input = 'And in Oslo?', extra = {}) => {
      globalThis.run = await session.run({
        input,
        provider: { dialect: 'openai-chat', url, params: { model: 'm' }, stream: true },
        tools: {
          get_weather: { parameters: city, execute: async () => 'mild' },
          get_time: { parameters: city, execute: () => new Promise(() => {}) },
        },
        ...extra,
      });
      globalThis.driven = drive(run);
      return run.id;
    };
  });
}

const CALL = { text: 'Looking.', calls: [{ name: 'get_weather', arguments: { city: 'Oslo' } }] };
const HANGS = {
  text: 'And the time.',
  calls: [
    { name: 'get_weather', arguments: { city: 'Oslo' } },
    { name: 'get_time', arguments: { city: 'Oslo' } },
  ],
};
const GROWS = { text: 'one two three four five six', gate: 'half', atPiece: 3 };
/** So many pieces that a busy tab, which reads several at once, sees it grow, too. */
const WORDS = 'one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen';
const ASKED = 'user complete unsaved: And in Oslo?';
const ROUND = 'assistant complete unsaved: Looking. [get_weather ok mild]';

async function scene(name, steps) {
  const context = await world.context();
  await prepare(context);
  const lane = world.lane(name);
  await lane.script(steps, { delayMs: 25 });
  return { context, lane, page: await opened(name, context) };
}

describe('r69 the view alone', () => {
  test('after a reload during a run the view has the question, the finished round and the calls as unsaved; history has none of them', async () => {
    const { lane, page } = await scene('reload', [CALL, HANGS]);
    await page.evaluate((url) => ask(url), lane.chat);
    assert.ok(await page.evaluate(() => untilStored('reload', 'And the time. [get_weather ok mild')));
    await page.reload();
    await page.evaluate(() => globalThis.ready);
    const facts = await page.evaluate(async () => {
      await openSession('reload');
      // The platform may still hold the lock of the page before.
      await until(() => view.getSnapshot().run?.status === 'interrupted');
      const first = look();
      const stable = view.getSnapshot() === view.getSnapshot();
      return { first, stable, stored: (await session.messages()).items.length, revision: session.revision };
    });
    assert.deepEqual(facts.first.run, { status: 'interrupted', ours: false });
    assert.deepEqual(facts.first.messages, [
      ASKED,
      ROUND,
      'assistant complete unsaved: And the time. [get_weather ok mild, get_time interrupted -]',
    ]);
    assert.deepEqual([facts.stable, facts.stored, facts.revision, facts.first.revision], [true, 0, 0, 0]);

    // It goes with a discard.
    const gone = await page.evaluate(async () => {
      await session.discard(view.getSnapshot().run.id);
      return look();
    });
    assert.deepEqual(gone, { revision: 0, run: null, messages: [] });
    assert.deepEqual(page.complaints, []);
  });

  test('r69 an interrupted run is still shown while another run begins and ends, and after a reload', async () => {
    const { lane, page } = await scene('superseded', [HANGS, { text: 'New answer.' }]);
    await page.evaluate((url) => ask(url), lane.chat);
    assert.ok(await page.evaluate(() => untilStored('superseded', 'And the time. [get_weather ok mild')));
    await page.reload();
    await page.evaluate(() => globalThis.ready);
    const facts = await page.evaluate(async (url) => {
      await openSession('superseded');
      // The platform may still hold the lock of the page before.
      await until(() => view.getSnapshot().run?.status === 'interrupted');
      const before = look();
      await ask(url, 'New question?');
      const during = look().messages.filter((text) => text.startsWith('user'));
      await driven.result;
      return {
        before: before.messages.length,
        during,
        after: look(),
        pending: (await session.pendingRuns()).map(({ state, input }) => `${state} ${input[0].parts[0].text}`),
      };
    }, lane.chat);
    assert.deepEqual(facts, {
      before: 2,
      during: [ASKED, 'user complete unsaved: New question?'],
      after: {
        revision: 1,
        run: { status: 'interrupted', ours: false },
        messages: [
          'user complete: New question?',
          'assistant complete: New answer.',
          ASKED,
          'assistant complete unsaved: And the time. [get_weather ok mild, get_time interrupted -]',
        ],
      },
      pending: ['interrupted And in Oslo?'],
    });
  });

  test('after Stop the question, the round and the partial text stay, marked stopped without an error, also after a reload, until the next run', async () => {
    const { lane, page } = await scene('stop', [CALL, GROWS, { text: 'The whole answer.' }]);
    await page.evaluate((url) => ask(url), lane.chat);
    const growing = await page.evaluate(async () => {
      await until(() => texts().at(-1) === 'one two three');
      return look();
    });
    assert.deepEqual(growing, {
      revision: 0,
      run: { status: 'running', ours: true },
      messages: [ASKED, ROUND, 'assistant streaming unsaved: one two three'],
    });

    const stopped = await page.evaluate(async () => {
      const one = view.getSnapshot().run.cancel === view.getSnapshot().run.cancel;
      await view.getSnapshot().run.cancel();
      const { status, error, saved } = await driven.result;
      return {
        one,
        result: { status, error, saved },
        view: look(),
        stored: (await session.messages()).items.length,
        pending: await session.pendingRuns(),
        summary: (await client.sessions()).items[0].pendingRuns,
      };
    });
    const shown = {
      revision: 0,
      run: { status: 'cancelled', ours: false },
      messages: [ASKED, ROUND, 'assistant stopped unsaved: one two three'],
    };
    assert.deepEqual(stopped, {
      one: true,
      result: { status: 'cancelled', error: null, saved: false },
      view: shown,
      stored: 0,
      pending: [],
      summary: 0,
    });

    await page.reload();
    await page.evaluate(() => globalThis.ready);
    const after = await page.evaluate(async (url) => {
      await openSession('stop');
      const view = look();
      const id = globalThis.view.getSnapshot().run.id;
      const request = { provider: { dialect: 'openai-chat', url, params: { model: 'm' }, stream: true } };
      const refused = await session.resume(id, request).catch(({ code }) => code);
      const { status } = await drive(await session.run({ input: 'Again?', ...request })).result;
      return { view, refused, status, end: look() };
    }, lane.chat);
    assert.deepEqual(after.view, shown);
    assert.deepEqual([after.refused, after.status], ['conflict', 'finished']);
    assert.deepEqual(after.end, {
      revision: 1,
      run: null,
      messages: ['user complete: Again?', 'assistant complete: The whole answer.'],
    });
    assert.deepEqual(page.complaints, []);
  });

  test('after a failure the question, the round and the partial text stay, with the error, also after a reload', async () => {
    const { lane, page } = await scene('fail', [CALL, { text: 'one two three four five six', cut: 3 }]);
    await page.evaluate((url) => ask(url, 'And in Oslo?', { retry: { attempts: 1 } }), lane.chat);
    const failed = await page.evaluate(async () => {
      const { status } = await driven.result;
      return { status, view: look() };
    });
    const [asked, round, answer] = failed.view.messages;
    assert.deepEqual([failed.status, asked, round], ['failed', ASKED, ROUND]);
    assert.match(answer, /^assistant failed unsaved: one/);
    assert.deepEqual(failed.view.run, { status: 'failed', error: 'model_error', ours: false });
    await page.reload();
    await page.evaluate(() => globalThis.ready);
    assert.deepEqual(
      await page.evaluate(async () => {
        await openSession('fail');
        return look();
      }),
      failed.view,
    );
  });

  test('a network failure keeps the question in the view', async () => {
    const { page } = await scene('network', []);
    const facts = await page.evaluate(async () => {
      await ask('http://localhost:9/v1/chat/completions', 'And in Oslo?', { retry: { attempts: 1 } });
      await driven.result;
      return look();
    });
    assert.deepEqual(facts, {
      revision: 0,
      run: { status: 'failed', error: 'model_error', ours: false },
      messages: [ASKED],
    });
  });

  test('the check of the revision in the README imports after a crash: the revision counts history alone', async () => {
    const { lane, page } = await scene('revision', [CALL, HANGS]);
    await page.evaluate((url) => ask(url), lane.chat);
    assert.ok(
      await page.evaluate(() => until(() => look().messages.some((text) => text.includes('get_time pending')))),
    );
    await page.reload();
    await page.evaluate(() => globalThis.ready);
    const facts = await page.evaluate(async () => {
      await openSession('revision');
      const body = { messages: [{ role: 'user', content: 'imported' }] };
      const before = [
        session.revision,
        view.getSnapshot().revision,
        (await client.sessions()).items[0].revision,
        (await session.refresh()).revision,
      ];
      if (session.revision === 0) await session.append(body, 'openai-chat', { expectedRevision: session.revision });
      const after = [session.revision, view.getSnapshot().revision, (await client.sessions()).items[0].revision];
      const late = await session
        .append(body, 'openai-chat', { expectedRevision: 0 })
        .catch(({ code, details }) => ({ code, details }));
      return { before, after, late, shown: look().messages };
    });
    assert.deepEqual(facts.before, [0, 0, 0, 0]);
    assert.deepEqual(facts.after, [1, 1, 1]);
    assert.deepEqual(facts.late, { code: 'conflict', details: { expected: 0, revision: 1 } });
    assert.equal(facts.shown[0], 'user complete: imported');
    assert.equal(facts.shown[1], ASKED, 'what is unfinished comes after history');
  });
});

describe('r69 a second tab', () => {
  /** Both tabs of one context. */
  async function tabs(name, steps) {
    const { context, lane, page } = await scene(name, steps);
    return { lane, one: page, two: await opened(name, context) };
  }

  for (const late of [false, true]) {
    test(`${late ? 'opened during the run' : 'open before the run'} sees a live run grow, and its end`, async () => {
      const name = `grow-${late}`;
      const { context, lane, page: one } = await scene(name, [CALL, { ...GROWS, text: WORDS }]);
      let two = late ? null : await opened(name, context);
      await one.evaluate((url) => ask(url), lane.chat);
      assert.ok(await one.evaluate(() => until(() => texts().at(-1) === 'one two three')));
      two ??= await opened(name, context);
      const half = await two.evaluate(async () => {
        await until(() => texts().at(-1) === 'one two three');
        globalThis.first = view.getSnapshot().messages[0];
        globalThis.seen = [];
        view.subscribe(() => seen.push(texts().at(-1)));
        return look();
      });
      assert.deepEqual(half, {
        revision: 0,
        run: { status: 'running', ours: false },
        messages: [ASKED, ROUND, 'assistant streaming unsaved: one two three'],
      });
      await lane.openGate('half');
      const end = await two.evaluate(async () => {
        await until(() => view.getSnapshot().run === null);
        const answers = seen.filter((text) => text.startsWith('one'));
        return { view: look(), seen: answers, kept: seen.every((text) => text.length > 0) };
      });
      assert.deepEqual(end.view, {
        revision: 1,
        run: null,
        messages: [
          'user complete: And in Oslo?',
          'assistant complete: Looking. [get_weather ok mild]',
          `assistant complete: ${WORDS}`,
        ],
      });
      assert.ok(new Set(end.seen).size >= 3, `it grows: ${end.seen}`);
      assert.deepEqual(
        end.seen,
        end.seen.slice().sort((a, b) => a.length - b.length),
        'and never shrinks',
      );
      for (const page of [one, two]) assert.deepEqual(page.complaints, []);
    });
  }

  test('shows the run as interrupted when the first tab is closed, and notifies subscribers; the partial answer stays', async () => {
    const { lane, one, two } = await tabs('dies', [CALL, GROWS]);
    await one.evaluate((url) => ask(url), lane.chat);
    assert.ok(await two.evaluate(() => until(() => texts().at(-1) === 'one two three')));
    await two.evaluate(() => {
      globalThis.before = changes;
      globalThis.heard = 0;
      client.subscribe(() => {
        heard += 1;
      });
    });
    await one.close();
    const facts = await two.evaluate(async () => {
      await until(() => view.getSnapshot().run.status === 'interrupted' && changes > before && heard > 0);
      return {
        view: look(),
        told: changes > before,
        heard: heard > 0,
        state: (await session.pendingRuns()).map(({ state }) => state),
      };
    });
    assert.deepEqual(facts.view, {
      revision: 0,
      run: { status: 'interrupted', ours: false },
      messages: [ASKED, ROUND, 'assistant truncated unsaved: one two three'],
    });
    assert.deepEqual([facts.told, facts.heard, facts.state], [true, true, ['interrupted']]);

    // Waiting for its end did not own it: it goes on here.
    await lane.script([{ text: 'Taken over.' }]);
    const resumed = await two.evaluate(async (url) => {
      const run = await session.resume(view.getSnapshot().run.id, {
        provider: { dialect: 'openai-chat', url, params: { model: 'm' }, stream: true },
      });
      const { status } = await drive(run).result;
      return { status, run: view.getSnapshot().run, last: texts().at(-1) };
    }, lane.chat);
    assert.deepEqual(resumed, { status: 'finished', run: null, last: 'Taken over.' });
    assert.deepEqual(two.complaints, []);
  });

  test('is notified when pendingRuns changes: answered, stopped, discarded', async () => {
    const { lane, one, two } = await tabs('notified', [HANGS]);
    const changed = (what) =>
      two.evaluate(
        async ([what, before]) => {
          const test = new Function(`return ${what}`);
          return (await until(() => test() && changes > before)) && changes;
        },
        [what, counts.at(-1)],
      );
    const counts = [await two.evaluate(() => changes)];
    await one.evaluate((url) => ask(url), lane.chat);
    counts.push(
      await changed('look().messages.some((text) => text.includes("get_weather ok mild, get_time pending"))'),
    );
    await one.evaluate(() => run.cancel());
    counts.push(await changed('view.getSnapshot().run?.status === "cancelled"'));
    assert.deepEqual(await two.evaluate(() => look().messages), [
      ASKED,
      'assistant complete unsaved: And the time. [get_weather ok mild, get_time aborted -]',
    ]);
    await two.evaluate(() => session.discard(view.getSnapshot().run.id));
    assert.ok(
      await one.evaluate(() =>
        until(() => view.getSnapshot().run === null && view.getSnapshot().messages.length === 0),
      ),
      'discarded there, gone here',
    );
    counts.push(await changed('view.getSnapshot().run === null'));
    assert.ok(
      counts.every((count, at) => at === 0 || count > counts[at - 1]),
      String(counts),
    );
  });

  test('is closed while three others watch: each resumes at most once, and the others see the run live', async () => {
    const { context, lane, page: one } = await scene('many', [HANGS]);
    const others = [await opened('many', context), await opened('many', context), await opened('many', context)];
    await one.evaluate((url) => ask(url), lane.chat);
    for (const other of others)
      assert.ok(await other.evaluate(() => until(() => view.getSnapshot().run?.status === 'running')));
    await lane.script([{ text: 'Held.', gate: 'held', atPiece: 1 }]);
    const taking = others.map((other) =>
      other.evaluate(async (url) => {
        await until(() => view.getSnapshot().run?.status === 'interrupted', 10_000);
        try {
          globalThis.taken = await session.resume(view.getSnapshot().run.id, {
            provider: { dialect: 'openai-chat', url, params: { model: 'm' }, stream: true },
          });
          globalThis.driven = drive(taken);
          return 'taken';
        } catch ({ code }) {
          return code;
        }
      }, lane.chat),
    );
    await one.close();
    const got = await Promise.all(taking);
    assert.deepEqual(got.slice().sort(), ['busy', 'busy', 'taken']);
    const losers = others.filter((_, at) => got[at] === 'busy');
    for (const loser of losers)
      assert.ok(
        await loser.evaluate(() =>
          until(() => view.getSnapshot().run?.status === 'running' && !view.getSnapshot().run.cancel),
        ),
      );
    await others[got.indexOf('taken')].close();
    for (const loser of losers)
      assert.ok(
        await loser.evaluate(() => until(() => view.getSnapshot().run?.status === 'interrupted')),
        'and its death is seen, too',
      );
  });
});
