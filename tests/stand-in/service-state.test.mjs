// The state of OpenAI Responses: conversations, chains, and what is refused because of them.

import assert from 'node:assert/strict';
import test, { after, before } from 'node:test';
import { startStandIn } from './server.mjs';

let standIn;
before(async () => {
  standIn = await startStandIn();
});
after(() => standIn.close());

let laneCount = 0;
/** A service of its own. */
function service() {
  const base = `${standIn.url}/lane/service${(laneCount += 1)}`;
  const post = (path, body) => fetch(base + path, { method: 'POST', body: JSON.stringify(body) });
  const script = (...steps) => post('/control/script', { steps, delayMs: 0 });
  const kept = async () => (await fetch(`${base}/control/service`)).json();
  /** Status, code and message of the error, and the body. */
  const send = async (input, more = {}, ...steps) => {
    if (steps.length) await script(...steps);
    const response = await post('/v1/responses', { model: 'm', input, ...more });
    const body = await response.json();
    return { status: response.status, code: body.error?.code, message: body.error?.message, body };
  };
  const conversation = async (items) => (await (await post('/v1/conversations', { items })).json()).id;
  return { base, post, script, kept, send, conversation };
}
const user = (content) => ({ role: 'user', content });
const output = (call_id, text = 'sunny') => ({ type: 'function_call_output', call_id, output: text });
const calls = (...ids) => ({ calls: ids.map((id) => ({ id, name: 'look', arguments: {} })) });
const kinds = (items) => items.map((item) => item.type ?? item.role);

test('a conversation keeps input and output, and lists them', async () => {
  const { base, send, conversation } = service();
  const id = await conversation();
  const first = await send('Hello', { conversation: id }, calls('a'));
  assert.deepEqual(first.body.conversation, { id });
  await send([output('a')], { conversation: { id } }, { text: 'Done.' });
  const { data } = await (await fetch(`${base}/v1/conversations/${id}/items?order=asc`)).json();
  assert.deepEqual(kinds(data), ['user', 'function_call', 'function_call_output', 'message']);
  assert.equal((await fetch(`${base}/v1/conversations/conv_0/items`)).status, 404);
  assert.equal((await fetch(`${base}/v1/conversations/${id}`, { method: 'DELETE' })).status, 200);
  assert.equal((await send('Again', { conversation: id })).status, 404);
});

test('a chain continues each response that is kept, and branches', async () => {
  const { send, kept } = service();
  const first = await send('One', {}, { text: 'First.' });
  await send('Two', { previous_response_id: first.body.id }, { text: 'Second.' });
  const other = await send('Three', { previous_response_id: first.body.id }, { text: 'Third.' });
  const { newest, responses } = await kept();
  assert.equal(newest.id, other.body.id);
  assert.deepEqual(
    newest.items.filter(({ role }) => role === 'user').map(({ content }) => content),
    ['One', 'Three'],
  );
  assert.equal(Object.keys(responses).length, 3);
});

test('what does not fit what is kept is refused, and nothing changes', async () => {
  const { send, conversation, kept } = service();
  const id = await conversation();
  const first = await send('One', { conversation: id }, calls('a', 'b'));
  const before = await kept();
  const refused = async (words, input, more) => {
    const { status, message } = await send(input, more);
    assert.equal(status, 400);
    assert.match(message, words);
  };
  await refused(/No tool output found for function call a/, 'Two', { conversation: id });
  await refused(/No tool output found for function call b/, [output('a')], { conversation: id });
  await refused(/No tool output found/, [user('Two')], { previous_response_id: first.body.id });
  await refused(/No tool call found for function call output with call_id a/, [output('a'), output('a'), output('b')], {
    conversation: id,
  });
  await refused(/No tool call found for function call output with call_id c/, [output('a'), output('b'), output('c')], {
    conversation: id,
  });
  await refused(/Duplicate item found with id fc_/, [first.body.output[0], output('a'), output('b')], {
    conversation: id,
  });
  await refused(/Mutually exclusive/, 'Two', { conversation: id, previous_response_id: first.body.id });
  assert.deepEqual(await kept(), before);
  // The same call id again is another call.
  await send([output('a'), output('b')], { conversation: id }, calls('a'));
  await refused(/No tool output found for function call a/, 'Two', { conversation: id });
  assert.equal((await send([output('a')], { conversation: id }, { text: 'Done.' })).status, 200);
});

test('responses are forgotten after 30 days, conversations are not', async () => {
  const { post, send, conversation } = service();
  const id = await conversation();
  await send('One', { conversation: id }, { text: 'First.' });
  const first = await send('One', {}, { text: 'First.' });
  await post('/control/service', { days: 30 });
  assert.equal((await send('Two', { previous_response_id: first.body.id }, { text: 'Second.' })).status, 200);
  await post('/control/service', { days: 1 });
  const late = await send('Three', { previous_response_id: first.body.id });
  assert.deepEqual([late.status, late.code], [400, 'previous_response_not_found']);
  assert.equal((await send('Two', { conversation: id }, { text: 'Second.' })).status, 200);
});

test('a connection that breaks before or after the request was kept, and in the middle of a stream', async () => {
  const { base, post, script, kept, conversation } = service();
  const id = await conversation();
  const items = async () => kinds((await kept()).conversations[id]);
  const lose = async (step) => {
    await script(step);
    await assert.rejects(
      post('/v1/responses', { model: 'm', input: 'One', conversation: id, stream: true }).then((response) =>
        response.text(),
      ),
    );
  };
  await lose({ text: 'First.', lost: 'request' });
  assert.deepEqual(await items(), []);
  await lose({ text: 'First.', cut: 4 });
  assert.deepEqual(await items(), ['user']);
  await lose({ text: 'First.', lost: 'answer' });
  assert.deepEqual(await items(), ['user', 'user', 'message']);
  const requests = await (await fetch(`${base}/control/requests`)).json();
  assert.deepEqual(
    requests.map(({ ended }) => ended),
    ['cut', 'cut', 'cut'],
  );
});

test('a conversation is locked while a request works on it', async () => {
  const { post, script, send, conversation, base } = service();
  const id = await conversation();
  await post('/control/hold', { phase: 'model', ordinal: 1 });
  await script({ text: 'First.' });
  const first = post('/v1/responses', { model: 'm', input: 'One', conversation: id });
  while ((await (await fetch(`${base}/control/waiting`)).json()).length === 0);
  const second = await send('Two', { conversation: id });
  assert.deepEqual([second.status, second.code], [400, 'conversation_locked']);
  await post('/control/release', {});
  assert.equal((await first).status, 200);
  assert.equal((await send('Two', { conversation: id }, { text: 'Second.' })).status, 200);
});

test('a response without an id is kept, and nothing can name it', async () => {
  const { send, kept } = service();
  const first = await send('One', {}, { text: 'First.', withoutId: true });
  assert.equal(first.body.id, null);
  assert.deepEqual(kinds((await kept()).newest.items), ['user', 'message']);
});

test('the brain sees what is kept', async () => {
  const { send, conversation } = service();
  const id = await conversation();
  const tools = [{ type: 'function', name: 'look', parameters: { type: 'object', properties: {} } }];
  let { body } = await send('Weather in Oslo?', { conversation: id, tools });
  for (let round = 0; round < 2; round += 1) {
    const outputs = body.output.filter(({ type }) => type === 'function_call').map(({ call_id }) => output(call_id));
    assert.ok(outputs.length > 0);
    ({ body } = await send(outputs, { conversation: id, tools }));
  }
  assert.match(body.output[0].content[0].text, /I called 3 tools in 2 rounds/);
});
