// Anthropic's message threads: what a request that continues one contains, what is refused, and what is kept.

import assert from 'node:assert/strict';
import test, { after, before } from 'node:test';
import { startStandIn } from './server.mjs';

let standIn;
before(async () => {
  standIn = await startStandIn();
});
after(() => standIn.close());

const BETA = 'message-threads-2026-08-12';
const tools = [{ name: 'look', input_schema: { type: 'object', properties: {} } }];
const head = { system: 'Be brief.', tools };
const user = (content) => ({ role: 'user', content });
const result = (id, content = 'sunny') => user([{ type: 'tool_result', tool_use_id: id, content }]);
const calls = (...ids) => ({ calls: ids.map((id) => ({ id, name: 'look', arguments: {} })) });
const create = { thread: { type: 'create' } };
const following = (id) => ({ thread: { type: 'continue', previous_message_id: id } });

let laneCount = 0;
/** A service of its own. */
function service() {
  const base = `${standIn.url}/lane/threads${(laneCount += 1)}`;
  const post = (path, body, headers) => fetch(base + path, { method: 'POST', body: JSON.stringify(body), headers });
  const script = (...steps) => post('/control/script', { steps, delayMs: 0 });
  const kept = async () => (await fetch(`${base}/control/threads`)).json();
  const request = (messages, more = {}, beta = BETA) =>
    post(
      '/v1/messages',
      { model: 'm', max_tokens: 100, messages: typeof messages === 'string' ? [user(messages)] : messages, ...more },
      beta === null ? {} : { 'anthropic-beta': beta },
    );
  /** Status, code and message of the error, the id and the body. */
  const send = async (messages, more, step, beta) => {
    if (step) await script(step);
    const response = await request(messages, more, beta);
    const body = await response.json();
    const { message, details } = body.error ?? {};
    return { status: response.status, code: details?.error_code, message, details, id: body.id, body };
  };
  return { base, post, script, kept, request, send };
}
/** Messages in words. */
const words = (messages) =>
  messages.flatMap(({ role, content }) =>
    typeof content === 'string'
      ? [`${role}: ${content}`]
      : content.map((block) =>
          block.type === 'text' ? `${role}: ${block.text}` : `${block.type} ${block.id ?? block.tool_use_id ?? ''}`,
        ),
  );

test('a thread is created with the history and continued with what is new, streamed or not', async () => {
  const { send, request, script, kept } = service();
  const first = await send('One', { ...head, ...create }, calls('a'));
  await script({ text: 'Sunny.' });
  const text = await (await request([result('a')], { ...following(first.id), stream: true })).text();
  const { id } = JSON.parse(text.match(/data: (.*message_start.*)/)[1]).message;
  const { threads, newest } = await kept();
  assert.equal(newest.id, id);
  assert.deepEqual(words(threads[id]), ['user: One', 'tool_use a', 'tool_result a', 'assistant: Sunny.']);
  assert.deepEqual(words(threads[first.id]), ['user: One', 'tool_use a']);
  assert.equal((await send('Two', following(id), { text: 'Yes.' })).status, 200);
});

test('a thread needs its beta header and its shape', async () => {
  const { send } = service();
  const refused = async (more, words, beta) => {
    const { status, message, body } = await send('One', more, undefined, beta);
    assert.deepEqual([status, body.type, body.error.type], [400, 'error', 'invalid_request_error']);
    assert.match(message, words);
  };
  await refused(create, /^thread: Extra inputs are not permitted$/, null);
  await refused(create, /^thread: Extra inputs/, 'message-threads-2027-01-01');
  await refused({ thread: 'create' }, /valid dictionary/);
  await refused({ thread: {} }, /^thread: Unable to extract tag/);
  await refused({ thread: { type: 'resume' } }, /expected tags: 'continue', 'create'/);
  await refused(
    { thread: { type: 'create', previous_message_id: 'msg_1' } },
    /^thread\.create\.previous_message_id: Ex/,
  );
  await refused({ thread: { type: 'continue' } }, /^thread\.continue\.previous_message_id: Field required/);
  await refused({ thread: { type: 'continue', previous_message_id: 7 } }, /valid string/);
  assert.equal((await send('One', create, { text: 'Yes.' }, `other-2026, ${BETA}`)).status, 200);
  assert.equal((await send('One', { thread: null }, { text: 'Yes.' }, null)).status, 200);
});

test('a response that is not there is not found, also after five minutes without a request', async () => {
  const { post, send } = service();
  const unknown = await send('One', following('msg_0'));
  assert.deepEqual([unknown.status, unknown.body.error.type], [404, 'not_found_error']);
  assert.deepEqual(unknown.details, { error_code: 'thread_not_found' });
  const pause = (minutes) => post('/control/service', { minutes });
  const first = await send('One', create, { text: 'Yes.' });
  await pause(4);
  const second = await send('Two', following(first.id), { text: 'Yes.' });
  await pause(4);
  assert.equal((await send('Three', following(first.id))).code, 'thread_not_found');
  const third = await send('Three', following(second.id), { text: 'Yes.' });
  await pause(5);
  assert.equal((await send('Four', following(third.id))).code, 'thread_not_found');
});

test('a response continues once', async () => {
  const { send, kept } = service();
  const first = await send('One', create, { text: 'Yes.' });
  await send('Two', following(first.id), { text: 'Yes.' });
  const before = await kept();
  const again = await send('Two again', following(first.id));
  assert.deepEqual([again.status, again.code], [400, 'thread_already_continued']);
  assert.deepEqual(await kept(), before);
});

test('a response that is just being continued is in flight, and as long as a step says after it', async () => {
  const { base, post, script, request, send } = service();
  const first = await send('One', create, { text: 'Yes.' });
  await post('/control/hold', { phase: 'model', ordinal: 2 });
  await script({ text: 'Second.' });
  const held = request('Two', following(first.id));
  while ((await (await fetch(`${base}/control/waiting`)).json()).length === 0);
  const meanwhile = await send('Other', following(first.id));
  assert.deepEqual([meanwhile.status, meanwhile.code], [400, 'thread_continue_in_flight']);
  await post('/control/release', {});
  const second = await (await held).json();
  assert.equal((await send('Other', following(first.id))).code, 'thread_already_continued');
  await send('Three', following(second.id), { status: 529, isKept: false, inFlight: 1 });
  assert.equal((await send('Three', following(second.id))).code, 'thread_continue_in_flight');
  assert.equal((await send('Three', following(second.id), { text: 'Third.' })).status, 200);
});

test('instructions, tools and what is fixed are those of the request that created the thread', async () => {
  const { send } = service();
  const fixed = { thinking: { type: 'adaptive' }, tool_choice: { type: 'auto' } };
  const first = await send('One', { ...head, ...fixed, ...create }, { text: 'Yes.' });
  const next = { ...fixed, ...following(first.id) };
  const refused = async (more, words, code, beta) => {
    const out = await send('Two', { ...next, ...more }, undefined, beta);
    assert.deepEqual([out.status, out.code], [400, code]);
    assert.match(out.message, words);
  };
  await refused({ system: head.system }, /^system: not permitted/);
  await refused({ tools }, /^tools: not permitted/);
  const differs = (more, field, beta) =>
    refused(more, new RegExp(`Differing field\\(s\\): ${field}$`), 'thread_fingerprint_mismatch', beta);
  await differs({ model: 'other' }, 'model');
  await differs({ thinking: undefined }, 'thinking');
  await differs({ tool_choice: { type: 'any' } }, 'tool_choice');
  await differs({ cache_control: { type: 'ephemeral' } }, 'cache_control');
  await differs({ model: 'other', output_config: { effort: 'low' } }, 'model, output_config');
  await differs({}, 'anthropic-beta', `${BETA}, other-2026`);
  assert.equal((await send('Two', { ...next, max_tokens: 7, temperature: 1 }, { text: 'Yes.' })).status, 200);
});

test('what threads do not support is named', async () => {
  const { send } = service();
  const edits = { context_management: { edits: [] } };
  const out = await send('One', { ...edits, fallbacks: [], ...create });
  assert.deepEqual([out.status, out.code], [400, 'thread_unsupported_request']);
  assert.deepEqual(out.details.unsupported, ['context_management', 'fallbacks']);
  assert.equal((await send('One', edits, { text: 'Yes.' })).status, 200);
});

test('a request is judged together with what the thread has', async () => {
  const { send, kept } = service();
  const first = await send('One', { ...head, ...create }, calls('a', 'b'));
  const before = await kept();
  const refused = async (messages, words, more) => {
    const out = await send(messages, { ...following(first.id), ...more });
    assert.deepEqual([out.status, out.code], [400, undefined]);
    assert.match(out.message, words);
  };
  await refused('Two', /`tool_use` ids were found without `tool_result` blocks immediately after: a, b/);
  await refused([result('a')], /without `tool_result` blocks immediately after: b/);
  await refused([result('a'), result('b')], /immediately after: b/);
  await refused([user([...result('a').content, ...result('c').content])], /unexpected `tool_use_id` found .*: c/);
  await refused([], /at least one message is required/);
  await refused([], /messages: Field required/, { messages: undefined });
  await refused('Two', /tool_choice: Tool 'other' not found/, {
    tool_choice: { type: 'tool', name: 'other' },
    thread: { type: 'create' },
    tools,
  });
  assert.deepEqual(await kept(), before);
  const both = user([...result('a').content, ...result('b').content]);
  const second = await send([both], following(first.id), calls('a'));
  assert.equal((await send([result('b')], following(second.id))).status, 400, 'a result of an older call');
  assert.equal((await send([result('a')], following(second.id), { text: 'Done.' })).status, 200);
});

test('an answer that paused is continued without a message', async () => {
  const { send, kept } = service();
  const first = await send('One', create, { text: 'Half', finish: 'pause_turn' });
  const second = await send([], following(first.id), { text: 'Whole.' });
  assert.equal(second.status, 200);
  assert.deepEqual(words((await kept()).newest.messages), ['user: One', 'assistant: Half', 'assistant: Whole.']);
});

test('an answer that broke off is kept whole or not at all, as a step says', async () => {
  const { send, script, request, kept } = service();
  const first = await send('One', create, { text: 'Yes.' });
  const lose = async (step) => {
    await script(step);
    await assert.rejects(request('Two', { ...following(first.id), stream: true }).then((response) => response.text()));
    return Object.keys((await kept()).threads).length;
  };
  assert.equal(await lose({ text: 'Second.', lost: 'request' }), 1);
  assert.equal(await lose({ text: 'Second.', cut: 4 }), 1);
  assert.equal(await lose({ text: 'Second.', cut: 4, isKept: true }), 2);
  assert.equal((await send('Two', following(first.id))).code, 'thread_already_continued');
  assert.deepEqual(words((await kept()).newest.messages), [
    'user: One',
    'assistant: Yes.',
    'user: Two',
    'assistant: Second.',
  ]);
  // No answer says whether it was kept.
  const unkept = await send('One', create, { text: 'Yes.', isKept: false });
  assert.equal((await send('Two', following(unkept.id))).code, 'thread_not_found');
  const failed = await send('One', create, { status: 529, isKept: true, text: 'Yes.' });
  assert.equal(failed.status, 529);
  assert.equal(Object.keys((await kept()).threads).length, 3);
});

test('the brain sees what is kept', async () => {
  const { send } = service();
  let { id, body } = await send('Weather in Oslo?', { ...head, ...create });
  for (let round = 0; round < 2; round += 1) {
    const uses = body.content.filter(({ type }) => type === 'tool_use');
    assert.ok(uses.length > 0);
    const results = uses.flatMap((use) => result(use.id).content);
    ({ id, body } = await send([user(results)], following(id)));
  }
  assert.match(body.content[0].text, /I called 3 tools in 2 rounds/);
});
