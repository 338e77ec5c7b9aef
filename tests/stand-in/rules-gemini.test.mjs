import assert from 'node:assert/strict';
import { testCases, testRecorded } from './rules-cases.mjs';
import { check } from './rules-gemini.mjs';

const body = (...contents) => ({ contents });
const user = (...parts) => ({ role: 'user', parts: parts.length ? parts : [{ text: 'hello' }] });
const says = (...parts) => ({ role: 'model', parts });
const text = (t) => ({ text: t });
const call = (name = 'get_weather', more = {}) => ({ functionCall: { name, args: {} }, ...more });
const response = (name = 'get_weather', more = {}) => ({
  functionResponse: { name, response: { result: 'sunny' }, ...more },
});
const tools = (...names) => [{ functionDeclarations: names.map((name) => ({ name })) }];
const third = { model: 'gemini-3-pro-preview' };

const NEXT = /^Please ensure that function response turn comes immediately after a function call turn\./;
const COUNT =
  /^Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn\.$/;
const FIRST =
  /^Please ensure that function call turn comes immediately after a user turn or after a function response turn\.$/;
const LAST = /^Please ensure that multiturn requests end with a user role or a function response\.$/;

const REFUSED = {
  'an open call': [body(user(), says(call())), LAST],
  'an open call before a user turn': [body(user(), says(call()), user()), NEXT],
  'one of two responses': [body(user(), says(call(), call('b')), user(response())), COUNT],
  'a response too many': [body(user(), says(call()), user(response(), response())), COUNT],
  'responses in two contents': [body(user(), says(call(), call()), user(response()), user(response())), COUNT],
  'a response without a call': [body(user(response())), NEXT],
  'a late response': [body(user(), says(call()), user(response()), says(text('x')), user(response())), NEXT],
  'a call at the start': [body(says(call()), user(response())), FIRST],
  'a call from the user': [body(user(call())), FIRST],
  'a history that ends with the model': [body(user(), says(text('x'))), LAST],
  'an assistant role': [
    body(user(), { role: 'assistant', parts: [text('x')] }, user()),
    /^Please use a valid role: user, model\.$/,
  ],
  'no contents': [body(), /contents is not specified/],
  'empty parts': [body({ role: 'user', parts: [] }), /contents\[0\]\.parts: contents\.parts must not be empty/],
  'a part with nothing': [body(user({})), /required oneof field 'data' must have one initialized field/],
  'a part with two things': [
    body(user(), says({ text: 'x', functionCall: { name: 'f', args: {} } }), user(response())),
    /oneof field 'data' is already set\. Cannot set 'functionCall'/,
  ],
  'arguments as a string': [
    body(user(), says({ functionCall: { name: 'f', args: '{}' } }), user(response())),
    /^Invalid value at 'contents\[1\]\.parts\[0\]\.function_call\.args' \(type\.googleapis\.com\/google\.protobuf\.Struct\), "\{\}"$/,
  ],
  'a list as a response': [
    body(user(), says(call()), user({ functionResponse: { name: 'f', response: [1] } })),
    /function_response\.response' \(type\.googleapis\.com\/google\.protobuf\.Struct\), \[1\]/,
  ],
  'a response without a name': [
    body(user(), says(call()), user({ functionResponse: { response: {} } })),
    /Name cannot be empty/,
  ],
  'a chat message': [
    body({ role: 'user', content: 'x' }),
    /^Invalid JSON payload received\. Unknown name "content" at 'contents\[0\]': Cannot find field\.$/,
  ],
  'chat messages': [{ messages: [] }, /Unknown name "messages": Cannot find field/],
  'doubled tools': [{ ...body(user()), tools: tools('f', 'f') }, /Duplicate function declaration found: f/],
  'a bad name of a tool': [{ ...body(user()), tools: tools('a b') }, /Invalid function name/],
  'an unsigned call of the current turn (3)': [
    body(user(), says(call()), user(response())),
    /^Function call is missing a thought_signature in functionCall parts\..*function call `default_api:get_weather` , position 2\./,
    third,
  ],
  'a later step without its signature (3)': [
    body(user(), says(call('a', { thoughtSignature: 'x' })), user(response('a')), says(call('b')), user(response('b'))),
    /`default_api:b` , position 4/,
    third,
  ],
  'a signature of another call': [
    body(user(), says(call('f', { thoughtSignature: 'c3RhbmRpbgxxxx==' })), user(response('f'))),
    /^Corrupted thought signature\.$/,
    third,
  ],
};
const TAKEN = {
  'results of calls of one name': body(user(), says(call(), call()), user(response(), response())),
  'text and data after responses': body(
    user(),
    says(call()),
    user(response(), text('and?'), { inlineData: { mimeType: 'image/png', data: 'AA==' } }),
  ),
  'two model contents with a call each, then both responses': body(
    user(),
    says(call()),
    says(call('b')),
    user(response(), response('b')),
  ),
  'a user after a user': body(user(), user()),
  'members that are null, and a role of nothing': {
    contents: [
      user(),
      says({ text: null, functionCall: { id: null, name: 'f', args: null } }),
      { role: '', parts: [response('f')] },
    ],
  },
  'a model first that calls nothing': body(says(text('x')), user()),
  'a part that is a signature alone': body(user(), says({ text: '', thoughtSignature: 'x' }), user()),
  'an unsigned call before Gemini 3': [body(user(), says(call()), user(response())), { model: 'gemini-2.5-flash' }],
  'an unsigned call of an earlier turn (3)': [
    body(user(), says(call()), user(response()), says(text('x')), user()),
    third,
  ],
  'a signature on the first of two calls (3)': [
    body(user(), says(call('f', { thoughtSignature: 'x' }), call('g')), user(response('f'), response('g'))),
    third,
  ],
  'the documented placeholder (3)': [
    body(user(), says(call('f', { thoughtSignature: 'skip_thought_signature_validator' })), user(response('f'))),
    third,
  ],
  'the other spelling': {
    contents: [
      user(),
      { role: 'model', parts: [{ function_call: { name: 'f', args: {} } }] },
      user({ function_response: { name: 'f', response: {} } }),
    ],
    system_instruction: { parts: [text('x')] },
  },
};

testCases('gemini', check, {
  refused: REFUSED,
  taken: TAKEN,
  messageOf: ({ error }) => error.message,
  assertShape: ({ status, error }) =>
    assert.deepEqual([status, error.error.code, error.error.status], [400, 400, 'INVALID_ARGUMENT']),
});
testRecorded('gemini', check);
