// Reasoning that is bound to its prefix.

import assert from 'node:assert/strict';
import test, { after, before } from 'node:test';
import { startStandIn } from './server.mjs';

let standIn;
before(async () => {
  standIn = await startStandIn();
});
after(() => standIn.close());

let laneCount = 0;
async function lane({ binding = true } = {}) {
  const base = `${standIn.url}/lane/binding${(laneCount += 1)}`;
  const post = async (path, body, headers = {}) =>
    (await fetch(base + path, { method: 'POST', headers, body: JSON.stringify(body) })).json();
  await post('/control/options', { binding, delayMs: 0 });
  const steps = (...list) => post('/control/script', { steps: list });
  return { post, steps };
}
const MODEL = 'claude-opus-5-5';
const SENTENCE =
  'Invalid `signature` in `thinking` block. The block is bound to a different conversation. Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to "drop_block".';
const BETA = { 'anthropic-beta': 'a-beta, thinking-binding-controls-2026-08-01' };
const user = (text) => ({ role: 'user', content: text });
const body = (messages, more = {}) => ({
  model: MODEL,
  max_tokens: 99,
  system: 'Be brief.',
  thinking: { type: 'adaptive' },
  messages,
  ...more,
});

/** A chat of two answers with thinking, and the messages of the next request. */
async function chat(options) {
  const { post, steps } = await lane(options);
  await steps({ thinking: { text: 'One.' }, text: 'First.' }, { thinking: { text: 'Two.' }, text: 'Second.' });
  const first = await post('/v1/messages', body([user('Hello')]));
  const messages = [user('Hello'), { role: 'assistant', content: first.content }, user('And?')];
  const second = await post('/v1/messages', body(messages));
  return { post, messages: [...messages, { role: 'assistant', content: second.content }, user('Go on')] };
}

test('an unchanged prefix is taken, whatever its cache_control and the way its text is written', async () => {
  const { post, messages } = await chat();
  const cached = structuredClone(messages);
  cached[0].content = [{ type: 'text', text: 'Hello', cache_control: { type: 'ephemeral' } }];
  const system = [{ type: 'text', text: 'Be brief.', cache_control: { type: 'ephemeral' } }];
  const answer = await post('/v1/messages', body(cached, { system }));
  assert.equal(answer.type, 'message', JSON.stringify(answer));
  assert.equal(answer.input_transformations, undefined);
});

for (const [what, change] of [
  ['system', (request) => ({ ...request, system: 'Be long.' })],
  ['tools', (request) => ({ ...request, tools: [{ name: 'f', input_schema: { type: 'object' } }] })],
  ['a message', (request) => ({ ...request, messages: [user('Hallo'), ...request.messages.slice(1)] })],
]) {
  test(`another prefix is refused in the provider's words: ${what}`, async () => {
    const { post, messages } = await chat();
    const { error } = await post('/v1/messages', change(body(messages)));
    assert.deepEqual(error, { type: 'invalid_request_error', message: `messages.1.content.0: ${SENTENCE}` });
  });
}

test('thinking that is left out before a kept one makes that fail; without all of it the body is taken', async () => {
  const { post, messages } = await chat();
  const without = (...indices) =>
    messages.map((message, i) => (indices.includes(i) ? { ...message, content: message.content.slice(1) } : message));
  const { error } = await post('/v1/messages', body(without(1)));
  assert.equal(error.message, `messages.3.content.0: ${SENTENCE}`);
  for (const kept of [without(3), without(1, 3)])
    assert.equal((await post('/v1/messages', body(kept))).type, 'message');
});

test('drop_block with its header drops the block and all later ones, and the answer lists them', async () => {
  const { post, messages } = await chat();
  const request = body([user('Hallo'), ...messages.slice(1)]);
  request.thinking.block_binding = { prefix_mismatch_behavior: 'drop_block' };
  assert.equal(
    (await post('/v1/messages', request)).error.message,
    'thinking.block_binding: Extra inputs are not permitted',
  );
  const answer = await post('/v1/messages', request, BETA);
  const dropped = (path) => ({ type: 'thinking_dropped', path, reason: 'prefix_binding_mismatch' });
  assert.deepEqual(answer.input_transformations, [dropped('messages.1.content.0'), dropped('messages.3.content.0')]);
});

test('another model drops the block itself; a model or a lane that binds nothing takes it', async () => {
  const { post, messages } = await chat();
  const other = body(messages, { model: 'claude-haiku-5-5' });
  assert.equal((await post('/v1/messages', other)).input_transformations, undefined);
  const { input_transformations: listed } = await post('/v1/messages', other, BETA);
  assert.deepEqual(
    listed.map(({ reason }) => reason),
    ['model_binding_mismatch', 'model_binding_mismatch'],
  );
  const changed = [user('Hallo'), ...messages.slice(1)];
  assert.equal((await post('/v1/messages', body(changed, { model: 'claude-opus-4-6' }))).type, 'message');
  const free = await chat({ binding: false });
  assert.equal((await free.post('/v1/messages', body([user('Hallo'), ...free.messages.slice(1)]))).type, 'message');
});

test('a signature whose thinking was changed is forged, bound or not', async () => {
  const { post, messages } = await chat();
  messages[1].content[0].thinking = 'Other.';
  assert.match(
    (await post('/v1/messages', body(messages))).error.message,
    /^messages\.1\.content\.0: Invalid `signature` in `thinking` block$/,
  );
});

test('OpenAI Responses removes reasoning of another prefix without a word, and lists it', async () => {
  const { post, steps } = await lane();
  await steps({ thinking: { text: 'One.' }, text: 'First.' });
  const request = (input, more) => ({
    model: 'gpt-6.2-sol',
    store: false,
    include: ['reasoning.encrypted_content'],
    input,
    ...more,
  });
  const { output } = await post('/v1/responses', request([user('Hello')]));
  const input = [user('Hello'), ...output, user('And?')];
  assert.equal((await post('/v1/responses', request(input))).input_transformations, undefined);
  const removed = (reason) => [{ type: 'reasoning', action: 'removed', id: output[0].id, reason }];
  const changed = await post('/v1/responses', request([user('Hallo'), ...input.slice(1)]));
  assert.deepEqual([changed.status, changed.input_transformations], ['completed', removed('prefix_mismatch')]);
  assert.deepEqual(
    (await post('/v1/responses', request(input, { model: 'gpt-6.3-sol' }))).input_transformations,
    removed('model_mismatch'),
  );
  assert.equal((await post('/v1/responses', request(input, { model: 'gpt-5' }))).input_transformations, undefined);
});

test('another service cannot read reasoning, bound or not', async () => {
  const { post, messages } = await chat();
  const elsewhere = { 'x-service': 'elsewhere' };
  for (const model of [MODEL, 'claude-opus-4-6']) {
    assert.match(
      (await post('/v1/messages', body(messages, { model }), elsewhere)).error.message,
      /^messages\.1\.content\.0: Invalid `signature`/,
    );
  }
  const { post: ask, steps } = await lane();
  await steps({ thinking: { text: 'One.' }, text: 'First.' });
  const request = (input) => ({ model: 'gpt-5', store: false, include: ['reasoning.encrypted_content'], input });
  const { output } = await ask('/v1/responses', request([user('Hello')]));
  const { error } = await ask('/v1/responses', request([user('Hello'), ...output, user('And?')]), elsewhere);
  assert.equal(error.code, 'invalid_encrypted_content');
});
