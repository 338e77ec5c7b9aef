import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import test from 'node:test';
import { check as anthropic } from './rules-anthropic.mjs';
import { data, testCases, testRecorded } from './rules-cases.mjs';
import { check as openai } from './rules-openai-chat.mjs';

const user = (content = 'hello') => ({ role: 'user', content });
const call = (id, more = {}) => ({ id, type: 'function', function: { name: 'get_weather', arguments: '{}', ...more } });
const calls = (...list) => ({ role: 'assistant', content: null, tool_calls: list });
const tool = (id, content = 'sunny') => ({ role: 'tool', tool_call_id: id, content });
const chat = (...messages) => ({ model: 'm', messages });
const toolDef = (name, parameters = { type: 'object', properties: {} }) => ({
  type: 'function',
  function: { name, parameters },
});

const use = (id, more = {}) => ({ type: 'tool_use', id, name: 'get_weather', input: {}, ...more });
const result = (id, more = {}) => ({ type: 'tool_result', tool_use_id: id, content: 'sunny', ...more });
const text = (t) => ({ type: 'text', text: t });
const says = (...content) => ({ role: 'assistant', content });
const asks = (...content) => ({ role: 'user', content });
const claude = (...messages) => ({ model: 'm', max_tokens: 100, messages });

const NO_ANSWER =
  /must be followed by tool messages responding to each 'tool_call_id'\. The following tool_call_ids did not have response messages: /;
const NO_CALL = /messages with role 'tool' must be a response to a preceeding message with 'tool_calls'\./;
const NO_RESULT = /^messages\.1: `tool_use` ids were found without `tool_result` blocks immediately after: /;
const NO_USE =
  /unexpected `tool_use_id` found in `tool_result` blocks: .*must have a corresponding `tool_use` block in the previous message/;

const OPENAI_REFUSED = {
  'an open call at the tail': [chat(user(), calls(call('a'))), /response messages: a$/],
  'an open call before a user message': [chat(user(), calls(call('a')), user()), NO_ANSWER],
  'one of two results': [chat(user(), calls(call('a'), call('b')), tool('a'), user()), /response messages: b$/],
  'user text between call and result': [chat(user(), calls(call('a')), user(), tool('a')), NO_ANSWER],
  'system text between call and result': [
    chat(user(), calls(call('a')), { role: 'system', content: 's' }, tool('a')),
    NO_ANSWER,
  ],
  'an orphan result': [chat(user(), tool('a')), NO_CALL],
  'a result after the block was left': [chat(user(), calls(call('a')), tool('a'), user(), tool('a')), NO_CALL],
  'an orphan inside a block': [
    chat(user(), calls(call('a')), tool('a'), tool('b')),
    /'tool_call_id' of 'b' not found in 'tool_calls'/,
  ],
  'a duplicate result': [
    chat(user(), calls(call('a')), tool('a'), tool('a')),
    /Duplicate value for 'tool_call_id' of 'a', in messages\[2\] and messages\[3\]/,
  ],
  'duplicate call ids': [chat(user(), calls(call('a'), call('a')), tool('a')), /Duplicate value for 'id' of 'a'/],
  'an empty tool_calls': [
    chat(user(), { ...calls(), content: 'x' }),
    /^Invalid 'messages\[1\]\.tool_calls': empty array/,
  ],
  'a null tool_calls': [
    chat(user(), { role: 'assistant', content: 'x', tool_calls: null }),
    /expected an array of objects, but got null/,
  ],
  'a long id': [
    chat(user(), calls(call('x'.repeat(83))), tool('x'.repeat(83))),
    /maximum length 64, but got a string with length 83/,
  ],
  'object arguments': [
    chat(user(), calls(call('a', { arguments: {} })), tool('a')),
    /function\.arguments': expected a string, but got an object/,
  ],
  'object content': [chat(user({ text: 'hello' })), /expected one of a string or array of objects, but got an object/],
  'a bad tool name': [chat(user(), calls(call('a', { name: 'a b' })), tool('a')), /does not match pattern/],
  'a call without id': [
    chat(user(), calls({ type: 'function', function: { name: 'f', arguments: '' } })),
    /Missing required parameter: 'messages\[1\]\.tool_calls\[0\]\.id'/,
  ],
  'an image in a tool message': [
    chat(user(), calls(call('a')), tool('a', [{ type: 'image_url', image_url: { url: 'x' } }])),
    /Image URLs are only allowed for messages with role 'user'/,
  ],
  'audio in a tool message': [
    chat(user(), calls(call('a')), tool('a', [{ type: 'input_audio', input_audio: {} }])),
    /Invalid value: 'input_audio'/,
  ],
  'an assistant with nothing': [
    chat(user(), { role: 'assistant', content: null }, user()),
    /expected a string, got null/,
  ],
  'a message without content': [chat({ role: 'user' }), /Missing required parameter: 'messages\[0\]\.content'/],
  'an odd role': [chat({ role: 'model', content: 'x' }), /Invalid value: 'model'\. Supported values are/],
  'no messages': [chat(), /^Invalid 'messages': empty array/],
  'an Anthropic key': [{ ...chat(user()), system: 's' }, /^Unrecognized request argument supplied: system$/],
  'an Anthropic tool': [
    { ...chat(user()), tools: [{ name: 'f', input_schema: { type: 'object' } }] },
    /Missing required parameter: 'tools\[0\]\.type'/,
  ],
  'a video for a model that is not Qwen': [
    chat(user([{ type: 'video_url', video_url: { url: 'x' } }])),
    /Invalid value: 'video_url'/,
  ],
  'a call with members of a flat one': [
    chat(user(), calls({ ...call('a'), name: 'get_weather', arguments: {} }), tool('a')),
    /^Unknown parameter: 'messages\[1\]\.tool_calls\[0\]\.name'/,
  ],
  'a foreign block': [chat(user([{ type: 'tool_result', tool_use_id: 'a' }])), /Invalid value: 'tool_result'/],
  'an inner key of the page': [chat({ ...user(), id: 'm1' }), /Unknown parameter: 'messages\[0\]\.id'/],
  'doubled tools': [{ ...chat(user()), tools: [toolDef('f'), toolDef('f')] }, /duplicate tool name 'f'/],
  'a schema that is no object': [
    { ...chat(user()), tools: [toolDef('f', { type: 'string' })] },
    /schema must be a JSON Schema of 'type: "object"'/,
  ],
  'a system role on o1-mini': [
    { ...chat({ role: 'developer', content: 's' }, user()), model: 'o1-mini' },
    /does not support 'developer' with this model/,
  ],
};
const OPENAI_TAKEN = {
  'a video for Qwen': { ...chat(user([{ type: 'video_url', video_url: { url: 'x' } }])), model: 'qwen3-vl-plus' },
  'results in another order': chat(user(), calls(call('a'), call('b')), tool('b'), tool('a')),
  'an id that comes again in a later turn': chat(
    user(),
    calls(call('a')),
    tool('a'),
    user(),
    calls(call('a')),
    tool('a'),
  ),
  'absent, null and empty content beside calls': chat(
    user(),
    { role: 'assistant', tool_calls: [call('a')] },
    tool('a'),
    { ...calls(call('b')), content: '' },
    tool('b', ''),
  ),
  'sampling keys': {
    ...chat(user()),
    temperature: 1,
    max_tokens: 5,
    stream: true,
    stream_options: { include_usage: true },
  },
};

const THINK = { thinking: { type: 'enabled', budget_tokens: 50 } };
const ANTHROPIC_REFUSED = {
  'an open call at the tail': [claude(asks(text('q')), says(use('a'))), NO_RESULT],
  'an open call before user text': [claude(user(), says(use('a')), user()), NO_RESULT],
  'one of two results': [claude(user(), says(use('a'), use('b')), asks(result('a'))), /immediately after: b\. Each/],
  'results in two messages': [
    claude(user(), says(use('a'), use('b')), asks(result('a')), asks(result('b'))),
    /immediately after: b\. Each/,
  ],
  'text before the result': [claude(user(), says(use('a')), asks(text('x'), result('a'))), NO_RESULT],
  'text between two results': [
    claude(user(), says(use('a'), use('b')), asks(result('a'), text('x'), result('b'))),
    /immediately after: b\. Each/,
  ],
  'a system message between': [
    claude(user(), says(use('a')), { role: 'system', content: [text('s')] }, asks(result('a'))),
    NO_RESULT,
  ],
  'an orphan result': [claude(asks(result('a'))), /^messages\.0\.content\.0: unexpected `tool_use_id` found/],
  'an orphan inside a block': [claude(user(), says(use('a')), asks(result('a'), result('b'))), NO_USE],
  'a late result': [claude(user(), says(use('a')), asks(result('a')), says(text('x')), asks(result('a'))), NO_USE],
  'a duplicate result': [
    claude(user(), says(use('a')), asks(result('a'), result('a'))),
    /each tool_use must have a single result\. Found multiple `tool_result` blocks with id: a/,
  ],
  'duplicate ids in a turn': [
    claude(user(), says(use('a'), use('a')), asks(result('a'))),
    /`tool_use` ids must be unique/,
  ],
  'a foreign id': [
    claude(user(), says(use('a b:c')), asks(result('a b:c'))),
    /tool_use\.id: String should match pattern '\^\[a-zA-Z0-9_-\]\+\$'/,
  ],
  'string input': [
    claude(user(), says(use('a', { input: '{}' })), asks(result('a'))),
    /messages\.1\.content\.0\.tool_use\.input: Input should be a valid dictionary/,
  ],
  'list input': [claude(user(), says(use('a', { input: [1] })), asks(result('a'))), /valid dictionary/],
  'an empty text block': [
    claude(user(), says(text(''), use('a')), asks(result('a'))),
    /^messages: text content blocks must be non-empty$/,
  ],
  'empty content': [claude(user(''), says(text('x'))), /messages\.0: all messages must have non-empty content/],
  'an empty error result': [
    claude(user(), says(use('a')), asks(result('a', { is_error: true, content: '' }))),
    /content cannot be empty if `is_error` is true/,
  ],
  'no messages': [claude(), /^messages: at least one message is required$/],
  'no max_tokens': [{ model: 'm', messages: [user()] }, /^max_tokens: Field required$/],
  'unsigned thinking': [
    claude(user(), says({ type: 'thinking', thinking: 't' }, text('x')), user()),
    /thinking\.signature: Field required$/,
  ],
  'an empty signature': [
    claude(user(), says({ type: 'thinking', thinking: 't', signature: '' }, text('x')), user()),
    /Invalid `signature` in `thinking` block/,
  ],
  'a tool loop without its thinking': [
    { ...claude(user(), says(use('a')), asks(result('a'))), ...THINK },
    /Expected `thinking` or `redacted_thinking`, but found `tool_use`/,
  ],
  'thinking at the end with thinking off': [
    claude(user(), says({ type: 'thinking', thinking: 't', signature: 'x' })),
    /in the final position cannot contain `thinking`/,
  ],
  'a final blank': [claude(user(), says(text('x '))), /final assistant content cannot end with trailing whitespace/],
  'an answer at the end for a newer model': [
    { ...claude(user(), says(text('x'))), model: 'claude-opus-5' },
    /does not support assistant message prefill/,
  ],
  'a tool role': [
    claude(user(), { role: 'tool', content: 'x' }),
    /messages\.1\.role: Input should be 'user' or 'assistant'/,
  ],
  'OpenAI calls': [
    claude(user(), { role: 'assistant', content: 'x', tool_calls: [] }),
    /messages\.1\.tool_calls: Extra inputs are not permitted/,
  ],
  'an extra key in a block': [
    claude(user(), says(use('a', { text: 'x' })), asks(result('a'))),
    /messages\.1\.content\.0\.tool_use\.text: Extra inputs are not permitted/,
  ],
  'an OpenAI key': [{ ...claude(user()), response_format: {} }, /^response_format: Extra inputs are not permitted$/],
  'an OpenAI tool': [{ ...claude(user()), tools: [toolDef('f')] }, /Input tag 'function' found using 'type'/],
  'a tool without schema': [
    { ...claude(user()), tools: [{ name: 'f' }] },
    /tools\.0\.custom\.input_schema: Field required/,
  ],
  'a schema that is no object': [
    { ...claude(user()), tools: [{ name: 'f', input_schema: { type: 'string' } }] },
    /input_schema\.type: Input should be 'object'/,
  ],
  'doubled tools': [
    {
      ...claude(user()),
      tools: [
        { name: 'f', input_schema: { type: 'object' } },
        { name: 'f', input_schema: { type: 'object' } },
      ],
    },
    /Tool names must be unique/,
  ],
  'a call from the user': [claude(asks(use('a'))), /`tool_use` blocks can only be in `assistant` messages/],
  'a server call without its result, and nothing of the client': [
    claude(user(), says({ type: 'server_tool_use', id: 's', name: 'web_search', input: {} }, text('x')), user()),
    /^messages\.1: `web_search` tool use with id `s` was found without a corresponding `web_search_tool_result` block$/,
  ],
  'five cache marks': [
    claude(asks(...['a', 'b', 'c', 'd', 'e'].map((t) => ({ ...text(t), cache_control: { type: 'ephemeral' } })))),
    /^A maximum of 4 blocks with cache_control may be provided\. Found 5\.$/,
  ],
  'adaptive thinking of an older model': [
    { ...claude(user()), model: 'claude-haiku-4-5', thinking: { type: 'adaptive' } },
    /^adaptive thinking is not supported on this model$/,
  ],
  'a server result without its use': [
    claude(user(), says({ type: 'advisor_tool_result', tool_use_id: 's', content: [] }), user()),
    /`advisor_tool_result` block must have a corresponding `server_tool_use` block before it/,
  ],
};
const signed = { type: 'thinking', thinking: 't', signature: 'abc' };
const ANTHROPIC_TAKEN = {
  'an assistant message first': claude(says(text('x')), user()),
  'an id that comes again in a later turn': claude(
    user(),
    says(use('a')),
    asks(result('a')),
    says(use('a')),
    asks(result('a')),
  ),
  'two assistant messages with calls, then both results': claude(
    user(),
    says(use('a')),
    says(use('b')),
    asks(result('b'), result('a')),
  ),
  'text after results': claude(user(), says(use('a')), asks(result('a'), text('more'))),
  'thinking in mid-history with thinking off': claude(user(), says(signed, text('x')), user()),
  'a server call at the end, where the turn paused': claude(
    user(),
    says({ type: 'server_tool_use', id: 's', name: 'web_search', input: {} }),
  ),
  'four cache marks': claude(
    asks(...['a', 'b', 'c', 'd'].map((t) => ({ ...text(t), cache_control: { type: 'ephemeral' } }))),
  ),
  'adaptive thinking since 4.6': { ...claude(user()), model: 'claude-sonnet-4-6', thinking: { type: 'adaptive' } },
  'an unpaired server call beside a client call': claude(
    user(),
    says({ type: 'server_tool_use', id: 's', name: 'web_search', input: {} }, use('a')),
    asks(result('a')),
  ),
  'a system message in mid-history': claude(
    user(),
    says(use('a')),
    asks(result('a')),
    { role: 'system', content: [text('s')] },
    user(),
  ),
  'a tool loop with its thinking': { ...claude(user(), says(signed, use('a')), asks(result('a'))), ...THINK },
};

const messageOf = ({ error }) => error.message;
function assertShape({ status, error }) {
  assert.equal(status, 400);
  assert.equal(error.error.type, 'invalid_request_error');
}
testCases('openai-chat', openai, {
  refused: OPENAI_REFUSED,
  taken: OPENAI_TAKEN,
  messageOf,
  assertShape: (out) => {
    assertShape(out);
    assert.deepEqual(Object.keys(out.error.error), ['message', 'type', 'param', 'code']);
  },
});
testCases('anthropic', anthropic, {
  refused: ANTHROPIC_REFUSED,
  taken: ANTHROPIC_TAKEN,
  messageOf,
  assertShape: (out) => {
    assertShape(out);
    assert.equal(out.error.type, 'error');
  },
});
testRecorded('openai-chat', openai);
testRecorded('anthropic', anthropic);

/** Fewer recorded conversations than these mean that some were lost. */
const LEAST_CONVERSATIONS = 55;

test('openai-chat accepts the recorded conversations', () => {
  const folder = path.join(data, 'trajectories');
  const recorded = fs.readdirSync(folder).filter((file) => file !== 'index.json' && file.endsWith('.json'));
  assert.ok(
    recorded.length >= LEAST_CONVERSATIONS,
    `${recorded.length} recorded conversations, ${LEAST_CONVERSATIONS} at least`,
  );
  for (const file of recorded) {
    const { messages, tools } = JSON.parse(fs.readFileSync(path.join(folder, file), 'utf8'));
    assert.equal(openai({ model: 'm', messages, ...(tools?.length ? { tools } : {}) }), null, file);
  }
});
