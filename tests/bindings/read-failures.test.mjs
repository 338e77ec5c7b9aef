// Stores that fail to read a part of a session, or all of it (R7).

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { open } from 'rethread';
import { MemoryLogStore } from '../packaging/projects/store/memory-log-store.js';

/** A store whose reads of a log fail if they would return a record that `isLost` names. */
class FailingStore extends MemoryLogStore {
  isLost = () => false;
  isDead = false;
  appends = 0;

  read(id, query) {
    const records = super.read(id, query);
    const fails =
      this.isDead || (query.table === 'log' && records.some(({ key, lastKey = key }) => this.isLost(key, lastKey)));
    if (fails) throw Object.assign(new Error('a sector is gone'), { code: 'store_error' });
    return records;
  }

  head(id) {
    if (this.isDead) throw Object.assign(new Error('nobody listens'), { code: 'unavailable' });
    return super.head(id);
  }

  sessions(query) {
    if (this.isDead) throw Object.assign(new Error('nobody listens'), { code: 'unavailable' });
    return super.sessions(query);
  }

  append(...batch) {
    this.appends += 1;
    return super.append(...batch);
  }
}

const said = (text) => [
  { role: 'user', parts: [{ type: 'text', text }] },
  { role: 'assistant', parts: [{ type: 'text', text: `re ${text}` }] },
];
const textsOf = (messages) =>
  messages.map(({ parts }) => parts[0].text.split(' ').slice(0, 2).join(' ')).filter((text) => !text.startsWith('re'));
const request = { dialect: 'openai-chat', params: { model: 'm' } };
const sentBy = async (session) => {
  const { body, report } = await session.render(request);
  const { messages } = JSON.parse(new TextDecoder().decode(body));
  return {
    texts: messages.filter(({ role }) => role === 'user').map(({ content }) => content.split(' ')[0]),
    report: report.map(({ code }) => code),
  };
};
const firstWords = (messages) => textsOf(messages).map((text) => text.split(' ')[0]);

async function filled(store, count, size = 10) {
  const opened = await open({ store });
  const session = await opened.session('s');
  for (let at = 0; at < count; at += 1) await session.append(said(`${at} ${'x'.repeat(size)}`));
  await opened.close();
}
const range = (count, ...lost) => [...Array(count).keys()].filter((at) => !lost.includes(at)).map(String);

for (const [name, count, size] of [
  ['a small session', 20, 10],
  ['a session that is opened by its end', 200, 4000],
]) {
  test(`r07 ${name} of which a record cannot be read shows the rest, says so, writes nothing, and heals`, async () => {
    const store = new FailingStore();
    store.close = () => {};
    await filled(store, count, size);
    const lost = [...store.stored.get('s').records.values()].find(
      ({ table, key, lastKey = key }) => table === 'log' && key <= 3 && lastKey >= 3,
    );
    const gone = range(count)
      .slice(lost.key, (lost.lastKey ?? lost.key) + 1)
      .map(Number);
    store.isLost = (key, lastKey) => key <= 3 && lastKey >= 3;
    const warnings = [];
    const opened = await open({ store, onWarning: (finding) => warnings.push(finding) });
    const session = await opened.session('s', { title: 'not stored' });
    const view = session.view();
    const rest = range(count, ...gone);
    assert.ok(rest.length > 0 && rest.length < count);
    const { items } = await session.messages({ limit: 1000 });
    assert.deepEqual(firstWords(items), rest);
    assert.deepEqual(await sentBy(session), { texts: rest, report: ['read_failed'] });
    const snapshot = view.getSnapshot();
    assert.deepEqual([snapshot.loading, snapshot.readError?.code, snapshot.hasOlder], [false, 'store_error', true]);
    assert.match(snapshot.readError.message, /a sector is gone/);
    assert.ok(firstWords(snapshot.messages).length > 0);
    assert.deepEqual(
      warnings.map(({ code }) => code),
      ['read_failed'],
      'reported once',
    );
    assert.match(warnings[0].message, /failed to read \d+ log records of session "s".*a sector is gone/);
    const status = await opened.status();
    assert.deepEqual([status.state, status.findings.map(({ code }) => code)], ['degraded', ['read_failed']]);

    // Whatever is written onto a part could be doubled, or lose its call.
    const { appends } = store;
    const rejected = { code: 'store_error', message: /a sector is gone/ };
    await assert.rejects(session.append(said('lost')), rejected);
    await assert.rejects(session.run({ provider: request, input: 'lost' }), rejected);
    await assert.rejects(session.compact({ summarize: () => 'short' }), rejected);
    await assert.rejects(session.clear(), rejected);
    await assert.rejects(session.refresh(), rejected);
    await assert.rejects(session.serialize(), rejected);
    assert.equal(store.appends, appends);

    // The same session object, asked again.
    assert.deepEqual(firstWords((await (await opened.session('s')).messages({ limit: 1000 })).items), rest);
    let changes = 0;
    session.subscribe(() => {
      changes += 1;
    });
    store.isLost = () => false;
    await session.append(said(`${count}`));
    assert.ok(changes > 0);
    assert.deepEqual(firstWords((await session.messages({ limit: 1000 })).items), range(count + 1));
    assert.deepEqual(await sentBy(session), { texts: range(count + 1), report: [] });
    assert.equal(view.getSnapshot().readError, undefined);
    assert.deepEqual(await opened.status().then(({ state, findings }) => [state, findings]), ['ready', []]);
    assert.equal(warnings.length, 1);

    const again = await (await open({ store })).session('s');
    const { items: stored } = await again.messages({ limit: 1000 });
    assert.deepEqual(firstWords(stored), range(count + 1));
    assert.deepEqual(
      stored.map(({ seq }) => seq),
      [...stored.keys()],
      'numbering goes on',
    );
  });
}

test('r07 an open session of a store that died shows what it has, says so, and heals', async () => {
  const store = new FailingStore();
  const warnings = [];
  const opened = await open({ store, onWarning: (finding) => warnings.push(finding.code) });
  const session = await opened.session('s');
  for (const at of range(3)) await session.append(said(at));
  const view = session.view();
  view.getSnapshot();
  store.isDead = true;
  const same = await opened.session('s');
  assert.deepEqual(firstWords((await same.messages()).items), range(3));
  assert.deepEqual((await sentBy(same)).texts, range(3));
  assert.deepEqual([view.getSnapshot().readError?.code, view.getSnapshot().messages.length], ['unavailable', 6]);
  const status = await opened.status();
  assert.deepEqual(
    [status.state, status.findings.map(({ code }) => code)],
    ['degraded', ['read_failed', 'read_failed']],
  );
  assert.deepEqual(warnings, ['read_failed']);
  await assert.rejects(session.refresh(), { code: 'unavailable' });
  // Nothing of it can be read: an error, not an empty chat.
  await assert.rejects(opened.session('other'), { code: 'unavailable' });
  await assert.rejects((await open({ store })).session('s'), { code: 'unavailable' });
  store.isDead = false;
  await session.refresh();
  assert.deepEqual([view.getSnapshot().readError, (await opened.status()).state], [undefined, 'ready']);
});

test('r07 a session of which no record can be read is an error, not an empty chat', async () => {
  const store = new FailingStore();
  store.close = () => {};
  await filled(store, 5);
  store.isLost = () => true;
  const opened = await open({ store });
  await assert.rejects(opened.session('s'), { code: 'store_error', message: /a sector is gone/ });
  store.isLost = () => false;
  assert.equal((await (await opened.session('s')).messages()).items.length, 10);
});
