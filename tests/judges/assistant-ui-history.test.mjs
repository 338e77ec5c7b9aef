// r53: the runtime of assistant-ui itself over a session: its tree, failures, two tabs, and what a reload shows.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { threadHistory } from 'rethread/assistant-ui';
import { all, bodyOf, newSession, question, reloaded, shown, threadOf, until, words } from './assistant-ui.mjs';

/** A tab of its own: an object for the same session. */
function otherTab(session) {
  return new Proxy(session, {
    get(target, name) {
      const value = Reflect.get(target, name, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

/** The session with another method. */
const changed = (session, method, replacement) =>
  new Proxy(session, {
    get(target, name) {
      const value = name === method ? replacement : Reflect.get(target, name, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });

const treeOf = async (session) =>
  (await threadHistory(session).load()).messages.map(({ parentId, message }) => [parentId, message.id, words(message)]);
const ids = ({ thread }) => thread.getState().messages.map(({ id }) => id);
const texts = async (session) => (await bodyOf(session)).messages.map(({ content }) => content);

/** What a thread exports, and another one that is loaded from what is stored. */
async function survives(session, chat) {
  const again = await threadOf(threadHistory(await reloaded(session)));
  assert.deepEqual(again.thread.export(), chat.thread.export());
  return again;
}

test('r53 the runtime edits and regenerates, every branch comes back, and the head is the one that is shown', async () => {
  const session = await newSession();
  const chat = await threadOf(threadHistory(session), ['One.', 'Two.', 'Another two.', 'Edited.', 'More.', 'End.']);
  await chat.send('First?');
  await chat.send('Second?');
  const [, one, second] = ids(chat);
  chat.thread.startRun({ parentId: second, sourceId: null, runConfig: {} });
  await chat.isIdle();
  assert.deepEqual(shown(chat), ['First?', 'One.', 'Second?', 'Another two.']);
  await survives(session, chat);
  await chat.send(question('First, edited?'));
  assert.deepEqual(shown(chat), ['First, edited?', 'Edited.']);
  await survives(session, chat);
  // Back to the first branch, which goes on.
  chat.inner.switchToBranch(one);
  assert.deepEqual(shown(chat).slice(0, 2), ['First?', 'One.']);
  await chat.send('Third?');
  assert.equal(shown(chat).at(-1), 'More.');
  const again = await survives(session, chat);
  assert.deepEqual(again.inner.getBranches(second).length, 1);
  assert.deepEqual(again.inner.getBranches(ids(again)[0]).length, 2);
  assert.deepEqual(again.inner.getBranches(ids(again)[3]).length, 2);
  assert.deepEqual(await texts(session), shown(chat), 'the next request has the branch that is shown');
  assert.deepEqual(chat.failed, []);
  assert.equal((await session.branches()).length, 3);
  // A thread that goes on after a reload.
  again.answers.push('End.');
  await again.send('Last?');
  assert.deepEqual(shown(again).slice(-2), ['Last?', 'End.']);
});

const asking = (toolCallId, more = {}) => ({
  type: 'tool-call',
  toolCallId,
  toolName: 'pay',
  args: {},
  argsText: '{}',
  ...more,
});
const pauses = (...calls) => ({ content: calls, status: { type: 'requires-action', reason: 'tool-calls' } });

test('r53 a run that waits is stored, takes its result after a reload, and goes on in the same message', async () => {
  const session = await newSession();
  const chat = await threadOf(threadHistory(session), [pauses(asking('c1'))]);
  await chat.send('Pay.');
  assert.deepEqual(shown(chat), ['Pay.', 'pay=undefined']);
  const again = await survives(session, chat);
  assert.equal(again.thread.getState().messages[1].status.type, 'requires-action');
  const other = await threadOf(threadHistory(session), ['Paid.']);
  other.inner.addToolResult({
    messageId: ids(other)[1],
    toolCallId: 'c1',
    toolName: 'pay',
    result: { paid: 5 },
    isError: false,
  });
  await until(() => shown(other).at(-1).includes('Paid.'));
  await other.isIdle();
  assert.deepEqual(other.failed, []);
  assert.deepEqual(ids(other), ids(chat));
  await survives(session, other);
  assert.deepEqual((await bodyOf(session)).messages.map(({ role, content }) => [role, content ?? null]).slice(1), [
    ['assistant', null],
    ['tool', '{"paid":5}'],
    ['assistant', 'Paid.'],
  ]);
  assert.equal((await session.branches()).length, 1);
});

describe('failures', () => {
  /** Lets the next writes of a session fail. */
  function failing(session, method, count, code = 'quota_exceeded') {
    let left = count;
    return new Proxy(session, {
      get(target, name) {
        const value = Reflect.get(target, name, target);
        if (name === method && left > 0)
          return async () => {
            left -= 1;
            throw Object.assign(new Error('no room'), { code });
          };
        return typeof value === 'function' ? value.bind(target) : value;
      },
    });
  }

  test('r53 a write that failed is reported, and made again before the next one', async () => {
    const session = await newSession();
    const chat = await threadOf(threadHistory(failing(session, 'append', 2)), ['One.', 'Two.']);
    await chat.send('First?');
    assert.deepEqual(
      chat.failed.map(({ operation, error }) => [operation, error.code]),
      [
        ['append', 'quota_exceeded'],
        ['append', 'quota_exceeded'],
      ],
    );
    assert.deepEqual(await all(session), []);
    await chat.send('Second?');
    assert.equal(chat.failed.length, 2);
    await survives(session, chat);
    assert.deepEqual(await texts(session), ['First?', 'One.', 'Second?', 'Two.']);
    assert.equal((await session.branches()).length, 1);
  });

  test('r53 a branch whose beginning fails at any step is begun once', async () => {
    for (const method of ['fork', 'append', 'switchTo']) {
      const session = await newSession();
      const first = await threadOf(threadHistory(session), ['One.', 'Two.']);
      await first.send('First?');
      await first.send('Second?');
      const chat = await threadOf(threadHistory(failing(session, method, 1)), ['Else.']);
      await chat.send(question('Else?', ids(chat)[1]));
      assert.deepEqual([chat.failed.length, chat.failed[0]?.error.code], [1, 'quota_exceeded'], method);
      await survives(session, chat);
      assert.equal((await session.branches()).length, 2, method);
      assert.deepEqual(await texts(session), ['First?', 'One.', 'Else?', 'Else.'], method);
    }
  });

  test('r53 an append whose reply was lost is stored once', async () => {
    const session = await newSession();
    let isLost = true;
    const lossy = new Proxy(session, {
      get(target, name) {
        const value = Reflect.get(target, name, target);
        if (name !== 'append') return typeof value === 'function' ? value.bind(target) : value;
        return async (...given) => {
          const done = await target.append(...given);
          if (isLost) throw Object.assign(new Error('lost'), { code: 'store_error' });
          return done;
        };
      },
    });
    const chat = await threadOf(threadHistory(lossy), ['One.']);
    await chat.send('First?');
    assert.equal(chat.failed.length, 2);
    isLost = false;
    chat.answers.push('Two.');
    await chat.send('Second?');
    await survives(session, chat);
    assert.equal((await all(session)).length, 4);
  });

  test('r53 a message that cannot be stored at all is reported once, and holds up no other', async () => {
    const session = await newSession();
    const history = threadHistory(session);
    const circular = {};
    circular.own = circular;
    const chat = await threadOf(history, [{ content: [{ type: 'text', text: 'x' }], metadata: { custom: circular } }]);
    await chat.send('First?');
    assert.deepEqual(
      chat.failed.map(({ error }) => error.code),
      ['invalid_input'],
    );
    chat.answers.push('Two.');
    await chat.send('Second?');
    assert.equal(chat.failed.length, 1);
    // It follows the nearest message that is stored.
    assert.deepEqual(await texts(session), ['First?', 'Second?', 'Two.']);
  });
});

test('r53 a message that is too large for the store is reported once, and holds up no other', async () => {
  const session = await newSession();
  const small = changed(session, 'append', async (items, ...more) => {
    if (JSON.stringify(items).includes('large')) throw Object.assign(new Error('full'), { code: 'too_large' });
    return session.append(items, ...more);
  });
  const chat = await threadOf(threadHistory(small), ['large', 'Two.']);
  await chat.send('First?');
  await chat.send('Second?');
  assert.deepEqual(
    chat.failed.map(({ error }) => error.code),
    ['too_large'],
  );
  assert.deepEqual(await texts(session), ['First?', 'Second?', 'Two.']);
});

describe('two tabs', () => {
  test('r53 a change of several branches is whole if another tab writes in between', async () => {
    const session = await newSession();
    const chat = await threadOf(threadHistory(session), ['One.', 'Two.', 'Else.']);
    await chat.send('First?');
    const [, one] = ids(chat);
    await chat.send('Second?');
    await chat.send(question('Else?', one));
    let isFirst = true;
    const tab = changed(session, 'append', async (...given) => {
      const done = await session.append(...given);
      if (isFirst) await session.append([{ role: 'user', parts: [{ type: 'text', text: 'other' }] }]);
      isFirst = false;
      return done;
    });
    const { parentId, message } = chat.inner.getMessageById(one);
    const liked = { ...message, metadata: { ...message.metadata, custom: { liked: true } } };
    await threadHistory(tab).update({ parentId, message: liked });
    for (const { branch } of await session.branches())
      assert.ok(JSON.stringify(await all(session, branch)).includes('liked'), branch);
  });

  test('r53 two tabs that continue one message make two branches, and nothing is lost', async () => {
    const session = await newSession();
    const one = await threadOf(threadHistory(session), ['One.', 'A.']);
    await one.send('First?');
    const two = await threadOf(threadHistory(otherTab(session)), ['B.']);
    await Promise.all([one.send('Here?'), two.send('There?')]);
    assert.deepEqual([one.failed, two.failed], [[], []]);
    const tree = await treeOf(session);
    assert.equal(tree.length, 6);
    const [, , ...rest] = tree;
    const shared = ids(one)[1];
    for (const [text, answer] of [
      ['Here?', 'A.'],
      ['There?', 'B.'],
    ]) {
      const asked = rest.find((item) => item[2] === text);
      assert.equal(asked[0], shared);
      assert.equal(rest.find((item) => item[2] === answer)[0], asked[1]);
    }
    assert.equal((await session.branches()).length, 2);
  });

  test('r53 one update in three tabs is stored once', async () => {
    const session = await newSession();
    const chat = await threadOf(threadHistory(session), [pauses(asking('c1'), asking('c2'))]);
    await chat.send('Pay.');
    const [{ parentId, message }] = (await threadHistory(session).load()).messages.slice(1);
    const done = { ...message, content: [asking('c1', { result: 'x' }), asking('c2')] };
    const tabs = [1, 2, 3].map(() => threadHistory(otherTab(session)));
    await Promise.all(tabs.map((tab) => tab.update({ parentId, message: done })));
    assert.deepEqual((await tabs[0].load()).messages[1].message, done);
    assert.equal((await session.branches()).length, 1);
    assert.equal((await session.invocations({ status: 'ok' })).items.length, 1);
    assert.equal((await all(session)).length, 3);
  });

  test('r53 the session may answer a call, and a run of rethread may go on with the thread', async () => {
    const session = await newSession();
    const chat = await threadOf(threadHistory(session), [pauses(asking('c1'))]);
    await chat.send('Pay.');
    await session.answer('c1', { type: 'tool_result', content: 'paid elsewhere' });
    await session.append([{ role: 'assistant', parts: [{ type: 'text', text: 'By another program.' }] }]);
    const again = await threadOf(threadHistory(session), ['And here.']);
    assert.deepEqual(shown(again), ['Pay.', 'pay="paid elsewhere"', 'By another program.']);
    await again.send('Thanks.');
    assert.deepEqual(again.failed, []);
    await survives(session, again);
    assert.equal((await session.branches()).length, 1);
  });
});

test('r53 a message of the other side of a conflict is changed in a branch of its own', async () => {
  const session = await newSession();
  const chat = await threadOf(threadHistory(session), ['One.', 'Else.']);
  await chat.send('First?');
  const [first] = ids(chat);
  await chat.send(question('Else?', first));
  const { parentId, message } = chat.inner.getMessageById(ids(chat).at(-1));
  const { branch } = session;
  await session.switchTo('main');
  const merged = changed(session, 'branches', async () =>
    (await session.branches()).map((item) => (item.branch === branch ? { ...item, kind: 'conflict' } : item)),
  );
  const liked = { ...message, metadata: { ...message.metadata, custom: { liked: true } } };
  await threadHistory(merged).update({ parentId, message: liked });
  const { messages } = await threadHistory(merged).load();
  assert.deepEqual(messages.find((item) => item.message.id === message.id).message, liked);
});

describe('delete', () => {
  test('r53 a message is erased from every branch, what follows it stays, and a second time changes nothing', async () => {
    const session = await newSession();
    const history = threadHistory(session);
    const chat = await threadOf(history, ['One.', 'Two.', 'Else.']);
    await chat.send('First?');
    await chat.send('Second?');
    const [first, one, second] = ids(chat);
    await chat.send(question('Else?', one));
    const item = { parentId: null, message: chat.inner.getMessageById(one).message };
    await chat.inner.deleteMessage(one);
    await survives(session, chat);
    await history.delete([item]);
    await history.delete([item, { parentId: null, message: { id: 'nobody' } }]);
    assert.deepEqual(
      (await treeOf(session)).map(([, , text]) => text),
      ['First?', 'Second?', 'Two.', 'Else?', 'Else.'],
    );
    assert.ok(!(await session.exportSession?.())?.includes('One.'));
    // A tab that still shows the message continues after it.
    const late = threadHistory(session);
    await late.append({ parentId: second, message: { ...item.message, id: 'late' } });
    await late.append({ parentId: one, message: { ...item.message, id: 'orphan' } });
    const parents = Object.fromEntries((await treeOf(session)).map(([parentId, id]) => [id, parentId]));
    assert.deepEqual([parents.late, parents.orphan], [second, first]);
  });

  test('r53 an answer is erased with its calls and results, also late ones', async () => {
    const session = await newSession();
    const history = threadHistory(session);
    const chat = await threadOf(history, [pauses(asking('c1'))]);
    await chat.send('Pay.');
    const { parentId, message } = chat.inner.getMessageById(ids(chat)[1]);
    await chat.send('Well?');
    await history.update({ parentId, message: { ...message, content: [asking('c1', { result: 'secret' })] } });
    await history.delete([{ parentId, message }]);
    assert.equal((await session.invocations({})).items.length, 0);
    assert.ok(!new TextDecoder().decode(await session.serialize()).includes('secret'));
    // It may be written again.
    await history.update({ parentId, message });
    assert.equal((await treeOf(session)).filter(([, id]) => id === message.id).length, 1);
  });

  test('r53 what a tab continues that another one has erased follows what is left', async () => {
    const session = await newSession();
    const chat = await threadOf(threadHistory(otherTab(session)), ['One.', 'Two.']);
    await chat.send('First?');
    const [, one] = ids(chat);
    await threadHistory(session).delete([{ parentId: null, message: { id: one } }]);
    await chat.send('Second?');
    assert.deepEqual(chat.failed, []);
    assert.deepEqual(
      (await treeOf(session)).map(([, , text]) => text),
      ['First?', 'Second?', 'Two.'],
    );
    assert.equal((await session.branches()).length, 1);
  });

  test('r53 while a run is under way nothing is erased', async () => {
    const session = await newSession();
    const history = threadHistory(session);
    const chat = await threadOf(history, ['One.']);
    await chat.send('First?');
    const provider = { dialect: 'openai-chat', url: 'http://127.0.0.1:1/', params: { model: 'm' } };
    const run = await session.run({ provider, input: 'Run.' });
    const [{ parentId, message }] = (await history.load()).messages;
    await assert.rejects(history.delete([{ parentId, message }]), { code: 'busy' });
    await run.cancel();
    await history.delete([{ parentId, message }]);
    assert.equal((await treeOf(session)).length, 1);
  });
});

test('r53 an append to a long thread reads only its end', async () => {
  const session = await newSession();
  const history = threadHistory(session);
  const say = (at) => ({
    parentId: at ? `m${at - 1}` : null,
    message: {
      id: `m${at}`,
      role: 'user',
      createdAt: new Date(),
      content: [{ type: 'text', text: `${at}` }],
      attachments: [],
      metadata: { custom: {} },
    },
  });
  const read = [];
  const counting = new Proxy(session, {
    get(target, name) {
      const value = Reflect.get(target, name, target);
      if (name !== 'messages') return typeof value === 'function' ? value.bind(target) : value;
      return async (options) => {
        const page = await target.messages(options);
        read.push(page.items.length);
        return page;
      };
    },
  });
  for (let at = 0; at < 150; at += 1) await history.append(say(at));
  const other = threadHistory(counting);
  await other.append(say(150));
  read.length = 0;
  await other.append(say(151));
  await other.append(say(152));
  assert.deepEqual(read, [100, 100]);
  assert.equal((await history.load()).messages.length, 153);
});
