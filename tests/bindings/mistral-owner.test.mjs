// R77 through JavaScript: the conversations that Mistral keeps, with their addresses. The service is this file's own.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { open } from 'rethread';
import { drive } from 'rethread/host';

const ADDRESS = 'https://api.mistral.example/v1/conversations';
const decode = (bytes) => JSON.parse(new TextDecoder().decode(bytes));
const KEPT = ['instructions', 'tools', 'model', 'agent_id', 'agent_version', 'guardrails', 'conversation_id'];

/** A service that keeps conversations: it asks for one tool before each answer. */
function service() {
  const conversations = new Map();
  const requests = [];
  const refuse = (status, detail) => Response.json({ detail }, { status });
  const answer = async (url, init) => {
    const body = decode(init.body);
    assert.ok(String(url).startsWith(ADDRESS), url);
    const named = String(url).slice(ADDRESS.length + 1);
    if (named && !conversations.has(named)) return refuse(404, 'Not Found');
    if (named && KEPT.some((member) => member in body)) return refuse(422, 'Extra inputs are not permitted');
    if (!named && !body.model) return refuse(422, 'Field required');
    const id = named || `conv_${conversations.size + 1}`;
    const entries = [...(conversations.get(id) ?? []), ...body.inputs];
    requests.push({ place: named || 'begins', body });
    const number = requests.length;
    const asks = body.inputs.at(-1).type !== 'function.result';
    const output = asks
      ? { type: 'function.call', id: `fc_${number}`, tool_call_id: `call_${number}`, name: 'now', arguments: '{}' }
      : { type: 'message.output', id: `msg_${number}`, role: 'assistant', content: `Noon ${number}.` };
    if (body.store) conversations.set(id, [...entries, output]);
    const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
    return Response.json({ object: 'conversation.response', conversation_id: id, outputs: [output], usage });
  };
  return { conversations, requests, fetch: answer };
}

async function ask(session, fetch, input) {
  const provider = { dialect: 'mistral-conversations', url: ADDRESS, params: { model: 'mistral-medium-latest' } };
  const tools = { now: { parameters: { type: 'object' }, execute: () => 'noon' } };
  const run = await session.run({ input, instructions: 'Be brief.', provider, tools, retry: { attempts: 1 } });
  return drive(run, { fetch }).result;
}

const sent = ({ body }) =>
  body.inputs.map(({ type = 'message.input', content, tool_call_id }) => tool_call_id ?? [type, content]);

test('r23 r25 r77 a conversation of Mistral begins with a run, goes on at its address, and begins again when it is lost', async (t) => {
  const owner = { kind: 'conversation', auto: true };
  const rethread = await open({ store: 'memory' });
  t.after(() => rethread.close());
  const session = await rethread.session('s', { owner });
  assert.deepEqual(session.owner, owner);
  const { conversations, requests, fetch } = service();
  for (const input of ['One', 'Two']) {
    const { status, conversationId, error } = await ask(session, fetch, input);
    assert.deepEqual([status, conversationId, error], ['finished', 'conv_1', null]);
  }
  assert.deepEqual(
    requests.map(({ place }) => place),
    ['begins', 'conv_1', 'conv_1', 'conv_1'],
  );
  assert.deepEqual(requests.slice(1).map(sent), [['call_1'], [['message.input', 'Two']], ['call_3']]);
  conversations.clear();
  const { status, report } = await ask(session, fetch, 'Three');
  assert.equal(status, 'finished');
  assert.ok(report.some(({ code }) => code === 'chain_restarted'));
  assert.deepEqual(
    requests.slice(4).map(({ place, body }) => [place, body.inputs.length]),
    [
      ['begins', 9],
      ['conv_1', 1],
    ],
  );
  // By option the run fails instead, and nothing is sent again.
  const failing = await rethread.session('s', { owner: { ...owner, onLost: 'fail' } });
  conversations.clear();
  const { error } = await ask(failing, fetch, 'Four');
  assert.deepEqual([error.code, requests.length], ['chain_lost', 6]);
});

test('r22 r77 a conversation that other code began is continued, and has no second owner', async (t) => {
  const rethread = await open({ store: 'memory' });
  t.after(() => rethread.close());
  const { conversations, requests, fetch } = service();
  conversations.set('conv_given', []);
  const owner = { kind: 'conversation', conversationId: 'conv_given' };
  const session = await rethread.session('s', { owner });
  const { status, conversationId } = await ask(session, fetch, 'One');
  assert.deepEqual([status, conversationId], ['finished', 'conv_given']);
  assert.deepEqual(
    requests.map(({ place }) => place),
    ['conv_given', 'conv_given'],
  );
  const refused = (options) => rethread.session('t', { owner: options }).then(assert.fail, ({ code }) => code);
  assert.equal(await refused({ ...owner, auto: true }), 'state_owner_conflict');
  assert.equal(await refused({ ...owner, onLost: 'fail' }), 'config_invalid');
});
