// What the OpenAI chat endpoint rejects, with its own messages. It shares no code with the engine on purpose, so that
// both do not have the same defect.

import { Refusal, isObject, missing, nounOf, refuse, unknown, wrongType } from './openai-errors.mjs';

const TOP = new Set(
  `model messages stream stream_options tools tool_choice parallel_tool_calls n temperature top_p
  max_tokens max_completion_tokens stop seed frequency_penalty presence_penalty logit_bias logprobs top_logprobs user
  metadata store service_tier response_format modalities audio prediction reasoning_effort verbosity functions
  function_call web_search_options prompt_cache_key prompt_cache_retention safety_identifier
  reasoning thinking enable_thinking`.split(/\s+/),
); // the last line: compatible servers

const COMMON = ['role', 'content', 'name', 'cache_control'];
const KEYS = {
  system: new Set(COMMON),
  developer: new Set(COMMON),
  user: new Set(COMMON),
  tool: new Set([...COMMON, 'tool_call_id']),
  function: new Set(COMMON),
  assistant: new Set([
    ...COMMON,
    'tool_calls',
    'function_call',
    'refusal',
    'audio',
    'annotations',
    'reasoning',
    'reasoning_content',
    'reasoning_details',
    'extra_content',
  ]),
};
const PARTS = {
  system: ['text'],
  developer: ['text'],
  tool: ['text'],
  function: ['text'],
  user: ['text', 'image_url', 'input_audio', 'file'],
  assistant: ['text', 'refusal'],
};
const ALL_PARTS = "'text', 'image_url', 'input_audio', 'refusal', 'audio', and 'file'";
const NAME = /^[a-zA-Z0-9_-]+$/;

const emptyArray = (path) =>
  refuse(
    `Invalid '${path}': empty array. Expected an array with minimum length 1, but got an empty array instead.`,
    path,
    'empty_array',
  );

function wantString(v, path) {
  if (v === undefined) missing(path);
  if (typeof v !== 'string') wrongType(path, 'a string', v);
}
function wantObject(v, path) {
  if (v === undefined) missing(path);
  if (!isObject(v)) wrongType(path, 'an object', v);
}
function wantArray(v, path) {
  if (!Array.isArray(v)) wrongType(path, 'an array of objects', v);
  if (v.length === 0) emptyArray(path);
}
function wantShort(v, path) {
  wantString(v, path);
  if (v === '')
    refuse(
      `Invalid '${path}': empty string. Expected a string with minimum length 1, but got an empty string instead.`,
      path,
      'empty_string',
    );
  const n = [...v].length;
  if (n > 64)
    refuse(
      `Invalid '${path}': string too long. Expected a string with maximum length 64, but got a string with length ${n} instead.`,
      path,
      'string_above_max_length',
    );
}
function wantName(v, path) {
  wantShort(v, path);
  if (!NAME.test(v))
    refuse(
      `Invalid '${path}': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.`,
      path,
      'invalid_value',
    );
}

function checkTop(body) {
  if (!isObject(body)) refuse('Invalid body: expected a JSON object.');
  const odd = Object.keys(body).filter((k) => !TOP.has(k));
  if (odd.length) refuse(`Unrecognized request argument${odd.length > 1 ? 's' : ''} supplied: ${odd.join(', ')}`);
  if (typeof body.model !== 'string' || body.model === '') refuse('you must provide a model parameter');
  if (body.messages === undefined) missing('messages');
  wantArray(body.messages, 'messages');
  if (body.stream !== undefined && body.stream !== null && typeof body.stream !== 'boolean')
    wrongType('stream', 'a boolean', body.stream);
  if (body.stream_options && !body.stream)
    refuse("The 'stream_options' parameter is only allowed when 'stream' is enabled.", 'stream_options');
}

function checkTools(body) {
  if (body.tools === undefined || body.tools === null) {
    for (const key of ['tool_choice', 'parallel_tool_calls']) {
      // `none` and `auto` say nothing about a tool, so they pass alone.
      if (body[key] !== undefined && body[key] !== null && !['none', 'auto'].includes(body[key])) {
        refuse(`Invalid value for '${key}': '${key}' is only allowed when 'tools' are specified.`, key);
      }
    }
    return;
  }
  wantArray(body.tools, 'tools');
  const names = new Set();
  body.tools.forEach((tool, i) => {
    const at = `tools[${i}]`;
    if (!isObject(tool)) wrongType(at, 'an object', tool);
    if (tool.type === undefined) missing(`${at}.type`);
    if (!['function', 'custom'].includes(tool.type)) {
      refuse(
        `Invalid value: '${tool.type}'. Supported values are: 'function' and 'custom'.`,
        `${at}.type`,
        'invalid_value',
      );
    }
    for (const k of Object.keys(tool)) if (!['type', tool.type, 'cache_control'].includes(k)) unknown(`${at}.${k}`);
    const def = tool[tool.type];
    const inner = `${at}.${tool.type}`;
    wantObject(def, inner);
    wantName(def.name, `${inner}.name`);
    if (names.has(def.name))
      refuse(`Invalid 'tools': duplicate tool name '${def.name}'.`, `${inner}.name`, 'invalid_value');
    names.add(def.name);
    if (tool.type === 'custom') return;
    for (const k of Object.keys(def))
      if (!['name', 'type', 'description', 'parameters', 'strict'].includes(k)) unknown(`${inner}.${k}`);
    const schema = def.parameters;
    if (schema === undefined || schema === null) return;
    if (!isObject(schema)) wrongType(`${inner}.parameters`, 'an object', schema);
    if (Object.keys(schema).length && schema.type !== 'object') {
      refuse(
        `Invalid schema for function '${def.name}': schema must be a JSON Schema of 'type: "object"', got 'type: "${schema.type ?? 'None'}"'.`,
        `${inner}.parameters`,
        'invalid_function_parameters',
      );
    }
  });
  const chosen = isObject(body.tool_choice) && body.tool_choice.function?.name;
  if (chosen && !names.has(chosen)) refuse(`Tool choice '${chosen}' not found in 'tools' parameter.`, 'tool_choice');
}

function checkParts(m, i, model) {
  const at = `messages[${i}].content`;
  if (m.content.length === 0) emptyArray(at);
  m.content.forEach((part, k) => {
    const here = `${at}[${k}]`;
    if (!isObject(part)) wrongType(here, 'an object', part);
    if (part.type === undefined) missing(`${here}.type`);
    if (part.type === 'input_audio' && m.role === 'user' && !/audio/.test(model)) {
      refuse(
        `Invalid 'messages[${i}]'. Content blocks are expected to be either text or image_url type.`,
        `messages[${i}]`,
        'invalid_value',
      );
    }
    // Alibaba Cloud documents it for Qwen's models.
    if (part.type === 'video_url' && m.role === 'user' && /qwen/i.test(model))
      return wantObject(part.video_url, `${here}.video_url`);
    if (!PARTS[m.role].includes(part.type)) {
      if (part.type === 'image_url') {
        refuse(
          `Invalid 'messages[${i}]'. Image URLs are only allowed for messages with role 'user', but this message with role '${m.role}' contains an image URL.`,
          `messages[${i}]`,
          'invalid_value',
        );
      }
      const supported = m.role === 'user' ? ALL_PARTS : PARTS[m.role].map((p) => `'${p}'`).join(' and ');
      refuse(`Invalid value: '${part.type}'. Supported values are: ${supported}.`, `${here}.type`, 'invalid_value');
    }
    if (part.type === 'text') wantString(part.text, `${here}.text`);
    if (part.type === 'refusal') wantString(part.refusal, `${here}.refusal`);
    if (part.type === 'image_url') {
      wantObject(part.image_url, `${here}.image_url`);
      wantString(part.image_url.url, `${here}.image_url.url`);
    }
  });
}

function checkCalls(m, i) {
  const at = `messages[${i}].tool_calls`;
  wantArray(m.tool_calls, at);
  const seen = new Set();
  m.tool_calls.forEach((call, k) => {
    const here = `${at}[${k}]`;
    if (!isObject(call)) wrongType(here, 'an object', call);
    wantShort(call.id, `${here}.id`);
    if (call.type === undefined) missing(`${here}.type`);
    if (!['function', 'custom'].includes(call.type)) {
      refuse(
        `Invalid value: '${call.type}'. Supported values are: 'function' and 'custom'.`,
        `${here}.type`,
        'invalid_value',
      );
    }
    for (const key of Object.keys(call))
      if (!['id', 'type', 'index', call.type, 'extra_content'].includes(key)) unknown(`${here}.${key}`);
    const inner = `${here}.${call.type}`;
    wantObject(call[call.type], inner);
    wantName(call[call.type].name, `${inner}.name`);
    const argument = call.type === 'custom' ? 'input' : 'arguments';
    wantString(call[call.type][argument], `${inner}.${argument}`);
    for (const key of Object.keys(call[call.type])) if (!['name', argument].includes(key)) unknown(`${inner}.${key}`);
    if (seen.has(call.id))
      refuse(
        `Invalid parameter: Duplicate value for 'id' of '${call.id}' in 'tool_calls' of messages[${i}].`,
        `messages.[${i}].tool_calls`,
      );
    seen.add(call.id);
  });
}

function checkMessage(m, i, model) {
  const at = `messages[${i}]`;
  if (!isObject(m)) wrongType(at, 'an object', m);
  if (m.role === undefined) missing(`${at}.role`);
  if (!Object.hasOwn(KEYS, m.role)) {
    refuse(
      `Invalid value: '${m.role}'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'.`,
      `${at}.role`,
      'invalid_value',
    );
  }
  for (const k of Object.keys(m)) if (!KEYS[m.role].has(k)) unknown(`${at}.${k}`);
  if (/^o1-mini/.test(model) && (m.role === 'system' || m.role === 'developer')) {
    refuse(
      `Unsupported value: '${at}.role' does not support '${m.role}' with this model.`,
      `${at}.role`,
      'unsupported_value',
    );
  }
  if (m.role === 'assistant' && m.tool_calls !== undefined) checkCalls(m, i);
  if (m.role === 'tool') wantString(m.tool_call_id, `${at}.tool_call_id`);
  if (m.content === undefined || m.content === null) {
    const says = m.role === 'assistant' && (m.tool_calls || m.function_call || m.refusal || m.audio);
    if (says) return;
    if (m.content === null)
      refuse("Invalid value for 'content': expected a string, got null.", `messages.[${i}].content`);
    missing(`${at}.content`);
  }
  if (Array.isArray(m.content)) checkParts(m, i, model);
  else if (typeof m.content !== 'string') {
    refuse(
      `Invalid type for '${at}.content': expected one of a string or array of objects, but got ${nounOf(m.content)} instead.`,
      `${at}.content`,
      'invalid_type',
    );
  }
}

function checkSequence(messages) {
  let asked = null; // ids of the assistant message that tool messages may answer now
  let answered = new Map(); // id -> index of its tool message
  const close = (i) => {
    const open = asked ? [...asked].filter((id) => !answered.has(id)) : [];
    if (open.length) {
      refuse(
        `An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: ${open.join(', ')}`,
        `messages.[${i}].role`,
      );
    }
    asked = null;
  };
  messages.forEach((m, i) => {
    if (m.role !== 'tool') {
      close(i);
      if (m.tool_calls) {
        asked = new Set(m.tool_calls.map((c) => c.id));
        answered = new Map();
      }
      return;
    }
    const id = m.tool_call_id;
    if (!asked)
      refuse(
        "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
        `messages.[${i}].role`,
      );
    if (!asked.has(id))
      refuse(
        `Invalid parameter: 'tool_call_id' of '${id}' not found in 'tool_calls' of previous message.`,
        `messages.[${i}].tool_call_id`,
      );
    if (answered.has(id))
      refuse(
        `Invalid parameter: Duplicate value for 'tool_call_id' of '${id}', in messages[${answered.get(id)}] and messages[${i}].`,
        `messages.[${i}].tool_call_id`,
      );
    answered.set(id, i);
  });
  close(messages.length);
}

export function errorBody(message, { type = 'invalid_request_error', param = null, code = null } = {}) {
  return { error: { message, type, param, code } };
}

/** Returns null if OpenAI accepts the body, else the status and the error body of its response. */
export function check(body) {
  try {
    checkTop(body);
    checkTools(body);
    body.messages.forEach((m, i) => checkMessage(m, i, body.model));
    checkSequence(body.messages);
    return null;
  } catch (e) {
    if (!(e instanceof Refusal)) throw e;
    return { status: 400, error: errorBody(e.message, { param: e.param, code: e.code }) };
  }
}
