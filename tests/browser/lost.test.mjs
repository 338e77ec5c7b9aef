// What is deleted, evicted or damaged under an open page, in IndexedDB; and ids that repeat themselves after a reload.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { openWorld } from './page.mjs';

let world;
before(async () => {
  world = await openWorld();
});
after(() => world?.close());

/** A tab of `context` with `client` on the database `name`, and what the tests say again and again. */
async function tab(context, name, counting = false) {
  const page = await world.page(context);
  await page.evaluate(
    async ([name, counting]) => {
      globalThis.warnings = [];
      let n = 0;
      const ids = counting ? { newId: () => `id-${(n += 1)}` } : {};
      globalThis.reopen = async () => {
        globalThis.client = await rethread.open({ name, onWarning: (finding) => warnings.push(finding), ...ids });
      };
      globalThis.says = (text) => ({ messages: [{ role: 'user', content: text }] });
      globalThis.textsOf = async (session) =>
        (await session.messages({ limit: 1000 })).items.map(({ parts }) => parts[0].text);
      await reopen();
    },
    [name, counting],
  );
  return page;
}

describe('deleted or evicted', () => {
  test('r48 after a deletion in another tab, session(id) creates a new session', async () => {
    const context = await world.context();
    const [one, two] = [await tab(context, 'gone'), await tab(context, 'gone')];
    await one.evaluate(async () => {
      globalThis.old = await client.session('s');
      globalThis.other = await client.session('other');
      await old.append(says('old'), 'openai-chat');
    });
    await two.evaluate(() => client.deleteSession('s'));
    const facts = await one.evaluate(async () => {
      const refused = await caught(() => old.append(says('lost'), 'openai-chat'));
      const fresh = await client.session('s');
      const appended = await caught(async () => (await fresh.append(says('new'), 'openai-chat')).messageIds.length);
      await other.append(says('beside'), 'openai-chat');
      return {
        refused: refused.code,
        appended,
        same: fresh === old,
        again: (await caught(() => old.append(says('lost'), 'openai-chat'))).code,
        texts: await textsOf(fresh),
        beside: await textsOf(other),
        view: fresh.view().getSnapshot().messages.length,
        state: (await client.status()).state,
      };
    });
    assert.deepEqual(facts, {
      refused: 'not_found',
      appended: { code: null, value: '1' },
      same: false,
      again: 'not_found',
      texts: ['new'],
      beside: ['beside'],
      view: 1,
      state: 'ready',
    });
    assert.deepEqual(await two.evaluate(async () => textsOf(await client.session('s'))), ['new']);
  });

  test('r48 after a deletion in another tab, session(id) creates a new session without a failed call before', async () => {
    const context = await world.context();
    const [one, two] = [await tab(context, 'gone-unseen'), await tab(context, 'gone-unseen')];
    await one.evaluate(async () => {
      await (await client.session('s')).append(says('old'), 'openai-chat');
    });
    await two.evaluate(() => client.deleteSession('s'));
    const facts = await one.evaluate(async () => {
      const fresh = await client.session('s');
      await fresh.append(says('new'), 'openai-chat');
      return { texts: await textsOf(fresh), opened: (await client.session('s')).revision === fresh.revision };
    });
    assert.deepEqual(facts, { texts: ['new'], opened: true });
  });

  for (const first of ['append', 'session']) {
    test(`r48 after the database was deleted, ${first} reports it once, and session(id) creates a new session`, async () => {
      const page = await tab(undefined, 'evicted');
      const facts = await page.evaluate(async (first) => {
        const old = await client.session('s');
        await old.append(says('old'), 'openai-chat');
        await new Promise((resolve, reject) => {
          Object.assign(indexedDB.deleteDatabase('evicted'), { onsuccess: resolve, onerror: reject });
        });
        const noticed = await caught(() =>
          first === 'append' ? old.append(says('lost'), 'openai-chat') : client.session('s'),
        );
        const fresh = await client.session('s');
        const appended = await caught(async () => (await fresh.append(says('new'), 'openai-chat')).messageIds.length);
        return {
          noticed: noticed.code,
          appended,
          texts: await textsOf(fresh),
          old: (await caught(() => old.append(says('lost'), 'openai-chat'))).code,
          state: (await client.status()).state,
          listed: (await client.sessions()).items.map(({ id }) => id),
        };
      }, first);
      assert.deepEqual(facts, {
        noticed: 'evicted',
        appended: { code: null, value: '1' },
        texts: ['new'],
        old: 'evicted',
        state: 'evicted',
        listed: ['s'],
      });
    });
  }
});

describe('r47 newId starts again after a reload', () => {
  const counting = true;

  test('acknowledged writes are kept', async () => {
    const context = await world.context();
    const want = [];
    for (const reload of [1, 2, 3]) {
      const page = await tab(context, 'repeats', counting);
      const ids = await page.evaluate(async (reload) => {
        const session = await client.session('s');
        const made = [];
        for (const at of [1, 2, 3])
          made.push((await session.append(says(`${reload}.${at}`), 'openai-chat')).messageIds[0]);
        return made;
      }, reload);
      for (const at of [1, 2, 3]) want.push([ids[at - 1], `${reload}.${at}`]);
      await page.close();
    }
    const page = await tab(context, 'repeats', counting);
    const stored = await page.evaluate(async () =>
      (await (await client.session('s')).messages()).items.map(({ id, parts }) => [id, parts[0].text]),
    );
    assert.deepEqual(stored, want);
  });

  test('an unfinished run keeps its journal, and the next run gets another id', async () => {
    const context = await world.context();
    const lane = world.lane('repeats-runs');
    await lane.script([{ text: 'Never.', gate: 'never', atPiece: 1 }, { text: 'Second.' }, { text: 'First.' }]);
    const provider = { dialect: 'openai-chat', url: lane.chat, params: { model: 'm' }, stream: true };
    const one = await tab(context, 'repeats-runs', counting);
    const cut = await one.evaluate(async (provider) => {
      globalThis.run = await (await client.session('s')).run({ input: 'first', provider });
      drive(run);
      return run.id;
    }, provider);
    while (!(await lane.waiting()).length) await new Promise((resolve) => setTimeout(resolve, 10));
    await one.close();
    const two = await tab(context, 'repeats-runs', counting);
    const facts = await two.evaluate(async (provider) => {
      const session = await client.session('s');
      const run = await session.run({ input: 'second', provider });
      const { status } = await drive(run).result;
      const pending = await session.pendingRuns();
      const resumed = await drive(await session.resume(pending[0].id, { provider })).result;
      return {
        id: run.id,
        status,
        pending: pending.map(({ id, state }) => [id, state]),
        resumed: resumed.status,
        texts: await textsOf(session),
      };
    }, provider);
    assert.notEqual(facts.id, cut);
    assert.deepEqual(
      { ...facts, id: undefined },
      {
        id: undefined,
        status: 'finished',
        pending: [[cut, 'interrupted']],
        resumed: 'finished',
        texts: ['second', 'Second.', 'first', 'First.'],
      },
    );
  });
});

describe('damaged heads', () => {
  /** A tab with two sessions of two turns, each with a call, and an unfinished run in `s`; `raw` works on the rows
   *  behind its back. */
  async function damaged(name) {
    const context = await world.context();
    const lane = world.lane(name);
    const call = { calls: [{ name: 'get_weather', arguments: { city: 'Oslo' } }] };
    await lane.script([
      call,
      { text: 'One.' },
      call,
      { text: 'Two.' },
      call,
      { text: 'Never.', gate: 'never', atPiece: 0 },
    ]);
    const provider = { dialect: 'openai-chat', url: lane.chat, params: { model: 'm' }, stream: true };
    const one = await tab(context, name);
    await one.evaluate(async (provider) => {
      const tools = {
        get_weather: {
          parameters: { type: 'object', properties: { city: { type: 'string' } } },
          execute: async () => 'mild',
        },
      };
      const session = await client.session('s', { title: 'Title', channel: 'mail', metadata: { k: 1 } });
      for (const input of ['first', 'second']) await drive(await session.run({ input, provider, tools })).result;
      drive(await session.run({ input: 'third', provider, tools }));
      await (await client.session('t')).append(says('other'), 'openai-chat');
    }, provider);
    while (!(await lane.waiting()).length) await new Promise((resolve) => setTimeout(resolve, 10));
    await one.close();
    await lane.script([{ text: 'Three.' }, { text: 'Four.' }]);
    const page = await tab(context, name);
    await page.evaluate(
      async ([name, provider]) => {
        const settled = (request) =>
          new Promise((resolve, reject) => {
            Object.assign(request, { onsuccess: () => resolve(request.result), onerror: () => reject(request.error) });
          });
        await client.close();
        /** Changes rows of the object store `heads`, or of another. */
        globalThis.raw = async (work, store = 'heads') => {
          const database = await settled(indexedDB.open(name));
          await work(database.transaction(store, 'readwrite').objectStore(store), settled);
          database.close();
        };
        globalThis.look = async () => {
          const pending = await client.pendingRuns();
          const session = await client.session('s');
          const before = { texts: await textsOf(session), revision: session.revision };
          const { items } = await client.sessions();
          items.sort((a, b) => (a.id < b.id ? -1 : 1));
          const listed = items.map(({ id, title, messageCount, pendingRuns }) => [
            id,
            title,
            messageCount,
            pendingRuns,
          ]);
          return {
            pending: pending.map(({ id, state, session, input }) => [state, session, input[0].parts[0].text]),
            listed,
            ...before,
            status: (await client.status()).state,
            told: [...new Set(warnings.map(({ code }) => code))],
          };
        };
        /** Resumes what is pending, then another turn. */
        globalThis.goOn = async () => {
          const session = await client.session('s');
          const ends = [];
          for (const { id } of await session.pendingRuns())
            ends.push((await drive(await session.resume(id, { provider })).result).status);
          ends.push((await drive(await session.run({ input: 'fourth', provider })).result).status);
          return {
            ends,
            texts: (await textsOf(session)).filter(Boolean),
            audit: (await session.invocations({ payload: true })).items.map(({ result }) => result?.content),
          };
        };
      },
      [name, provider],
    );
    return page;
  }
  const turns = ['first', undefined, 'One.', 'second', undefined, 'Two.'];
  const rebuilt = { pending: [['interrupted', 's', 'third']], texts: turns, status: 'degraded', told: ['malformed'] };
  const gone = {
    ends: ['finished', 'finished'],
    texts: ['first', 'One.', 'second', 'Two.', 'third', 'Three.', 'fourth', 'Four.'],
    audit: ['mild', 'mild', 'mild'],
  };

  test('r07 a flipped byte hides no message, is reported, and is repaired by the next turn', async () => {
    const page = await damaged('flipped');
    const facts = await page.evaluate(async () => {
      await raw(async (heads, settled) => {
        const row = await settled(heads.get('s'));
        row.v[row.v.length >> 1] ^= 0x10;
        await settled(heads.put(row, 's'));
      });
      await reopen();
      const alone = (await client.status()).state;
      const seen = await look();
      const later = await goOn();
      await client.close();
      warnings.length = 0;
      await reopen();
      return { alone, seen, later, healed: await look() };
    });
    assert.equal(facts.alone, 'degraded', 'status looks at the heads');
    assert.ok(facts.seen.revision > 0);
    assert.deepEqual(
      { ...facts.seen, revision: undefined },
      {
        ...rebuilt,
        listed: [
          ['s', 'Title', 6, 1],
          ['t', null, 1, 0],
        ],
        revision: undefined,
      },
    );
    assert.deepEqual(facts.later, gone);
    assert.deepEqual(
      [facts.healed.status, facts.healed.told, facts.healed.listed],
      [
        'ready',
        [],
        [
          ['s', 'Title', 11, 0],
          ['t', null, 1, 0],
        ],
      ],
    );
  });

  test('r07 a missing row is rebuilt from log and journal, and nothing is overwritten', async () => {
    const page = await damaged('rowless');
    const facts = await page.evaluate(async () => {
      await raw((heads, settled) => settled(heads.delete('s')));
      await reopen();
      return { seen: await look(), later: await goOn() };
    });
    assert.ok(facts.seen.revision > 0, 'a guard on revision 0 imports nothing');
    assert.deepEqual(
      { ...facts.seen, revision: undefined },
      {
        ...rebuilt,
        listed: [
          ['s', 'Title', 6, 1],
          ['t', null, 1, 0],
        ],
        revision: undefined,
      },
    );
    assert.deepEqual(facts.later, gone);
  });

  test('r47 after the row of an open session is deleted, its next append overwrites nothing', async () => {
    const page = await damaged('under');
    const facts = await page.evaluate(async () => {
      await reopen();
      const session = await client.session('s');
      await raw((heads, settled) => settled(heads.delete('s')));
      await session.append(says('after'), 'openai-chat');
      await client.close();
      await reopen();
      const again = await client.session('s');
      return {
        texts: await textsOf(again),
        pending: (await again.pendingRuns()).length,
        metadata: (await client.sessions()).items[0].metadata,
      };
    });
    assert.deepEqual(facts, { texts: [...turns, 'after'], pending: 1, metadata: { k: 1 } });
  });

  test('r47 after the row is replaced by an earlier head, the next append overwrites nothing', async () => {
    const page = await damaged('earlier');
    const facts = await page.evaluate(async () => {
      let early;
      await raw(async (heads, settled) => {
        early = await settled(heads.get('s'));
      });
      await reopen();
      await (await client.session('s')).append(says('later'), 'openai-chat');
      await client.close();
      await raw((heads, settled) => settled(heads.put(early, 's')));
      await reopen();
      const session = await client.session('s');
      await session.append(says('last'), 'openai-chat');
      return { texts: await textsOf(session), status: (await client.status()).state };
    });
    assert.deepEqual(facts, { texts: [...turns, 'later', 'last'], status: 'degraded' });
  });

  for (const [what, row] of Object.entries({
    number: 7,
    null: null,
    text: 'text',
    array: [1, 2],
    members: { r: '1', v: 'no bytes', d: 5 },
    empty: {},
  })) {
    test(`r48 a row of a wrong shape (${what}) affects that session alone, which can be deleted`, async () => {
      const page = await damaged(`shape-${what}`);
      const facts = await page.evaluate(async (row) => {
        await raw((heads, settled) => settled(heads.put(row, 's')));
        await reopen();
        const seen = await look();
        const other = await client.session('t');
        await other.append(says('more'), 'openai-chat');
        const texts = await textsOf(other);
        await client.deleteSession('t');
        await client.deleteSession('s');
        const fresh = await client.session('s');
        await fresh.append(says('anew'), 'openai-chat');
        return {
          seen: { ...seen, revision: undefined },
          texts,
          left: (await client.sessions()).items.map(({ id }) => id),
          anew: await textsOf(fresh),
          pending: await client.pendingRuns(),
        };
      }, row);
      assert.deepEqual(facts, {
        seen: {
          ...rebuilt,
          listed: [
            ['s', 'Title', 6, 1],
            ['t', null, 1, 0],
          ],
          revision: undefined,
        },
        texts: ['other', 'more'],
        left: ['s'],
        anew: ['anew'],
        pending: [],
      });
    });
  }
});
