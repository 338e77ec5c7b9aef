// `rethread/tanstack-ai`: a store that fails, and several pages of one chat.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { chatPersistence } from 'rethread/tanstack-ai';
import {
  answer,
  found,
  gate,
  loadedPage,
  says,
  settled,
  sharedStore,
  shown,
  started,
  stored,
  until,
} from './tanstack.mjs';

const foundTexts = async (store) => shown(await found(store));
const branchesOf = async (store) => (await (await store.session('chat')).branches()).length;
const user = (id) => ({ id, role: 'user', parts: [{ type: 'text', content: id }] });
const codes = (errors) => [
  ...new Set(errors.map(({ error, operation, id }) => `${id} ${operation} ${error.name} ${error.code}`)),
];

describe('a store that fails', { timeout: 30_000 }, () => {
  test('r53 TanStack: a write that fails is reported with its code, the chat goes on, and a later one stores all', async () => {
    const { tab, fails } = sharedStore();
    const { client, kept, errors } = await loadedPage(await tab(), {
      answers: [answer('r1', says('a1', 'One.')), answer('r2', says('a2', 'Two.'))],
    });
    fails.writes = true;
    await client.sendMessage('hi');
    assert.deepEqual(shown(client.getMessages()), ['user: hi', 'assistant: One.']);
    await until(() => errors.length > 1);
    assert.deepEqual(codes(errors), ['chat setItem RethreadError quota_exceeded']);
    await assert.rejects(kept.flush(), { name: 'RethreadError', code: 'quota_exceeded' });
    await assert.rejects(kept.setItem('chat', { messages: client.getMessages() }), { code: 'quota_exceeded' });
    fails.writes = false;
    await client.sendMessage('more');
    const all = ['user: hi', 'assistant: One.', 'user: more', 'assistant: Two.'];
    await until(async () => (await stored(await tab())).length === 4);
    assert.deepEqual([await foundTexts(await tab()), await branchesOf(await tab())], [all, 1]);
  });

  test('r53 TanStack: a write that fails is tried again without another change', async () => {
    const { tab, fails } = sharedStore();
    const { client, errors } = await loadedPage(await tab(), { answers: [answer('r1', says('a1', 'One.'))] });
    fails.writes = true;
    await client.sendMessage('hi');
    await until(() => errors.length > 1);
    fails.writes = false;
    await until(async () => (await found(await tab())).length === 2);
  });

  test('r53 TanStack/ai#1331 a chat that could not be loaded is not overwritten, nor removed', async () => {
    const { tab, fails } = sharedStore();
    const first = await loadedPage(await tab(), { answers: [answer('r1', says('a1', 'One.'))] });
    await first.client.sendMessage('hi');
    await until(async () => (await stored(await tab())).length === 2);
    const store = await tab();
    fails.reads = true;
    const second = await loadedPage(store, { answers: [answer('r2', says('a2', 'Two.'))] });
    assert.deepEqual(second.client.getMessages(), []);
    assert.match(codes(second.errors)[0], /^chat getItem RethreadError /);
    second.client.stop();
    await assert.rejects(second.kept.removeItem('chat'), { name: 'RethreadError' });
    fails.reads = false;
    await second.client.sendMessage('more');
    await until(async () => (await stored(await tab())).length === 4);
    assert.deepEqual(await foundTexts(await tab()), ['user: hi', 'assistant: One.', 'user: more', 'assistant: Two.']);
  });

  test('r53 TanStack: a session that was deleted elsewhere begins anew, and old messages do not come back', async () => {
    const { tab } = sharedStore();
    const { client, errors } = await loadedPage(await tab(), {
      answers: [answer('r1', says('a1', 'One.')), answer('r2', says('a2', 'Two.'))],
    });
    await client.sendMessage('hi');
    await until(async () => (await stored(await tab())).length === 2);
    await (await tab()).deleteSession('chat');
    await client.sendMessage('more');
    await until(async () => (await found(await tab())).length > 1);
    assert.deepEqual(await foundTexts(await tab()), ['user: more', 'assistant: Two.']);
    assert.deepEqual(errors, []);
  });
});

describe('several pages of a chat', { timeout: 30_000 }, () => {
  test('r53 TanStack: two pages that write at once lose nothing, and nothing is there twice', async () => {
    const { tab } = sharedStore();
    const begin = await loadedPage(await tab(), { answers: [answer('r0', says('a0', 'Yes?'))] });
    await begin.client.sendMessage('hi');
    await until(async () => (await stored(await tab())).length === 2);
    const pages = await Promise.all(
      ['b', 'c', 'd'].map(async (name) =>
        loadedPage(await tab(), {
          answers: [1, 2].map((at) => answer(`r${name}${at}`, says(`a${name}${at}`, `Answer ${name}${at}`))),
        }),
      ),
    );
    for (const at of [1, 2])
      await Promise.all(pages.map(({ client }, place) => client.sendMessage(`Question ${'bcd'[place]}${at}`)));
    await until(async () => (await stored(await tab())).length === 14);
    const all = await foundTexts(await tab());
    const expected = ['b', 'c', 'd'].flatMap((name) =>
      [1, 2].flatMap((at) => [`user: Question ${name}${at}`, `assistant: Answer ${name}${at}`]),
    );
    assert.deepEqual(all.slice(0, 2), ['user: hi', 'assistant: Yes?']);
    assert.deepEqual(all.slice(2).sort(), expected.sort());
    // Each page's messages are in its order.
    for (const { client } of pages) {
      const own = shown(client.getMessages());
      assert.deepEqual(
        all.filter((text) => own.includes(text)),
        own,
      );
    }
    assert.equal(await branchesOf(await tab()), 1);
    assert.deepEqual(
      pages.flatMap(({ errors }) => errors),
      [],
    );
  });

  test('r53 TanStack: an answer that arrives in one page is in another one, which goes on before it has ended', async () => {
    const { tab } = sharedStore();
    const held = gate();
    const [begun, one, two, end] = says('a1', 'It is ', 'a cat.');
    const first = await loadedPage(await tab(), {
      answers: [
        [started('r1'), begun, one, held.wait, two, end, { type: 'RUN_FINISHED', runId: 'r1', threadId: 'chat' }],
      ],
    });
    const done = first.client.sendMessage('What?');
    await until(async () => (await foundTexts(await tab())).at(-1) === 'assistant: It is ');
    const second = await loadedPage(await tab(), { answers: [answer('r2', says('a2', 'Well.'))] });
    assert.deepEqual(shown(second.client.getMessages()), ['user: What?', 'assistant: It is ']);
    await settled(50);
    assert.equal((await stored(await tab())).length, 1);
    await second.client.sendMessage('And?');
    await until(async () => (await found(await tab())).length === 4);
    held.open();
    await done;
    await until(async () => (await foundTexts(await tab()))[1] === 'assistant: It is a cat.');
    const all = ['user: What?', 'assistant: It is a cat.', 'user: And?', 'assistant: Well.'];
    assert.deepEqual([await foundTexts(await tab()), await branchesOf(await tab())], [all, 1]);
  });

  test('r53 TanStack: of two pages that are closed in their answers both answers are kept', async () => {
    const { tab } = sharedStore();
    const [first, second] = [chatPersistence(await tab()), chatPersistence(await tab())];
    const partial = (id) => ({ id, role: 'assistant', parts: [{ type: 'text', content: id }] });
    for (const add of [user, partial])
      for (const [kept, name] of [
        [first, 'a'],
        [second, 'b'],
      ])
        await kept.setItem('chat', { messages: [user(`q${name}`), ...(add === partial ? [partial(`p${name}`)] : [])] });
    const all = ['user: qa', 'user: qb', 'assistant: pa', 'assistant: pb'];
    assert.deepEqual(await foundTexts(await tab()), all);
    assert.equal((await stored(await tab())).length, 2);
    const third = chatPersistence(await tab());
    await third.setItem('chat', { messages: [user('late')] });
    assert.deepEqual(await foundTexts(await tab()), [...all, 'user: late']);
    assert.deepEqual(
      (await stored(await tab())).map(({ status }) => status),
      ['complete', 'complete', 'stopped', 'stopped', 'complete'],
    );
  });

  test('r53 TanStack: another page that writes while a branch begins makes no second one', async () => {
    const { tab } = sharedStore();
    const [store, other] = [await tab(), await (await tab()).session('chat')];
    let isFirst = false;
    const late = (session) =>
      new Proxy(session, {
        get(target, name) {
          const value = Reflect.get(target, name, target);
          if (name === 'append' && isFirst)
            return async (...given) => {
              isFirst = false;
              await other.refresh();
              await other.append([{ role: 'user', parts: [{ type: 'text', text: 'other' }] }]);
              return target.append(...given);
            };
          return typeof value === 'function' ? value.bind(target) : value;
        },
      });
    const kept = chatPersistence({ session: async (id) => late(await store.session(id)) });
    const said = { id: 'a', role: 'assistant', parts: [{ type: 'text', content: 'a' }] };
    for (const messages of [[user('u')], [user('u'), said]]) await kept.setItem('chat', { messages });
    await kept.flush();
    isFirst = true;
    await kept.setItem('chat', { messages: [user('u'), user('v')] });
    assert.equal(isFirst, false);
    assert.deepEqual((await foundTexts(await tab())).at(-1), 'user: v');
    assert.equal(await branchesOf(await tab()), 2);
  });

  test('r53 TanStack: a message that another page has cleared does not come back', async () => {
    const { tab } = sharedStore();
    const [first, second] = [chatPersistence(await tab()), chatPersistence(await tab())];
    await first.setItem('chat', { messages: [user('u1'), user('u2')] });
    const { messages } = await second.getItem('chat');
    await second.setItem('chat', { messages });
    await first.removeItem('chat');
    await second.setItem('chat', { messages: [...messages, user('u3')] });
    assert.deepEqual(await foundTexts(await tab()), ['user: u3']);
    await second.setItem('chat', { messages: [...structuredClone(messages), user('u3'), user('u4')] });
    assert.deepEqual(await foundTexts(await tab()), ['user: u3', 'user: u4']);
  });
});
