// r46 r47 r48: rethread/unstorage over its drivers for memory and files. No driver has a compare-and-set.

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, describe, test } from 'node:test';
import { open } from 'rethread';
import { drive } from 'rethread/host';
import { unstorage } from 'rethread/unstorage';
import { createStorage } from 'unstorage';
import fsDriver from 'unstorage/drivers/fs';
import { openDriver } from './drivers.mjs';
import { assertAllPassed, chat, startTesting } from './testing.mjs';

const folders = [];
const folder = () => {
  folders.push(mkdtempSync(path.join(tmpdir(), 'rethread-unstorage-')));
  return folders.at(-1);
};
after(() => {
  for (const one of folders) rmSync(one, { recursive: true, force: true });
});

const STORAGES = {
  memory: () => {
    const storage = createStorage();
    return () => unstorage(storage);
  },
  fs: () => {
    const base = folder();
    // Two storages on one folder, as two processes have them.
    return () => unstorage(createStorage({ driver: fsDriver({ base }) }));
  },
};

for (const [name, make] of Object.entries(STORAGES)) {
  describe(name, () => {
    test('r46 it conforms, and both sides of two writers are kept', async () => {
      const testing = await startTesting();
      const results = [];
      for (const check of testing.checkNames()) {
        // A storage for each: a list goes over all keys of a storage.
        const error = await testing.runCheck(check, 'suite', make()).then(
          () => null,
          ({ message }) => message,
        );
        results.push({ check, error });
      }
      assertAllPassed(results);
    });

    test('a chat is written and read', async () => {
      assert.equal(await chat(open, make()), 'unstorage');
    });
  });
}

const message = (text) => [{ role: 'user', parts: [{ type: 'text', text }] }];
const texts = async (session) => (await session.messages()).items.map(({ parts }) => parts[0].text);

/** A storage that does not see some keys yet, as a service far away. */
function stale(storage) {
  const hidden = new Set();
  const seen = (key) => !hidden.has(key);
  return {
    hidden,
    getItemRaw: async (key) => (seen(key) ? storage.getItemRaw(key) : null),
    getKeys: async (base) => (await storage.getKeys(base)).filter(seen),
    setItemRaw: (key, value) => storage.setItemRaw(key, value),
    removeItem: (key) => storage.removeItem(key),
  };
}

test('r47 a second writer is reported, both sides are kept, every reader chooses the same one', async () => {
  const storage = createStorage();
  const far = stale(storage);
  const one = await (await open({ store: unstorage(storage) })).session('s');
  const two = await (await open({ store: unstorage(far) })).session('s');
  await one.append(message('first'));
  await two.refresh();
  await one.append(message('here 1'));
  await one.append(message('here 2'));
  for (const key of await storage.getKeys('rethread:append'))
    if (!key.includes('append:s:00000000000001:')) far.hidden.add(key);
  await two.append(message('there'));
  assert.deepEqual(await texts(two), ['first', 'there']);

  far.hidden.clear();
  await two.append(message('after both'));
  const third = await (await open({ store: unstorage(storage) })).session('s');
  await one.refresh();
  for (const session of [one, two, third]) {
    assert.deepEqual(await texts(session), ['first', 'here 1', 'here 2', 'after both']);
    const [main, conflict, ...more] = await session.branches();
    assert.deepEqual([main.branch, main.kind, main.messageCount], ['main', 'main', 4]);
    assert.deepEqual([conflict.kind, conflict.parent, conflict.messageCount, more.length], ['conflict', 'main', 2, 0]);
    assert.equal(conflict.forkedAfter, (await session.messages()).items[0].id);
  }
});

test('r47 a second writer raises a warning once, and its side is read by its id', async () => {
  const storage = createStorage();
  const far = stale(storage);
  const warnings = new Map();
  const at = async (name, on) => {
    warnings.set(name, []);
    const store = await open({
      store: unstorage(on),
      onWarning: ({ code, severity }) => warnings.get(name).push([code, severity]),
    });
    return store.session('s');
  };
  const one = await at('one', storage);
  const two = await at('two', far);
  for (const text of ['first', 'second']) await one.append(message(text));
  await two.refresh();
  for (const text of ['here 1', 'here 2', 'here 3']) await one.append(message(text));
  for (const key of await storage.getKeys('rethread:append'))
    if (/append:s:0000000000000[345]:/.test(key)) far.hidden.add(key);
  for (const text of ['there 1', 'there 2']) await two.append(message(text));
  assert.deepEqual([...warnings.values()].flat(), []);

  far.hidden.clear();
  const three = await at('three', storage);
  for (const session of [one, two]) for (let time = 0; time < 2; time += 1) await session.refresh();
  for (const [name, of] of warnings) assert.deepEqual(of, [['second_writer', 'warning']], name);
  for (const session of [one, two, three]) {
    const [, { branch }] = await session.branches();
    const read = async (options) => {
      const { items, cursor } = await session.messages({ branch, ...options });
      return [items.map(({ parts }) => parts[0].text), cursor];
    };
    assert.deepEqual(await read(), [['first', 'second', 'there 1', 'there 2'], null]);
    const [newest, cursor] = await read({ limit: 3 });
    assert.deepEqual(newest, ['second', 'there 1', 'there 2']);
    assert.deepEqual(await read({ limit: 3, cursor }), [['first'], null]);
    assert.deepEqual(await texts(session), ['first', 'second', 'here 1', 'here 2', 'here 3']);
    assert.deepEqual((await session.messages({ branch: 'main' })).items.length, 5);
    await assert.rejects(session.messages({ branch: 'other' }), { code: 'not_found' });
  }
});

test('r48 an incomplete list of keys is an error, not a shorter chat', async () => {
  const storage = createStorage();
  const far = stale(storage);
  const one = await (await open({ store: unstorage(storage) })).session('s');
  for (const text of ['a', 'b', 'c']) await one.append(message(text));
  for (const key of await storage.getKeys('rethread:append')) if (key.includes(':00000000000002:')) far.hidden.add(key);
  const two = await open({ store: unstorage(far) });
  await assert.rejects(two.session('s'), { code: 'maybe_stale' });
  far.hidden.clear();
  assert.deepEqual(await texts(await two.session('s')), ['a', 'b', 'c']);
});

describe('r48 an unusable store is rejected and unchanged', () => {
  test('a newer layout, and keys of another application', async () => {
    const cases = [
      ['rethread:schema', 'rethread appends 2', 'unsupported_version'],
      ['rethread:schema', 'rethread records 1', 'config_invalid'],
      ['rethread:user', 'x', 'config_invalid'],
    ];
    for (const [key, value, code] of cases) {
      const storage = createStorage();
      await storage.setItemRaw(key, new TextEncoder().encode(value));
      await assert.rejects(
        open({ store: unstorage(storage) }),
        (error) => error.code === code && /unstorage/.test(error.message),
      );
      assert.deepEqual(await storage.getKeys(), [key]);
    }
  });

  test('no storage, a wrong prefix, a guarantee that it cannot give', async () => {
    for (const wrong of [undefined, {}, new Map()]) assert.throws(() => unstorage(wrong), { code: 'config_invalid' });
    assert.throws(() => unstorage(createStorage(), { prefix: 'a:b' }), { code: 'config_invalid' });
    await assert.rejects(open({ store: unstorage(createStorage()), durability: 'strict' }), { code: 'config_invalid' });
    const { driver, end } = await openDriver('unstorage fs', folder());
    await end();
    await open({ store: driver });
  });
});

test('r38 r47 the other side of a conflict is adopted as a branch, in which a run and an append go on', async () => {
  for (const how of ['switchTo', 'run', 'append']) {
    const storage = createStorage();
    const far = stale(storage);
    const one = await (await open({ store: unstorage(storage) })).session('s');
    const two = await (await open({ store: unstorage(far) })).session('s');
    await one.append(message('first'));
    await two.refresh();
    for (const text of ['here 1', 'here 2', 'here 3']) await one.append(message(text));
    for (const key of await storage.getKeys('rethread:append'))
      if (!key.includes('append:s:00000000000001:')) far.hidden.add(key);
    await two.append(message('there'));
    far.hidden.clear();

    await one.refresh();
    const [, conflict] = await one.branches();
    assert.equal(conflict.kind, 'conflict');
    const there = (await one.messages({ branch: conflict.branch })).items;
    if (how === 'switchTo') await one.switchTo(conflict.branch);
    if (how === 'append') await one.append(message('on'), { branch: conflict.branch, expectedRevision: one.revision });
    if (how === 'run') {
      const provider = { dialect: 'openai-chat', url: 'https://model.test/v1', params: { model: 'm' } };
      const answer = { choices: [{ message: { role: 'assistant', content: 'on' }, finish_reason: 'stop' }] };
      const fetch = async () => Response.json(answer);
      await drive(await one.run({ branch: conflict.branch, input: 'and?', provider }), { fetch });
    }
    const added = { switchTo: [], run: ['and?', 'on'], append: ['on'] }[how];
    const listed = await one.branches();
    assert.deepEqual(
      listed.map(({ branch, kind, adopted }) => [branch, kind, adopted]),
      [
        ['main', 'main', undefined],
        ['fork-1', 'fork', conflict.branch],
      ],
    );
    assert.equal(one.branch, how === 'append' ? 'main' : 'fork-1');
    const adopted = (await one.messages({ branch: 'fork-1' })).items;
    assert.deepEqual(
      adopted.map(({ parts }) => parts[0].text),
      ['first', 'there', ...added],
    );
    const { items: main } = await one.messages({ branch: 'main' });
    assert.deepEqual(
      main.map(({ parts }) => parts[0].text),
      ['first', 'here 1', 'here 2', 'here 3'],
    );
    assert.equal(adopted[1].id, there[1].id);
    assert.deepEqual(adopted[1].siblings, { ids: [main[1].id, there[1].id], index: 1 });
    const other = await (await open({ store: unstorage(storage) })).session('s');
    await other.switchTo(conflict.branch);
    assert.deepEqual(await texts(other), ['first', 'there', ...added]);
    assert.equal((await other.branches()).length, 2, 'once');
    await other.deleteMessages([adopted[1].id]);
    const values = await Promise.all((await storage.getKeys()).map((key) => storage.getItemRaw(key)));
    assert.ok(!values.some((value) => Buffer.from(value).includes('there')));
  }
});
