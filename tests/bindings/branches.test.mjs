// Branches through JavaScript: edits, other answers, forks, siblings (R38, R57).

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { open } from 'rethread';
import { drive } from 'rethread/host';
import { laneOf } from '../browser/page.mjs';
import { startStandIn } from '../stand-in/server.mjs';
import { keyValueService } from './key-value-service.mjs';

let standIn;
before(async () => {
  standIn = await startStandIn();
});
after(() => standIn.close());

/** A session with a question and its answer, and what asks more. */
async function chat(name) {
  const lane = laneOf(standIn.url, name);
  await lane.script(Array.from({ length: 9 }, (_, at) => ({ text: `Answer ${at + 1}.` })));
  const client = await open({ store: 'memory' });
  const session = await client.session('s');
  const provider = { dialect: 'openai-chat', url: lane.chat, params: { model: 'm' } };
  const ask = async (request) => (await drive(await session.run({ provider, ...request }))).result;
  return { lane, client, session, provider, ask };
}

const texts = (messages) => messages.map(({ parts }) => parts.map(({ text }) => text).join(' '));
const stored = async (session, branch) => (await session.messages({ branch })).items;

test('r38 r57 a question is edited, an answer is asked for again, and each stays', { timeout: 20_000 }, async () => {
  const { session, ask } = await chat('branches-edit');
  const first = await ask({ input: 'One?' });
  assert.deepEqual([first.status, first.branch, session.branch], ['finished', 'main', 'main']);
  const [question, answer] = await stored(session);
  assert.deepEqual(question.siblings, { ids: [question.id], index: 0 });

  const again = await ask({ replace: answer.id });
  assert.deepEqual([again.status, again.branch, session.branch], ['finished', 'fork-1', 'fork-1']);
  const [, other] = await stored(session);
  assert.deepEqual(texts(await stored(session)), ['One?', 'Answer 2.']);
  assert.deepEqual(other.siblings, { ids: [answer.id, other.id], index: 1 });

  const edited = await ask({ replace: question.id, input: 'Uno?' });
  assert.equal(edited.branch, 'fork-2');
  const { branch, messages } = session.view().getSnapshot();
  assert.deepEqual([branch, ...texts(messages)], ['fork-2', 'Uno?', 'Answer 3.']);
  assert.deepEqual(messages[0].siblings, { ids: [question.id, messages[0].id], index: 1 });

  await session.switchTo(answer.id);
  assert.equal(session.branch, 'main');
  const shown = session.view().getSnapshot().messages;
  assert.deepEqual(texts(shown), ['One?', 'Answer 1.']);
  assert.deepEqual(shown[0].siblings.ids.length, 2);
  assert.deepEqual(texts(await stored(session, 'fork-1')), ['One?', 'Answer 2.']);
  assert.deepEqual(
    (await session.branches()).map(({ branch, kind, parent, messageCount }) => [branch, kind, parent, messageCount]),
    [
      ['main', 'main', null, 2],
      ['fork-1', 'fork', 'main', 2],
      ['fork-2', 'fork', null, 2],
    ],
  );
});

test('r38 a fork is continued by `branch`, and a session is restored with its branches', {
  timeout: 20_000,
}, async () => {
  const { client, session, ask } = await chat('branches-fork');
  await ask({ input: 'One?' });
  const [, answer] = await stored(session);
  const { branch } = await session.fork(answer.id);
  assert.equal(session.branch, 'main');
  await ask({ input: 'Two?' });
  await ask({ input: 'Zwei?', branch });
  assert.deepEqual(
    [session.branch, ...texts(await stored(session))],
    [branch, 'One?', 'Answer 1.', 'Zwei?', 'Answer 3.'],
  );
  const copies = [
    await client.restore(await session.serialize(), { id: 'bytes' }),
    await client.importSession(await client.exportSession('s'), { id: 'lines' }),
  ];
  for (const restored of copies) {
    assert.deepEqual(texts(await stored(restored)), ['One?', 'Answer 1.', 'Zwei?', 'Answer 3.']);
    await restored.switchTo('main');
    assert.deepEqual(texts(await stored(restored)), ['One?', 'Answer 1.', 'Two?', 'Answer 2.']);
  }
  await session.clear();
  assert.deepEqual([(await session.branches()).length, (await stored(session)).length], [1, 0]);
});

test('r38 r57 a view of a session of many branches gets the siblings soon', { timeout: 20_000 }, async () => {
  const store = keyValueService();
  const said = (text) => [{ role: 'user', parts: [{ type: 'text', text }] }];
  const writer = await (await open({ store })).session('s');
  const { messageIds } = await writer.append([...said('One?'), ...said('Two?')]);
  const forks = [];
  for (let at = 0; at < 66; at += 1) forks.push(await writer.fork(messageIds[0]));
  await writer.append(said('Zwei?'), { branch: forks.at(-1).branch });

  const view = (await (await open({ store })).session('s')).view();
  const siblings = () => view.getSnapshot().messages[1].siblings.ids;
  const shown = new Promise((resolve) => view.subscribe(() => siblings().length > 1 && resolve(siblings())));
  assert.deepEqual(siblings(), [messageIds[1]]);
  assert.equal((await shown).length, 2);

  const items = await stored(await (await open({ store })).session('s'));
  assert.equal(items[1].siblings.ids.length, 2);
});

test('r38 r57 what cannot be replaced, forked or shown is a typed error', { timeout: 20_000 }, async () => {
  const { client, session, ask, provider } = await chat('branches-errors');
  await ask({ input: 'One?' });
  const [, answer] = await stored(session);
  const codes = async (...calls) => {
    const found = [];
    for (const call of calls)
      found.push(
        await call().then(
          () => null,
          ({ code }) => code,
        ),
      );
    return found;
  };
  assert.deepEqual(
    await codes(
      () => session.run({ provider, replace: answer.id, input: 'x' }),
      () => session.run({ provider, replace: 'nobody' }),
      () => session.run({ provider, branch: 'fork-9', input: 'x' }),
      () => session.fork('nobody'),
      () => session.fork(7),
      () => session.switchTo('fork-9'),
      () => session.switchTo(),
      () => session.messages({ branch: 'fork-9' }),
    ),
    [
      'invalid_input',
      'not_found',
      'not_found',
      'not_found',
      'invalid_input',
      'not_found',
      'invalid_input',
      'not_found',
    ],
  );
  assert.deepEqual([session.branch, (await stored(session)).length], ['main', 2]);
  const kept = await client.session('kept', { owner: { kind: 'conversation', conversationId: 'c' } });
  const responses = { ...provider, dialect: 'openai-responses' };
  assert.deepEqual(await codes(() => kept.run({ provider: responses, replace: 'm' })), ['config_invalid']);
});
