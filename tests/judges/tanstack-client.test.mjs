// `rethread/tanstack-ai` under the client of TanStack AI: answers that stream, tools, approvals, runs that are joined
// again, other answers and edits.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { toolDefinition } from '@tanstack/ai';
import { validate } from 'rethread';
import { chatPersistence } from 'rethread/tanstack-ai';
import {
  answer,
  calls,
  finished,
  found,
  gate,
  loadedPage,
  loop,
  page,
  says,
  settled,
  sharedStore,
  shown,
  started,
  stored,
  until,
} from './tanstack.mjs';

const DIALECTS = ['openai-chat', 'openai-responses', 'anthropic', 'gemini', 'mistral', 'bedrock'];
const texts = async (store, branch) =>
  (await stored(store, branch)).map(({ parts }) => parts.flatMap(({ text }) => text ?? []).join(''));
const foundTexts = async (store) => shown(await found(store));
const resumeOf = async (store) => (await chatPersistence(store).getItem('chat'))?.resume;

async function assertValid(store) {
  const session = await store.session('chat');
  for (const dialect of DIALECTS) {
    const { body } = await session.render({ dialect, params: { model: 'm' }, input: 'And now?' });
    assert.deepEqual(
      validate(body, dialect).filter(({ severity }) => severity === 'error'),
      [],
      dialect,
    );
  }
}

const timed = ({ createdAt, ...rest }) => (createdAt ? { ...rest, createdAt: new Date(createdAt) } : rest);

/** A new page has what this one has. */
async function assertSame(tab, client) {
  const { messages } = await chatPersistence(await tab()).getItem('chat');
  assert.deepEqual(messages, JSON.parse(JSON.stringify(client.getMessages())).map(timed));
}

describe('a chat of TanStack', { timeout: 30_000 }, () => {
  test('r53 TanStack: a question is stored before its answer, which is kept while it arrives and stored when it is over', async () => {
    const { tab, fails } = sharedStore();
    const held = gate();
    const words = Array.from({ length: 200 }, (_, at) => `${at} `);
    const [first, ...rest] = says('a1', ...words);
    const { client, errors } = await loadedPage(await tab(), {
      answers: [[started('r1'), first, ...rest.slice(0, 150), held.wait, ...rest.slice(150), finished('r1')]],
    });
    const done = client.sendMessage('hi');
    await until(async () => client.getMessages()[1]?.parts[0]?.content.length > 450);
    const other = await tab();
    assert.deepEqual(await texts(other), ['hi']);
    await until(async () => (await foundTexts(other))[1]?.startsWith('assistant: 0 1 2'));
    held.open();
    await done;
    await until(async () => (await stored(other)).length === 2);
    assert.deepEqual(await texts(other), ['hi', words.join('')]);
    assert.ok(fails.written < 12, `${fails.written} writes for 200 pieces`);
    await assertSame(tab, client);
    assert.deepEqual(errors, []);
  });

  test('r53 TanStack: a page that is closed in an answer leaves what came, and the next one goes on', async () => {
    const { tab } = sharedStore();
    const closed = await loadedPage(await tab(), {
      answers: [[started('r1'), ...says('a1', 'It is ', 'a').slice(0, -1), () => new Promise(() => {})]],
    });
    void closed.client.sendMessage('What?');
    await settled(1200);
    const next = await loadedPage(await tab(), { answers: [answer('r2', says('a2', 'Again.'))] });
    assert.deepEqual(shown(next.client.getMessages()), ['user: What?', 'assistant: It is a']);
    assert.deepEqual(await texts(await tab()), ['What?']);
    await next.client.sendMessage('And?');
    const expected = ['user: What?', 'assistant: It is a', 'user: And?', 'assistant: Again.'];
    await until(async () => (await stored(await tab())).length === 4);
    assert.deepEqual(await foundTexts(await tab()), expected);
    assert.equal((await stored(await tab()))[1].status, 'stopped');
    await assertValid(await tab());
  });

  test('r53 TanStack: an answer that is stopped keeps what it had', async () => {
    const { tab } = sharedStore();
    const held = gate();
    const { client } = await loadedPage(await tab(), {
      answers: [[started('r1'), ...says('a1', 'It is ', 'a').slice(0, -1), held.wait]],
    });
    const done = client.sendMessage('What?');
    await until(() => client.getMessages()[1]?.parts[0]?.content === 'It is a');
    client.stop();
    await done;
    await until(async () => (await stored(await tab())).length === 2);
    assert.deepEqual(await texts(await tab()), ['What?', 'It is a']);
    await assertSame(tab, client);
  });

  test('r53 TanStack: another answer and an edited question are branches, and the old ones stay', async () => {
    const { tab } = sharedStore();
    const { client, errors } = await loadedPage(await tab(), {
      answers: ['One.', 'Two.', 'Three.', 'Four.'].map((text, at) => answer(`r${at}`, says(`a${at}`, text))),
    });
    await client.sendMessage('hi');
    await client.reload();
    const [question] = client.getMessages();
    client.setMessagesManually([{ ...question, parts: [{ type: 'text', content: 'Hello!' }] }]);
    await client.reload();
    await until(async () => (await foundTexts(await tab())).at(-1) === 'assistant: Three.');
    await assertSame(tab, client);
    const store = await tab();
    const branches = (await (await store.session('chat')).branches()).map(({ branch }) => branch);
    const all = await Promise.all(branches.map((branch) => texts(store, branch)));
    assert.deepEqual(all, [
      ['hi', 'One.'],
      ['hi', 'Two.'],
      ['Hello!', 'Three.'],
    ]);
    // A message that is taken away stays in its branch.
    client.setMessagesManually(client.getMessages().slice(0, 1));
    await until(async () => (await foundTexts(await tab())).length === 1);
    assert.deepEqual(await texts(await tab(), branches.at(-1)), ['Hello!', 'Three.']);
    assert.deepEqual(errors, []);
  });

  test('r53 TanStack: a tool of the page and an approval, over a reload: nothing runs twice, and the snapshot ends with the run', async () => {
    const { tab } = sharedStore();
    const inputSchema = { type: 'object', properties: { to: { type: 'string' } }, required: ['to'] };
    const [look, pay] = [
      toolDefinition({ name: 'look', description: '', inputSchema }),
      toolDefinition({ name: 'pay', description: '', inputSchema, needsApproval: true }),
    ];
    const ran = [];
    const run = (name, result) => async (input) => {
      ran.push([name, input.to]);
      return result;
    };
    const { connection, sent } = loop(
      [
        [says('a1', 'Let me look.'), calls('a1', 'c1', 'look', { to: 'it' })],
        [says('a2', 'A cat.'), calls('a2', 'c2', 'pay', { to: 'cat' })],
        [says('a3', 'Paid.')],
      ],
      [look, pay.server(run('pay', { ok: true }))],
    );
    const options = { connection, tools: [look.client(run('look', { seen: 'cat' })), pay.client()] };
    const first = await loadedPage(await tab(), options);
    await first.client.sendMessage('hi');
    await until(async () => (await resumeOf(await tab()))?.pendingInterrupts?.[0]?.toolCallId === 'c2');
    const second = await loadedPage(await tab(), options);
    assert.deepEqual(second.client.getMessages(), first.client.getMessages());
    const [interrupt] = second.client.getInterrupts();
    assert.deepEqual([interrupt.kind, interrupt.toolName, ran], ['tool-approval', 'pay', [['look', 'it']]]);
    interrupt.resolveInterrupt(true);
    await until(async () => shown(second.client.getMessages()).at(-1) === 'assistant: Paid.');
    await until(async () => (await resumeOf(await tab())) === undefined);
    assert.deepEqual(ran, [
      ['look', 'it'],
      ['pay', 'cat'],
    ]);
    assert.deepEqual(await foundTexts(await tab()), [
      'user: hi',
      'assistant: Let me look. look({"to":"it"}) complete {"seen":"cat"}',
      'assistant: A cat. pay({"to":"cat"}) complete {"ok":true}',
      'assistant: Paid.',
    ]);
    await assertSame(tab, second.client);
    await assertValid(await tab());
    assert.equal(sent.length, 3);
    assert.deepEqual([first.errors, second.errors], [[], []]);
    const results = (await stored(await tab())).flatMap(({ parts }) => parts.flatMap(({ result }) => result ?? []));
    assert.deepEqual(
      results.map(({ content }) => content),
      [{ seen: 'cat' }, { ok: true }],
    );
  });

  test('r53 TanStack: an answer whose message gets another id after a tool of the server stays one answer, and a reload makes another one', async () => {
    const { tab } = sharedStore();
    const look = toolDefinition({ name: 'look', description: '', inputSchema: { type: 'object', properties: {} } });
    let ran = 0;
    // The chunks of TanStack's package for OpenAI: a call names no message, and the text after it has an id of its own.
    const turn = (call, text) => [
      [calls(undefined, call, 'look', {})],
      [calls(undefined, `${call}b`, 'look', {})],
      [says(text, 'A ', 'cat.')],
    ];
    const { connection } = loop(
      [...turn('c1', 'm1'), ...turn('c2', 'm2')].map((chunks) => chunks.flat()),
      [look.server(async () => `cat ${(ran += 1)}`)],
    );
    const first = await loadedPage(await tab(), { connection });
    await first.client.sendMessage('What?');
    await first.kept.flush();
    const ids = first.client.getMessages().flatMap(({ id, role }) => (role === 'assistant' ? [id] : []));
    const session = await (await tab()).session('chat');
    assert.deepEqual(ids, ['m1'], 'TanStack gives the message the id of its text');
    assert.equal((await session.branches()).length, 1);
    const { items } = await session.invocations();
    assert.deepEqual(items.map(({ callId, status }) => [callId, status]).reverse(), [
      ['c1', 'ok'],
      ['c1b', 'ok'],
    ]);
    assert.deepEqual(await foundTexts(await tab()), shown(first.client.getMessages()));
    await assertValid(await tab());
    await first.client.reload();
    await first.kept.flush();
    await session.refresh();
    assert.equal((await session.branches()).length, 2);
    assert.equal(ran, 4);
    assert.deepEqual(await foundTexts(await tab()), shown(first.client.getMessages()));
    assert.deepEqual(first.errors, []);
  });

  test('r53 TanStack: an answer that fails before anything came has the status failed', async () => {
    const { tab } = sharedStore();
    const failed = [started('r1'), { type: 'RUN_ERROR', runId: 'r1', message: 'status 400' }];
    const { client, kept } = await loadedPage(await tab(), {
      answers: [failed, answer('r2', says('a2', 'Hello.'))],
    });
    await client.sendMessage('One.');
    await kept.flush();
    assert.deepEqual(shown(client.getMessages()), ['user: One.', 'assistant: ']);
    assert.deepEqual(await foundTexts(await tab()), ['user: One.', 'assistant: ']);
    assert.deepEqual(
      (await stored(await tab())).map(({ status }) => status),
      ['complete', 'failed'],
    );
    await client.sendMessage('Two.');
    await kept.flush();
    assert.deepEqual(await foundTexts(await tab()), shown(client.getMessages()));
    assert.equal((await stored(await tab())).at(-1).status, 'complete');
    await assertValid(await tab());
    const session = await (await tab()).session('chat');
    assert.equal((await session.branches()).length, 1);
  });

  test('r53 TanStack: a run that is joined again is stored once', async () => {
    const { tab } = sharedStore();
    const chunks = answer('r1', says('a1', 'It ', 'is ', 'a cat.'));
    const first = await loadedPage(await tab(), {
      answers: [[...chunks.slice(0, 4), () => new Promise(() => {})]],
      joined: () => [],
    });
    void first.client.sendMessage('What?');
    await until(async () => (await resumeOf(await tab()))?.resumeState);
    await until(async () => (await foundTexts(await tab()))[1] === 'assistant: It is ');
    const { runId } = (await resumeOf(await tab())).resumeState;
    const joined = [];
    const second = await loadedPage(await tab(), { joined: (id) => joined.push(id) && chunks });
    await until(() => shown(second.client.getMessages()).at(-1) === 'assistant: It is a cat.');
    assert.deepEqual(joined, [runId]);
    await until(async () => (await stored(await tab())).length === 2);
    assert.deepEqual(await foundTexts(await tab()), ['user: What?', 'assistant: It is a cat.']);
    assert.equal(await resumeOf(await tab()), undefined);
    const store = await tab();
    assert.equal((await (await store.session('chat')).branches()).length, 1);
    await assertSame(tab, second.client);
    // The answer is stored; the third page joins a run of which the store still says that it is under way.
    const resume = { resumeState: { threadId: 'chat', runId } };
    await chatPersistence(await tab()).setItem('chat', {
      ...(await chatPersistence(await tab()).getItem('chat')),
      resume,
    });
    const third = await loadedPage(await tab(), { joined: () => chunks });
    await until(async () => (await resumeOf(await tab())) === undefined);
    await third.kept.flush();
    assert.deepEqual(await foundTexts(await tab()), ['user: What?', 'assistant: It is a cat.']);
    assert.equal((await stored(await tab())).length, 2);
    const again = await tab();
    assert.equal((await (await again.session('chat')).branches()).length, 1);
  });

  test('r53 TanStack: a chat that is cleared is gone, also what was arriving', async () => {
    const { tab } = sharedStore();
    const held = gate();
    const { client, errors } = await loadedPage(await tab(), {
      answers: [
        answer('r1', says('a1', 'One.')),
        [started('r2'), ...says('a2', 'Tw'), held.wait],
        answer('r3', says('a3', 'New.')),
      ],
    });
    const store = await tab();
    await (await store.session('chat')).update({ title: 'Kept' });
    await client.sendMessage('hi');
    void client.sendMessage('and?');
    await until(() => shown(client.getMessages()).at(-1) === 'assistant: Tw');
    client.clear();
    await until(async () => (await chatPersistence(await tab()).getItem('chat')) === null);
    assert.equal((await (await tab()).session('chat')).title, 'Kept');
    await client.sendMessage('anew');
    await until(async () => (await stored(await tab())).length === 2);
    assert.deepEqual(await foundTexts(await tab()), ['user: anew', 'assistant: New.']);
    assert.deepEqual(errors, []);
  });

  test('r53 TanStack: a page that stops before it has loaded removes nothing', async () => {
    const { tab, fails } = sharedStore();
    const first = await loadedPage(await tab(), { answers: [answer('r1', says('a1', 'One.'))] });
    await first.client.sendMessage('hi');
    await until(async () => (await stored(await tab())).length === 2);
    const { written } = fails;
    const second = page(await tab());
    second.client.stop();
    await settled(50);
    assert.deepEqual(shown(second.client.getMessages()), ['user: hi', 'assistant: One.']);
    assert.deepEqual(await foundTexts(await tab()), ['user: hi', 'assistant: One.']);
    assert.equal(fails.written, written);
    const third = page(await tab());
    third.client.clear();
    await until(async () => (await found(await tab())).length === 0);
    assert.deepEqual([second.errors, third.errors], [[], []]);
  });
});
