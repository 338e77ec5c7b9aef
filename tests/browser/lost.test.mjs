// What is deleted, evicted or damaged under an open page, in IndexedDB; and ids that repeat themselves after a reload.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { openWorld } from './page.mjs';

let world;
before(async () => { world = await openWorld(); });
after(() => world?.close());

/** A tab of `context` with `client` on the database `name`, and what the tests say again and again. */
async function tab(context, name, options = '{}') {
  const page = await world.page(context);
  await page.evaluate(async ([name, options]) => {
    globalThis.warnings = [];
    globalThis.reopen = async () => { globalThis.client = await rethread.open({ name, onWarning: (finding) => warnings.push(finding), ...(0, eval)(`(${options})`) }); };
    globalThis.says = (text) => ({ messages: [{ role: 'user', content: text }] });
    globalThis.textsOf = async (session) => (await session.messages({ limit: 1000 })).items.map(({ parts }) => parts[0].text);
    await reopen();
  }, [name, options]);
  return page;
}

describe('deleted or evicted', () => {
  test('r48 deleted in another tab: session(id) gives a fresh one', async () => {
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
        refused: refused.code, appended, same: fresh === old, again: (await caught(() => old.append(says('lost'), 'openai-chat'))).code,
        texts: await textsOf(fresh), beside: await textsOf(other), view: fresh.view().getSnapshot().messages.length, state: (await client.status()).state,
      };
    });
    assert.deepEqual(facts, {
      refused: 'not_found', appended: { code: null, value: '1' }, same: false, again: 'not_found', texts: ['new'], beside: ['beside'], view: 1, state: 'ready',
    });
    assert.deepEqual(await two.evaluate(async () => textsOf(await client.session('s'))), ['new']);
  });

  test('r48 deleted in another tab, and nothing was tried in between: session(id) knows', async () => {
    const context = await world.context();
    const [one, two] = [await tab(context, 'gone-unseen'), await tab(context, 'gone-unseen')];
    await one.evaluate(async () => { await (await client.session('s')).append(says('old'), 'openai-chat'); });
    await two.evaluate(() => client.deleteSession('s'));
    const facts = await one.evaluate(async () => {
      const fresh = await client.session('s');
      await fresh.append(says('new'), 'openai-chat');
      return { texts: await textsOf(fresh), opened: (await client.session('s')).revision === fresh.revision };
    });
    assert.deepEqual(facts, { texts: ['new'], opened: true });
  });

  for (const first of ['append', 'session']) {
    test(`r48 the database was taken away, and ${first} notices: it says so once, and session(id) gives a fresh one`, async () => {
      const page = await tab(undefined, 'evicted');
      const facts = await page.evaluate(async (first) => {
        const old = await client.session('s');
        await old.append(says('old'), 'openai-chat');
        await new Promise((resolve, reject) => { Object.assign(indexedDB.deleteDatabase('evicted'), { onsuccess: resolve, onerror: reject }); });
        const noticed = await caught(() => (first === 'append' ? old.append(says('lost'), 'openai-chat') : client.session('s')));
        const fresh = await client.session('s');
        const appended = await caught(async () => (await fresh.append(says('new'), 'openai-chat')).messageIds.length);
        return {
          noticed: noticed.code, appended, texts: await textsOf(fresh), old: (await caught(() => old.append(says('lost'), 'openai-chat'))).code,
          state: (await client.status()).state, listed: (await client.sessions()).items.map(({ id }) => id),
        };
      }, first);
      assert.deepEqual(facts, { noticed: 'evicted', appended: { code: null, value: '1' }, texts: ['new'], old: 'not_found', state: 'evicted', listed: ['s'] });
    });
  }
});

describe('r47 newId counts from the start after a reload', () => {
  const counting = '(() => { let n = 0; return { newId: () => `id-${(n += 1)}` }; })()';

  test('what was acknowledged is there', async () => {
    const context = await world.context();
    const want = [];
    for (const reload of [1, 2, 3]) {
      const page = await tab(context, 'repeats', counting);
      const ids = await page.evaluate(async (reload) => {
        const session = await client.session('s');
        const made = [];
        for (const at of [1, 2, 3]) made.push((await session.append(says(`${reload}.${at}`), 'openai-chat')).messageIds[0]);
        return made;
      }, reload);
      for (const at of [1, 2, 3]) want.push([ids[at - 1], `${reload}.${at}`]);
      await page.close();
    }
    const page = await tab(context, 'repeats', counting);
    const stored = await page.evaluate(async () => (await (await client.session('s')).messages()).items.map(({ id, parts }) => [id, parts[0].text]));
    assert.deepEqual(stored, want);
  });

  test('an unfinished run keeps its journal, and the next one gets an id of its own', async () => {
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
      return { id: run.id, status, pending: pending.map(({ id, state }) => [id, state]), resumed: resumed.status, texts: await textsOf(session) };
    }, provider);
    assert.notEqual(facts.id, cut);
    assert.deepEqual({ ...facts, id: undefined }, {
      id: undefined, status: 'finished', pending: [[cut, 'interrupted']], resumed: 'finished', texts: ['second', 'Second.', 'first', 'First.'],
    });
  });
});
