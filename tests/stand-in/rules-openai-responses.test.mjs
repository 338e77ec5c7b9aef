import assert from 'node:assert/strict';
import { testCases, testRecorded } from './rules-cases.mjs';
import { check } from './rules-openai-responses.mjs';

const body = (...input) => ({ model: 'm', input });
const user = (content = 'hello') => ({ role: 'user', content });
const call = (call_id, more = {}) => ({
  type: 'function_call',
  call_id,
  name: 'get_weather',
  arguments: '{}',
  ...more,
});
const output = (call_id, text = 'sunny') => ({ type: 'function_call_output', call_id, output: text });
const said = (text = 'ok', more = {}) => ({
  type: 'message',
  role: 'assistant',
  content: [{ type: 'output_text', text }],
  ...more,
});
const reasoning = (more = {}) => ({ type: 'reasoning', id: 'rs_1', summary: [], ...more });
const tool = (name = 'f', more = {}) => ({
  type: 'function',
  name,
  parameters: { type: 'object', properties: {} },
  ...more,
});
const held = new Map([['resp_1', ['a']]]);
const later = new Map([['resp_1', ['z']]]);

const REFUSED = {
  'an open call': [body(user(), call('a')), /^No tool output found for function call a\.$/],
  'an open call before a user message': [
    body(user(), call('a'), user('?')),
    /^No tool output found for function call a\.$/,
  ],
  'one of two outputs': [body(user(), call('a'), call('b'), output('a')), /function call b\.$/],
  'an open custom call': [
    body(user(), { type: 'custom_tool_call', call_id: 'a', name: 'f', input: 'x' }),
    /^No tool output found for custom tool call a\.$/,
  ],
  'an output without a call': [
    body(user(), output('a')),
    /^No tool call found for function call output with call_id a\.$/,
  ],
  'an output before its call': [
    body(user(), output('a'), call('a')),
    /^No tool call found for function call output with call_id a\.$/,
  ],
  'a custom output without a call': [
    body(user(), { type: 'custom_tool_call_output', call_id: 'a', output: '' }),
    /custom tool call output with call_id a/,
  ],
  "an asynchronous call's twin that stays open": [
    body(user(), call('z', { async: true }), call('a'), said()),
    /^No tool output found for function call a\.$/,
  ],
  'an output without an id': [
    body(user(), { type: 'function_call_output', output: '' }),
    /^Missing required parameter: 'input\[1\]\.call_id'\.$/,
  ],
  'a null id': [
    body(user(), call(null)),
    /^Invalid type for 'input\[1\]\.call_id': expected a string, but got null instead\.$/,
  ],
  'a long id': [
    body(user(), call('x'.repeat(83)), output('x'.repeat(83))),
    /maximum length 64, but got a string with length 83/,
  ],
  'a call id as an item id': [
    body(user(), call('a', { id: 'call_a' }), output('a')),
    /^Invalid 'input\[1\]\.id': 'call_a'\. Expected an ID that begins with 'fc'\.$/,
  ],
  'a chat id as a message id': [body(user(), said('x', { id: 'chatcmpl-1' })), /Expected an ID that begins with 'msg'/],
  'object arguments': [
    body(user(), call('a', { arguments: {} }), output('a')),
    /arguments': expected a string, but got an object/,
  ],
  'a bad name': [body(user(), call('a', { name: 'a b' }), output('a')), /does not match pattern/],
  'an object as an output': [
    body(user(), call('a'), { ...output('a'), output: { celsius: 1 } }),
    /expected one of a string or array of content parts, but got an object/,
  ],
  'text that the user could not have written': [
    body(user([{ type: 'output_text', text: 'x' }])),
    /Invalid value: 'output_text'\. Supported values are: 'input_text', 'input_image', 'input_file', and 'input_audio'\./,
  ],
  'text that the model could not have written': [
    body(user(), { role: 'assistant', content: [{ type: 'input_text', text: 'x' }] }),
    /Invalid value: 'input_text'\. Supported values are: 'output_text' and 'refusal'\./,
  ],
  'a chat part': [body(user([{ type: 'text', text: 'x' }])), /Invalid value: 'text'/],
  'a tool role': [
    body(user(), { role: 'tool', content: 'x' }),
    /Invalid value: 'tool'\. Supported values are: 'assistant', 'system', 'developer', and 'user'\./,
  ],
  'chat calls': [
    body(user(), { role: 'assistant', content: '', tool_calls: [] }),
    /^Unknown parameter: 'input\[1\]\.tool_calls'\.$/,
  ],
  'an item of another shape': [
    body(user(), { type: 'tool_result', id: 'a' }),
    /^Invalid value: 'tool_result'\. Supported values are: /,
  ],
  'an item without a type': [body({ text: 'x' }), /^Missing required parameter: 'input\[0\]\.type'\.$/],
  'reasoning at the end': [
    body(user(), reasoning()),
    /^Item 'rs_1' of type 'reasoning' was provided without its required following item\.$/,
  ],
  'reasoning before a user message': [body(user(), reasoning(), user('?')), /without its required following item/],
  'reasoning whose message has lost its id': [
    body(user(), reasoning(), said('x'), user('?')),
    /without its required following item/,
  ],
  'reasoning without a summary': [
    body(user(), { type: 'reasoning', id: 'rs_1' }, said()),
    /^Missing required parameter: 'input\[1\]\.summary'\.$/,
  ],
  'two outputs of one call': [
    body(user(), call('a'), output('a'), output('a')),
    /^Duplicate function_call_output for call_id 'a'\. Each function_call must have exactly one/,
  ],
  'two open calls with one id': [
    body(user(), call('a'), call('a', { name: 'f' }), output('a'), output('a')),
    /^Duplicate 'call_id': a$/,
  ],
  'a user message between call and output (DeepSeek)': [
    { ...body(user(), call('a'), user('?'), output('a')), model: 'deepseek-v4-pro' },
    /^No tool output found for tool call a\.$/,
  ],
  'an assistant message between calls (DeepSeek)': [
    { ...body(user(), call('a'), said(), call('b'), output('a'), output('b')), model: 'deepseek-chat' },
    /^No tool output found for tool call a\.$/,
  ],
  messages: [{ model: 'm', messages: [user()] }, /^Unknown parameter: 'messages'\.$/],
  'no input': [{ model: 'm' }, /must be provided\.$/],
  'a nested tool': [
    { ...body(user()), tools: [{ type: 'function', function: { name: 'f' } }] },
    /^Missing required parameter: 'tools\[0\]\.name'\.$/,
  ],
  'doubled tools': [{ ...body(user()), tools: [tool(), tool()] }, /duplicate tool name 'f'/],
  'a response that nobody gave': [
    { ...body(user()), previous_response_id: 'resp_0' },
    /^Previous response with id 'resp_0' not found\.$/,
    { held },
  ],
  'a call of the last response that stays open': [
    { ...body(user()), previous_response_id: 'resp_1' },
    /^No tool output found for function call a\.$/,
    { held },
  ],
  'an output that the last response did not ask for': [
    { ...body(output('a'), output('b')), previous_response_id: 'resp_1' },
    /call_id b\.$/,
    { held },
  ],
};
const TAKEN = {
  'text alone': { model: 'm', input: 'hello' },
  'outputs in another order': body(user(), call('a'), call('b'), output('b'), output('a')),
  'a call, then a user message, then the output': body(user(), call('a'), user('?'), output('a')),
  'a call, then a message, then the output': body(user(), call('a'), said(), output('a')),
  'an id that comes again in a later turn': body(user(), call('a'), output('a'), user(), call('a'), output('a')),
  'calls without item ids': body(user(), reasoning({ id: undefined }), call('a'), output('a')),
  'reasoning after reasoning': body(
    user(),
    reasoning(),
    reasoning({ id: 'rs_2' }),
    call('a', { id: 'fc_1' }),
    output('a'),
  ),
  'reasoning before a message that has its id': body(user(), reasoning(), said('x', { id: 'msg_1' }), user('?')),
  'an output that answers a tool search': body(
    user(),
    { type: 'tool_search_call', call_id: 'a', execution: 'client', status: 'completed', arguments: {} },
    output('a'),
  ),
  'the outputs of the last response': [{ ...body(output('a')), previous_response_id: 'resp_1' }, { held }],
  'an asynchronous call that stays open': body(user(), call('a', { async: true }), said(), user('?')),
  'an output of an asynchronous call, after other messages': body(
    user(),
    call('a', { async: true }),
    said(),
    user('?'),
    output('a'),
  ),
  'an asynchronous call of an earlier response': [
    { ...body(output('a'), output('z')), previous_response_id: 'resp_1' },
    { held, later },
  ],
  'an output with an image': body(
    user(),
    call('a'),
    output('a', [{ type: 'input_image', image_url: 'data:image/png;base64,AA==' }]),
  ),
};

testCases('openai-responses', check, {
  refused: REFUSED,
  taken: TAKEN,
  messageOf: ({ error }) => error.message,
  assertShape({ status, error }) {
    assert.equal(status, 400);
    assert.equal(error.error.type, 'invalid_request_error');
    assert.deepEqual(Object.keys(error.error), ['message', 'type', 'param', 'code']);
  },
});
testRecorded('openai-responses', check);
