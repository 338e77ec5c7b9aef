// Every function that takes options rejects one that it does not know: an ignored option is a bug found in production.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { convert, open, repair } from '../../js/entry/node.js';
import { repairing } from '../../js/entry/fetch-node.js';
import { drive } from '../../js/host.js';

const UNKNOWN = { frobnicate: 1 };
const body = { messages: [{ role: 'user', content: 'hi' }] };
const provider = { dialect: 'openai-chat', url: 'http://localhost/v1/chat/completions', params: { model: 'm' } };

let client;
let session;
before(async () => {
  client = await open({ store: 'memory' });
  session = await client.session('s');
});
after(() => client.close());

const CASES = {
  open: () => open({ store: 'memory', ...UNKNOWN }),
  'open, beside an option named constructor': () => open({ ...UNKNOWN, constructor: 1, store: 'memory' }),
  'open, replay': () => open({ store: 'memory', replay: UNKNOWN }),
  session: () => client.session('other', UNKNOWN),
  sessions: () => client.sessions(UNKNOWN),
  'invocations of all sessions': () => client.invocations(UNKNOWN),
  'pendingRuns of all sessions': () => client.pendingRuns(UNKNOWN),
  'append, a body': () => session.append(body, 'openai-chat', UNKNOWN),
  'append, messages': () => session.append([{ role: 'user', parts: [] }], UNKNOWN),
  update: () => session.update(UNKNOWN),
  answer: () => session.answer('c', { type: 'tool_result', content: 1 }, UNKNOWN),
  messages: () => session.messages(UNKNOWN),
  invocations: () => session.invocations(UNKNOWN),
  render: () => session.render({ dialect: 'openai-chat', ...UNKNOWN }),
  'render, replay': () => session.render({ dialect: 'openai-chat', replay: UNKNOWN }),
  'render, a reducer': () =>
    session.render({ dialect: 'openai-chat', replay: { reducers: [{ type: 'sliding_turns', turns: 1, ...UNKNOWN }] } }),
  run: () => session.run({ provider, ...UNKNOWN }),
  'run, provider': () => session.run({ provider: { ...provider, ...UNKNOWN } }),
  'run, compat': () => session.run({ provider: { ...provider, compat: UNKNOWN } }),
  'run, retry': () => session.run({ provider, retry: UNKNOWN }),
  'run, a tool': () => session.run({ provider, tools: { look: UNKNOWN } }),
  resume: () => session.resume('r', { provider, ...UNKNOWN }),
  discard: () => session.discard('r', UNKNOWN),
  repair: () => repair(body, 'openai-chat', UNKNOWN),
  convert: () => convert(body, 'openai-chat', 'anthropic', UNKNOWN),
  repairing: () => repairing(UNKNOWN),
  drive: () => drive({ effects() {}, changed() {} }, UNKNOWN),
};

describe('an unknown option is config_invalid and is named', () => {
  for (const [name, work] of Object.entries(CASES)) {
    test(name, () =>
      assert.rejects(
        async () => work(),
        ({ code, message }) => code === 'config_invalid' && message.includes('frobnicate'),
      ),
    );
  }
});
