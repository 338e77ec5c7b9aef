import assert from 'node:assert/strict';
import { testCases, testRecorded } from './rules-cases.mjs';
import { check } from './rules-mistral.mjs';

const chat = (...messages) => ({ model: 'mistral-small-latest', messages });
const user = (content = 'hello') => ({ role: 'user', content });
const call = (id, more = {}) => ({ id, type: 'function', function: { name: 'get_weather', arguments: '{}', ...more } });
const calls = (...list) => ({ role: 'assistant', content: '', tool_calls: list });
const tool = (tool_call_id, content = 'sunny') => ({ role: 'tool', tool_call_id, content });
const said = (content = 'ok') => ({ role: 'assistant', content });
const [A, B] = ['aaaaaaaaa', 'bbbbbbbbb'];

const COUNT = /^Not the same number of function calls and responses$/;
const REFUSED = {
  'an open call': [chat(user(), calls(call(A))), COUNT],
  'an open call before a user message': [chat(user(), calls(call(A)), user()), COUNT],
  'one of two results': [chat(user(), calls(call(A), call(B)), tool(A), user()), COUNT],
  'a result without a call': [chat(user(), tool(A)), /^Unexpected role 'tool' after role 'user'$/],
  'a result of another call': [
    chat(user(), calls(call(A)), tool(B)),
    /^Unexpected tool call id bbbbbbbbb in tool results$/,
  ],
  'a duplicate result': [
    chat(user(), calls(call(A)), tool(A), tool(A)),
    /^Duplicate tool call id aaaaaaaaa in tool results$/,
  ],
  'doubled ids': [chat(user(), calls(call(A), call(A)), tool(A)), /^Duplicate tool call id in assistant message$/],
  'an id of another provider': [
    chat(user(), calls(call('call_1')), tool('call_1')),
    /^Tool call id was call_1 but must be a-z, A-Z, 0-9, with a length of 9\.$/,
  ],
  'a call without an id': [chat(user(), calls(call(undefined)), tool(A)), /^Tool call id has to be defined\.$/],
  'a bad name of a result': [
    chat(user(), calls(call(A)), { ...tool(A), name: 'a b' }),
    /^Function name was a b but must be/,
  ],
  'a bad name': [chat(user(), calls(call(A, { name: 'a b' })), tool(A)), /^Function name was a b but must be/],
  'an assistant message at the end': [
    chat(user(), said()),
    /^Expected last role User or Tool \(or Assistant with prefix True\) for serving but got assistant$/,
  ],
  'an assistant message with nothing': [
    chat(user(), said(''), user()),
    /^Assistant message must have either content or tool_calls, but not none\.$/,
  ],
  'a prefix in the middle': [chat(user(), { ...said(), prefix: true }, user()), /prefix True must be the last message/],
  'a system message in the middle': [
    chat(user(), said(), { role: 'system', content: 's' }, user()),
    /^Unexpected role 'system' after role 'assistant'$/,
  ],
};
const MALFORMED = {
  'a developer role': [
    chat({ role: 'developer', content: 's' }, user()),
    /Input tag 'developer' found using 'role' does not match any of the expected tags/,
  ],
  'a key of OpenAI': [chat(user(), { ...said(), refusal: null }, user()), /Extra inputs are not permitted/],
  'an option of OpenAI': [{ ...chat(user()), stream_options: {} }, /Extra inputs are not permitted/],
  'a message without content': [chat({ role: 'user' }), /Field required/],
  'an Anthropic block': [
    chat(user([{ type: 'tool_result', tool_use_id: 'a' }])),
    /Input tag 'tool_result' found using 'type'/,
  ],
  'a call without a function': [chat(user(), calls({ id: A, name: 'f' }), tool(A)), /Field required/],
};
const TAKEN = {
  'results in another order': chat(user(), calls(call(A), call(B)), tool(B), tool(A)),
  'a user message after a result': chat(user(), calls(call(A)), tool(A), user()),
  'an empty list of calls': chat(user(), { ...said(), tool_calls: [] }, user()),
  'a call without a type, and arguments as an object': chat(
    user(),
    calls({ id: A, function: { name: 'f', arguments: { city: 'Oslo' } } }),
    tool(A),
  ),
  'a prefix at the end': chat(user(), { ...said(), prefix: true }),
  thinking: chat(
    user(),
    said([
      { type: 'thinking', thinking: [{ type: 'text', text: 'hm' }] },
      { type: 'text', text: 'ok' },
    ]),
    user(),
  ),
};

testCases('mistral', check, {
  refused: REFUSED,
  taken: TAKEN,
  messageOf: ({ message }) => message,
  assertShape: ({ status, error }) => assert.deepEqual([status, error.object], [400, 'error']),
});
testCases('mistral', check, {
  refused: MALFORMED,
  taken: {},
  messageOf: ({ message }) => message.detail[0].msg,
  assertShape: ({ status, error }) => assert.deepEqual([status, error.message.detail[0].loc[0]], [422, 'body']),
});
testRecorded('mistral', check);
