// R23 and R77 through JavaScript and over HTTP, with Anthropic's message threads: what is sent, what begins a thread
// again, and the errors. The service is the stand-in, which refuses what the vendor is documented to refuse.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { open } from 'rethread';
import { drive } from 'rethread/host';
import { startStandIn } from '../stand-in/server.mjs';
import { BETA, THREAD, calling, look, serviceOf, withoutResults, wordsOf, wordsOfSession } from './thread-chat.mjs';

let standIn;
let rethread;
before(async () => {
  standIn = await startStandIn();
  rethread = await open({ store: 'memory' });
});
after(async () => {
  await rethread?.close();
  await standIn?.close();
});

const decode = (bytes) => JSON.parse(new TextDecoder().decode(bytes));
/** A service and a session of their own. */
async function chat(name, owner = THREAD) {
  const service = serviceOf(standIn.url, name);
  const session = await rethread.session(name, { owner });
  /** What the service has of the newest answer is what the session shows, and nothing was sent twice. */
  const compare = async (shown = session) => {
    const { newest } = await service.threads();
    assert.deepEqual(withoutResults(wordsOf(newest.messages)), await wordsOfSession(shown));
    await service.check();
  };
  return { ...service, session, compare };
}

test('r23_r77_turns_with_tools_are_sent_to_a_thread_as_what_is_new', async () => {
  for (const stream of [false, true]) {
    const { session, provider, finish, chain, sent, compare, lane } = await chat(`turns-${stream}`);
    const request = { provider: { ...provider, stream, headers: { 'anthropic-beta': 'own-2026' } } };
    const brief = { ...request, instructions: 'Be brief.' };
    assert.deepEqual(await finish(session, { ...brief, input: 'One' }, calling(), { text: 'First.' }), []);
    assert.deepEqual(
      await finish(session, { ...brief, input: 'Two' }, { ...calling(), text: 'Let me see.' }, calling(), {
        text: 'Second.',
      }),
      [],
    );
    assert.deepEqual(await chain(), ['create', 'continue', 'continue', 'continue', 'continue']);
    const words = await sent();
    assert.deepEqual(words[0], ['user: One']);
    assert.deepEqual(words[2], ['user: Two']);
    for (const at of [1, 3, 4]) assert.ok(words[at].length === 1 && words[at][0].startsWith('result found'), words[at]);
    const [first] = await lane.requests();
    assert.equal(first.headers['anthropic-beta'], `own-2026, ${BETA}`);
    assert.equal(first.body.system, 'Be brief.');
    await compare();
  }
});

test('r23_r77_a_history_of_its_own_begins_the_thread_and_a_session_that_is_opened_again_continues_it', async () => {
  const { session, lane, finish, chain, sent, compare } = await chat('history', { kind: 'session' });
  await finish(session, { input: 'Zero' }, calling(), { text: 'Nought.' });
  await rethread.session('history', { owner: THREAD });
  await finish(session, { input: 'One' }, { text: 'First.' });
  session[Symbol.dispose]();
  const again = await rethread.session('history');
  assert.deepEqual(again.owner, THREAD);
  // A reload shows the next request.
  const { body } = await again.render({ dialect: 'anthropic', input: 'Two', params: { model: 'm' }, tools: look });
  const rendered = decode(body);
  assert.equal(rendered.thread.type, 'continue');
  assert.deepEqual(wordsOf(rendered.messages), ['user: Two']);
  await finish(again, { input: 'Two' }, { text: 'Second.' });
  assert.deepEqual(await chain(), ['none', 'none', 'create', 'continue']);
  assert.deepEqual(
    (await sent()).map(({ length }) => length),
    [1, 3, 5, 1],
  );
  assert.deepEqual(rendered.thread, (await lane.requests())[3].body.thread);
  await compare(again);
});

test('r23_r77_what_began_elsewhere_is_continued_and_not_repeated', async () => {
  const { session: own, provider, threads, pass, ask, finish, chain, sent } = await chat('given');
  await finish(own, { input: 'Before' }, { text: 'Yes?' });
  const { newest } = await threads();
  const session = await rethread.session('given-2', { owner: { kind: 'response', previousResponseId: newest.id } });
  const plain = { provider, tools: undefined };
  assert.deepEqual(await finish(session, { ...plain, input: 'One' }, { text: 'First.' }), []);
  assert.deepEqual((await sent())[1], ['user: One']);
  // Only the service has what came before.
  await pass(5);
  const { error } = await ask(session, { ...plain, input: 'Two' }, [{ text: 'Second.' }]);
  assert.deepEqual([error.code, error.details.providerCode], ['model_error', 'thread_not_found']);
  assert.match(error.message, /previousResponseId/);
  assert.deepEqual(await chain(), ['create', 'continue', 'continue thread_not_found']);
});

test('r77_each_error_of_threads_is_a_thread_that_begins_again_or_an_error_that_says_what_to_do', async () => {
  const { session, provider, lane, pass, ask, finish, chain, compare } = await chat('errors');
  await finish(session, { input: 'One' }, calling(), { text: 'First.' });
  await pass(5);
  assert.deepEqual(await finish(session, { input: 'Two' }, { text: 'Second.' }), ['chain_restarted']);

  // The service has continued the response, and its answer was lost.
  const steps = [{ text: 'Lost.', lost: 'answer' }, { text: 'Third.' }];
  const unsafe = await ask(session, { input: 'Three' }, steps);
  assert.equal(unsafe.error.code, 'replay_unsafe');
  assert.match(unsafe.error.message, /approveUnsafeReplay/);
  const approved = await session.resume((await session.pendingRuns())[0].id, {
    provider,
    tools: look,
    retry: { approveUnsafeReplay: () => true },
  });
  const lost = await drive(approved).result;
  assert.equal(lost.status, 'finished', JSON.stringify(lost.error));
  assert.ok(lost.report.some(({ code, message }) => code === 'chain_restarted' && /only one can/.test(message)));

  // Another request still continues it, for a while or for longer.
  const busy = { status: 429, inFlight: 1 };
  assert.deepEqual(await finish(session, { input: 'Four', retry: { backoffMs: 1 } }, busy, { text: 'Fourth.' }), []);
  const longer = { status: 400, inFlight: 9 };
  const failed = await ask(session, { input: 'Five', retry: { attempts: 1 } }, [longer]);
  assert.equal(failed.error.code, 'model_error');
  await session.discard((await session.pendingRuns())[0].id);
  assert.deepEqual(await finish(session, { input: 'Five', retry: { attempts: 1 } }, { text: 'Fifth.' }), [
    'chain_restarted',
  ]);

  const other = { ...provider, params: { model: 'm-2' } };
  assert.deepEqual(await finish(session, { provider: other, input: 'Six' }, { text: 'Sixth.' }), ['chain_restarted']);
  await compare();

  const edits = { ...other, params: { model: 'm-2', context_management: { edits: [] } } };
  const { error, status } = await ask(session, { provider: edits, input: 'Seven' }, []);
  assert.deepEqual(
    [status, error.code, error.details.providerCode],
    ['failed', 'model_error', 'thread_unsupported_request'],
  );
  assert.match(error.message, /context_management/);
  assert.match(error.message, /kind: "session"/);
  const before = (await lane.requests()).length;
  // The user goes on as the error says.
  const [pending] = await session.pendingRuns();
  await rethread.session('errors', { owner: { kind: 'session' } });
  await lane.script([{ text: 'Seventh.' }]);
  const resumed = await drive(await session.resume(pending.id, { provider: edits, tools: look })).result;
  assert.equal(resumed.status, 'finished', JSON.stringify(resumed.error));
  const last = (await lane.requests()).at(-1);
  assert.deepEqual([(await lane.requests()).length, last.body.thread], [before + 1, undefined]);
  assert.deepEqual(await chain(), [
    'create',
    'continue',
    'continue thread_not_found',
    'create',
    'continue lost',
    'continue thread_already_continued',
    'create',
    'continue rate_limit_error',
    'continue thread_continue_in_flight',
    'continue',
    'continue invalid_request_error',
    'continue thread_continue_in_flight',
    'create',
    'continue thread_fingerprint_mismatch',
    'create',
    'continue thread_unsupported_request',
    'none',
  ]);
  await compare();
});

test('r25_r77_a_lost_thread_fails_the_run_by_option_also_after_a_reload', async () => {
  const fail = { ...THREAD, onLost: 'fail' };
  const { session, provider, lane, pass, ask, finish, chain, compare } = await chat('lost', fail);
  await finish(session, { input: 'One' }, { text: 'First.' });
  session[Symbol.dispose]();
  const again = await rethread.session('lost');
  assert.deepEqual(again.owner, fail);
  // Other instructions would begin another thread: nothing is sent.
  const long = { dialect: 'anthropic', instructions: 'Be long.', input: 'Two', params: { model: 'm' }, tools: look };
  await assert.rejects(again.render(long), { code: 'chain_lost' });
  await pass(5);
  const { status, error, report } = await ask(again, { input: 'Two' }, [{ text: 'Second.' }]);
  assert.deepEqual([status, error.code], ['failed', 'chain_lost']);
  assert.deepEqual([error.details.status, error.details.providerCode], [404, 'thread_not_found']);
  assert.match(error.message, /owner: \{ kind: "response", auto: true \}/);
  assert.ok(!report.some(({ code }) => code === 'chain_restarted'));
  assert.deepEqual(await chain(), ['create', 'continue thread_not_found']);
  // The user goes on as the error says.
  const [{ id }] = await again.pendingRuns();
  await rethread.session('lost', { owner: THREAD });
  assert.deepEqual(again.owner, THREAD);
  await lane.script([{ text: 'Second.' }]);
  const resumed = await drive(await again.resume(id, { provider, tools: look })).result;
  assert.equal(resumed.status, 'finished', JSON.stringify(resumed.error));
  assert.equal(resumed.report.filter(({ code }) => code === 'chain_restarted').length, 1);
  assert.deepEqual((await chain()).slice(2), ['continue thread_not_found', 'create']);
  await compare(again);
  for (const owner of [
    { kind: 'session', onLost: 'fail' },
    { kind: 'response', previousResponseId: 'msg_1', onLost: 'restart' },
    { ...THREAD, onLost: 'never' },
  ])
    await assert.rejects(rethread.session('invalid', { owner }), { code: 'config_invalid' });
});

test('r23_r77_other_instructions_and_tools_begin_the_thread_again_before_anything_is_refused', async () => {
  const { session, lane, finish, chain, compare, sent } = await chat('head');
  const find = { find: { execute: () => 'there' } };
  await finish(session, { instructions: 'Be brief.', input: 'One' }, calling(), { text: 'First.' });
  assert.deepEqual(await finish(session, { instructions: 'Be long.', input: 'Two' }, { text: 'Second.' }), [
    'chain_restarted',
  ]);
  assert.deepEqual(await finish(session, { instructions: 'Be long.', input: 'Three' }, { text: 'Third.' }), []);
  const more = { instructions: 'Be long.', tools: { ...look, ...find } };
  assert.deepEqual(await finish(session, { ...more, input: 'Four' }, { text: 'Fourth.' }), ['chain_restarted']);
  assert.deepEqual(await finish(session, { ...more, input: 'Five' }, { text: 'Fifth.' }), []);
  assert.deepEqual(await finish(session, { tools: {}, input: 'Six' }, { text: 'Sixth.' }), ['chain_restarted']);
  assert.deepEqual(await chain(), ['create', 'continue', 'create', 'continue', 'create', 'continue', 'create']);
  const requests = await lane.requests();
  assert.deepEqual(
    requests
      .filter(({ body }) => body.thread.type === 'create')
      .map(({ body }) => [body.system ?? null, body.tools?.length ?? 0]),
    [
      ['Be brief.', 1],
      ['Be long.', 1],
      ['Be long.', 2],
      [null, 0],
    ],
  );
  assert.equal((await sent()).at(-1).at(-1), 'user: Six');
  await compare();
});

test('r23_r77_edits_other_answers_and_forks_get_a_thread_of_their_own_and_double_nothing', async () => {
  const { session, finish, chain, compare, check, threads } = await chat('branches');
  await finish(session, { input: 'One' }, calling(), { text: 'First.' });
  await finish(session, { input: 'Two' }, { text: 'Second.' });
  const { items } = await session.messages({ limit: 100 });
  const answer = items.at(-1);
  const question = items.at(-2);
  // The response before the question was continued by it.
  assert.deepEqual(await finish(session, { replace: answer.id }, { text: 'Another second.' }), ['chain_restarted']);
  assert.notEqual(session.branch, 'main');
  await compare();
  assert.deepEqual(await finish(session, { input: 'Three' }, { text: 'Third.' }), []);
  await compare();
  assert.deepEqual(await finish(session, { replace: question.id, input: 'Deux' }, calling(), { text: 'Deuxième.' }), [
    'chain_restarted',
  ]);
  await compare();
  // Back in the first branch its thread is continued where it was.
  await session.switchTo('main');
  assert.deepEqual(await finish(session, { input: 'Four' }, { text: 'Fourth.' }), []);
  await compare();
  const { branch } = await session.fork(answer.id);
  assert.deepEqual(await finish(session, { branch, input: 'Quatre' }, { text: 'Quatrième.' }), ['chain_restarted']);
  await compare();
  // The first question edited: nothing is before it.
  assert.deepEqual(await finish(session, { replace: items[0].id, input: 'Un' }, { text: 'Premier.' }), []);
  await compare();
  await check();
  for (const messages of Object.values((await threads()).threads)) {
    const words = withoutResults(wordsOf(messages));
    assert.equal(new Set(words).size, words.length, words.join('; '));
  }
  assert.deepEqual(
    (await chain()).filter((word) => / /.test(word)),
    Array(3).fill('continue thread_already_continued'),
  );
});

test('r23_r24_r77_what_a_filter_holds_back_is_sent_later_and_no_other_thread_or_message_leaves', async () => {
  const { session, provider, lane, ask, finish, sent, check } = await chat('filter');
  const brief = { instructions: 'Be brief.' };
  await finish(session, { ...brief, input: 'One' }, { text: 'First.' });
  await session.append([{ role: 'user', parts: [{ type: 'text', text: 'Aside' }] }]);
  const withoutAside = ({ messages, ...body }) => ({
    ...body,
    messages: messages.filter(({ content }) => content !== 'Aside'),
  });
  await finish(session, { ...brief, input: 'Two', inputFilter: withoutAside }, { text: 'Second.' });
  await finish(session, { ...brief, input: 'Three' }, { text: 'Third.' });
  assert.deepEqual(await sent(), [['user: One'], ['user: Two'], ['user: Aside', 'user: Three']]);
  const count = (await lane.requests()).length;
  for (const [code, inputFilter] of [
    ['state_owner_conflict', (body) => ({ ...body, thread: { type: 'create' } })],
    ['state_owner_conflict', ({ thread, ...body }) => body],
    ['state_owner_conflict', (body) => ({ ...body, thread: { ...body.thread, previous_message_id: 'msg_0' } })],
    ['invalid_input', (body) => ({ ...body, messages: [] })],
    ['invalid_input', (body) => ({ ...body, messages: [...body.messages, { role: 'user', content: 'More' }] })],
    ['callback_failed', () => null],
  ]) {
    const { status, error } = await ask(session, { ...brief, input: 'Four', inputFilter }, []);
    assert.deepEqual([status, error.code], ['failed', code]);
    await session.discard((await session.pendingRuns())[0].id);
  }
  assert.equal((await lane.requests()).length, count, 'none was sent');
  // A filter that adds what the thread keeps fails the run, which goes on without it.
  for (const head of [{ system: 'Be long.' }, { tools: [] }]) {
    const inputFilter = (body) => ({ ...body, ...head });
    const input = `Four ${Object.keys(head)}`;
    assert.equal((await ask(session, { ...brief, input, inputFilter }, [])).status, 'failed');
    const [{ id }] = await session.pendingRuns();
    await lane.script([{ text: `Answer to ${input}` }]);
    const { status, report } = await drive(await session.resume(id, { ...brief, provider, tools: look })).result;
    assert.equal(status, 'finished');
    assert.ok(!report.some(({ code }) => code === 'chain_restarted'));
  }
  await check();
});

test('r22_r77_a_switch_of_provider_to_chat_completions_and_back', async () => {
  const { session, lane, finish, chain, sent, compare } = await chat('switch');
  await finish(session, { input: 'One' }, calling(), { text: 'First.' });
  const chatProvider = { dialect: 'openai-chat', url: lane.chat, params: { model: 'm' } };
  await assert.rejects(session.run({ input: 'Two', provider: chatProvider }), ({ code }) => code === 'config_invalid');
  await rethread.session('switch', { owner: { kind: 'session' } });
  assert.deepEqual(await finish(session, { provider: chatProvider, input: 'Two' }, calling(), { text: 'Second.' }), []);
  await rethread.session('switch', { owner: THREAD });
  assert.deepEqual(await finish(session, { input: 'Three' }, { text: 'Third.' }), []);
  assert.deepEqual(await finish(session, { input: 'Four' }, calling(), { text: 'Fourth.' }), []);
  assert.deepEqual(await chain(), ['create', 'continue', 'none', 'none', 'continue', 'continue', 'continue']);
  // The response is continued where it was, with what the other provider said meanwhile.
  const [three] = (await sent()).slice(-3);
  assert.deepEqual(withoutResults(three), ['user: Two', three[1], 'assistant: Second.', 'user: Three']);
  await compare();
});

test('r77_the_bytes_of_what_is_new_do_not_depend_on_the_messages_before', async () => {
  const sizes = [];
  for (const count of [10, 1000]) {
    const { session, lane, finish, chain } = await chat(`flat-${count}`, { kind: 'session' });
    await session.append(
      Array.from({ length: count }, (_, at) => ({
        role: at % 2 ? 'assistant' : 'user',
        parts: [{ type: 'text', text: `Message ${at}.` }],
      })),
    );
    await rethread.session(`flat-${count}`, { owner: THREAD });
    const call = { calls: [{ name: 'look', arguments: { n: 1 } }] };
    for (let turn = 0; turn < 3; turn += 1)
      await finish(session, { instructions: 'Be brief.', input: 'And?' }, call, { text: 'Yes.' });
    assert.deepEqual(await chain(), ['create', ...Array(5).fill('continue')]);
    const requests = await lane.requests();
    assert.equal(requests[0].body.messages.length, count + 1);
    sizes.push(requests.slice(1).map(({ bodyText }) => Buffer.byteLength(bodyText)));
  }
  assert.deepEqual(sizes[0], sizes[1]);
  assert.deepEqual(sizes[0].slice(1, 3), sizes[0].slice(3, 5), 'and not on the turns before');
});
