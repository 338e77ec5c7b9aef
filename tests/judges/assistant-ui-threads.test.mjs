// r53: the sessions of a store as the threads of assistant-ui.

import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { RemoteThreadListThreadListRuntimeCore } from '@assistant-ui/core/react';
import { open } from 'rethread';
import { threadHistory, threadList } from 'rethread/assistant-ui';
import { question, shown, threadOf, until } from './assistant-ui.mjs';

// The package is that of assistant-ui's core.
const requireOfCore = createRequire(import.meta.resolve('@assistant-ui/core'));
const { AssistantMessageStream } = await import(pathToFileURL(requireOfCore.resolve('assistant-stream')).href);

/** The titles that assistant-ui reads of a stream. */
async function titlesOf(stream) {
  const titles = [];
  for await (const { parts } of AssistantMessageStream.fromAssistantStream(stream)) titles.push(parts[0]?.text ?? '');
  return [...new Set(titles)].filter(Boolean);
}

async function pages(list) {
  const read = [];
  let after;
  do {
    const { threads, nextCursor } = await list.list({ after });
    read.push(threads.map(({ remoteId }) => remoteId));
    after = nextCursor;
  } while (after !== undefined);
  return read;
}

test('r53 threads are created, renamed, archived and deleted, and are there after a reload', async () => {
  const store = await open();
  const list = threadList(store);
  assert.deepEqual(await list.list(), { threads: [] });
  assert.deepEqual(await list.initialize('t1', { custom: { topic: 'cats' } }), {
    remoteId: 't1',
    externalId: undefined,
  });
  const created = { remoteId: 't1', status: 'regular', custom: { topic: 'cats' } };
  assert.deepEqual(await list.fetch('t1'), created);
  const chat = await threadOf(threadHistory(await store.session('t1')), ['One.']);
  await chat.send('First?');
  await list.rename('t1', 'About cats');
  await list.archive('t1');
  // A thread that is there keeps what it has.
  await list.initialize('t1', { custom: { topic: 'dogs' } });
  const { lastMessageAt, ...archived } = await list.fetch('t1');
  assert.deepEqual(archived, { ...created, status: 'archived', title: 'About cats' });
  assert.ok(lastMessageAt instanceof Date && Date.now() - lastMessageAt.getTime() < 60_000);
  await list.updateCustom('t1', { topic: 'birds' });
  await list.unarchive('t1');
  assert.deepEqual((await list.list()).threads, [
    { ...archived, status: 'regular', custom: { topic: 'birds' }, lastMessageAt },
  ]);
  await list.updateCustom('t1', undefined);
  assert.equal('custom' in (await list.fetch('t1')), false);
  await list.delete('t1');
  await list.delete('t1');
  assert.deepEqual(await list.list(), { threads: [] });
  for (const change of [list.fetch, list.archive, list.unarchive, list.updateCustom])
    await assert.rejects(change('t1', {}), { code: 'not_found' });
  await assert.rejects(list.rename('t1', 'Again'), { code: 'not_found' });
  assert.deepEqual(await list.list(), { threads: [] }, 'nothing is created by a change');
});

test('r53 the list is read in pages by cursor, of one channel if one is given', async () => {
  const store = await open();
  const list = threadList(store, { limit: 2, channel: 'support' });
  for (const id of ['a', 'b', 'c', 'd', 'e']) {
    await list.initialize(id);
    await (await store.session(id)).append([{ role: 'user', parts: [{ type: 'text', text: id }] }]);
  }
  await threadList(store).initialize('other');
  await list.archive('b');
  assert.deepEqual((await pages(list)).flat().sort(), ['a', 'b', 'c', 'd', 'e']);
  assert.deepEqual(
    (await pages(list)).map(({ length }) => length),
    [2, 2, 1],
  );
  assert.equal((await pages(threadList(store))).flat().length, 6);
  await assert.rejects(list.fetch('other'), { code: 'not_found' });
});

test('r53 a title is made by the option, stored before its stream ends, and is none without it', async () => {
  const store = await open();
  const given = [];
  const title = async (messages) => {
    given.push(messages);
    return 'A title';
  };
  const list = threadList(store, { title });
  await list.initialize('t');
  assert.deepEqual(await titlesOf(await list.generateTitle('t', [question('hi')])), ['A title']);
  assert.equal(given[0][0].content[0].text, 'hi');
  assert.equal((await list.fetch('t')).title, 'A title');
  assert.deepEqual(await titlesOf(await threadList(store).generateTitle('t', [])), []);
  assert.deepEqual(await titlesOf(await threadList(store, { title: () => null }).generateTitle('t', [])), []);
  assert.equal((await list.fetch('t')).title, 'A title');
  const failing = threadList(store, {
    title() {
      throw new Error('no model');
    },
  });
  await assert.rejects(failing.generateTitle('t', []), /no model/);
});

test('r53 the list of threads of assistant-ui shows, switches and pages the sessions', async () => {
  const store = await open();
  const adapter = threadList(store, { limit: 2 });
  for (const id of ['a', 'b', 'c']) await adapter.initialize(id);
  await adapter.archive('a');
  const core = new RemoteThreadListThreadListRuntimeCore(
    { adapter, runtimeHook: () => null },
    { getModelContext: () => ({}) },
  );
  await core.getLoadThreadsPromise();
  const known = () => [...core.threadIds, ...core.archivedThreadIds].sort();
  assert.equal(known().length, 2);
  await core.loadMore();
  assert.deepEqual(known(), ['a', 'b', 'c']);
  assert.deepEqual(core.archivedThreadIds, ['a']);
  await core.rename('b', 'Bees');
  await core.archive('b');
  await core.unarchive('a');
  await core.delete('c');
  await until(() => known().length === 2);
  assert.deepEqual(
    (await adapter.list()).threads.map(({ remoteId, status, title }) => [remoteId, status, title]).sort(),
    [
      ['a', 'regular', undefined],
      ['b', 'archived', 'Bees'],
    ],
  );
});

/** What the hook of a thread on a page gets of assistant-ui. */
function pageOf(id) {
  const item = {
    source: 'root',
    state: { id, remoteId: undefined },
    getState: () => item.state,
    async initialize() {
      item.state = { id, remoteId: id };
      return { remoteId: id };
    },
  };
  return { threadListItem: item, threads: { getState: () => ({ threadItems: [] }) } };
}

test('r53 each thread on a page has the history of its session, and writes one after the other', async () => {
  const store = await open();
  const page = pageOf('t');
  const list = threadList(store, { useAui: () => page });
  const { history } = list.unstable_useAdapters();
  assert.equal(list.unstable_useAdapters().history, history, 'a hook returns one object');
  assert.deepEqual(await history.load(), { messages: [] });
  assert.deepEqual(await list.list(), { threads: [] }, 'a thread without messages is not stored');
  const chat = await threadOf(history, ['One.', 'Two.']);
  const formatted = history.withFormat({ format: 'ai-sdk/v6', decode: (entry) => entry, getId: ({ id }) => id });
  await chat.send('First?');
  // The runtime does not wait for its own writes.
  await Promise.all([chat.inner.append(question('Second?', chat.thread.getState().messages.at(-1).id)), chat.isIdle()]);
  await chat.isIdle();
  assert.deepEqual(shown(chat), ['First?', 'One.', 'Second?', 'Two.']);
  assert.deepEqual(shown(await threadOf(history)), shown(chat));
  assert.equal((await (await store.session('t')).branches()).length, 1);
  const shownIds = chat.thread.getState().messages.map(({ id }) => id);
  // What is pinned stays with its thread when the page shows another one.
  await formatted.load();
  page.threadListItem = pageOf('other').threadListItem;
  assert.equal((await history.load()).messages.length, 0);
  await formatted.delete([{ message: { id: shownIds[3] } }]);
  page.threadListItem = pageOf('t').threadListItem;
  await page.threadListItem.initialize();
  assert.equal((await history.load()).messages.length, 3);
});

test('r53 a thread that another tab has deleted is not created again by what is written to it', async () => {
  const store = await open();
  const page = pageOf('t');
  const list = threadList(store, { useAui: () => page });
  await list.initialize('t');
  const { history } = list.unstable_useAdapters();
  const chat = await threadOf(history, ['One.', 'Two.']);
  await chat.send('First?');
  await store.deleteSession('t');
  await chat.inner.append(question('Second?', chat.thread.getState().messages.at(-1).id)).catch(() => {});
  await until(() => chat.failed.length === 2);
  assert.deepEqual(
    chat.failed.map(({ error }) => error.code),
    ['not_found', 'not_found'],
  );
  assert.deepEqual(await list.list(), { threads: [] });
});

test('r53 what is no store, and unknown options, are refused', async () => {
  const store = await open();
  assert.throws(() => threadList({}), { code: 'config_invalid' });
  assert.throws(() => threadList(store, { titel: () => 'x' }), { code: 'config_invalid' });
  assert.throws(() => threadList(store, { title: 'x' }), { code: 'config_invalid' });
  assert.throws(() => threadList(store, { useAui: true }), { code: 'config_invalid' });
  await assert.rejects(threadList(store, { limit: 0 }).list(), { code: 'config_invalid' });
  assert.deepEqual(shown(await threadOf(threadHistory(await store.session('x')))), []);
});
