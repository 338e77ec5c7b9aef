// What the OpenAI responses endpoint rejects, with its own messages. Shares no code with the engine.

import { Refusal, isObject, missing, nounOf, refuse, unknown, wrongType } from './openai-errors.mjs';
import { errorBody } from './rules-openai-chat.mjs';

const TOP = new Set(
  `model input instructions stream stream_options tools tool_choice parallel_tool_calls store include
  previous_response_id conversation temperature top_p top_logprobs max_output_tokens max_tool_calls metadata text
  reasoning truncation user service_tier background prompt prompt_cache_key prompt_cache_retention safety_identifier
  context_management`.split(/\s+/),
);

const MESSAGE = ['type', 'role', 'content', 'id', 'status', 'phase', 'name'];
/** Closed items: every key that may stand in them. Items that are not named here pass as they are. */
const KEYS = {
  message: MESSAGE,
  function_call: ['type', 'id', 'call_id', 'name', 'arguments', 'status', 'namespace', 'caller', 'async'],
  function_call_output: ['type', 'id', 'call_id', 'name', 'namespace', 'output', 'status', 'caller'],
  custom_tool_call: ['type', 'id', 'call_id', 'name', 'input', 'status', 'namespace', 'caller', 'async'],
  custom_tool_call_output: ['type', 'id', 'call_id', 'output', 'status', 'caller'],
  reasoning: ['type', 'id', 'summary', 'content', 'encrypted_content', 'status'],
  item_reference: ['type', 'id'],
};
const OPEN = new Set(
  `web_search_call file_search_call code_interpreter_call image_generation_call computer_call
  computer_call_output local_shell_call local_shell_call_output shell_call shell_call_output apply_patch_call
  apply_patch_call_output mcp_call mcp_list_tools mcp_approval_request mcp_approval_response tool_search_call
  tool_search_output additional_tools compaction compaction_summary compaction_trigger configuration_update program
  program_output agent_message multi_agent_call multi_agent_call_output`.split(/\s+/),
);
/** Calls that the client answers, and what their outputs and the error sentences call them. */
const CALLS = {
  function_call: 'function call',
  custom_tool_call: 'custom tool call',
  computer_call: 'computer call',
  local_shell_call: 'local shell call',
  shell_call: 'shell call',
  apply_patch_call: 'apply patch call',
};
const OUTPUT = /^(.+_call)_output$/;
const PARTS = {
  user: ['input_text', 'input_image', 'input_file', 'input_audio'],
  system: ['input_text'],
  developer: ['input_text'],
  assistant: ['output_text', 'refusal'],
};
const OUTPUT_PARTS = ['input_text', 'input_image', 'input_file'];
const NAME = /^[a-zA-Z0-9_-]+$/;
const SPEAKERS = ['user', 'system', 'developer'];

const quote = (names) =>
  names
    .map((name) => `'${name}'`)
    .join(', ')
    .replace(/, (?='[^']*'$)/, names.length > 2 ? ', and ' : ' and ');
const wrongValue = (path, v, names) =>
  refuse(`Invalid value: '${v}'. Supported values are: ${quote(names)}.`, path, 'invalid_value');

function wantString(v, path) {
  if (v === undefined) missing(path);
  if (typeof v !== 'string') wrongType(path, 'a string', v);
}
function wantShort(v, path, most = 64) {
  wantString(v, path);
  if (v === '')
    refuse(
      `Invalid '${path}': empty string. Expected a string with minimum length 1, but got an empty string instead.`,
      path,
      'empty_string',
    );
  const n = [...v].length;
  if (n > most)
    refuse(
      `Invalid '${path}': string too long. Expected a string with maximum length ${most}, but got a string with length ${n} instead.`,
      path,
      'string_above_max_length',
    );
}
function wantName(v, path) {
  wantShort(v, path, 128);
  if (!NAME.test(v))
    refuse(
      `Invalid '${path}': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.`,
      path,
      'invalid_value',
    );
}

function checkTop(body) {
  if (!isObject(body)) refuse('Invalid body: expected a JSON object.', null);
  for (const key of Object.keys(body)) if (!TOP.has(key)) unknown(key);
  if (body.model === undefined && body.prompt === undefined) missing('model');
  if (body.model !== undefined) wantString(body.model, 'model');
  if (body.input === undefined) {
    if (body.previous_response_id || body.prompt || body.conversation) return;
    refuse(
      'One of "input" or "previous_response_id" or \'prompt\' or \'conversation_id\' must be provided.',
      'input',
      'missing_required_parameter',
    );
  }
  if (typeof body.input !== 'string' && !Array.isArray(body.input)) {
    refuse(
      `Invalid type for 'input': expected one of a string or array of objects, but got ${nounOf(body.input)} instead.`,
      'input',
      'invalid_type',
    );
  }
  if (body.stream !== undefined && body.stream !== null && typeof body.stream !== 'boolean')
    wrongType('stream', 'a boolean', body.stream);
}

function checkTools({ tools, tool_choice: choice }) {
  if (tools === undefined || tools === null) return;
  if (!Array.isArray(tools)) wrongType('tools', 'an array of objects', tools);
  const names = new Set();
  tools.forEach((tool, i) => {
    const at = `tools[${i}]`;
    if (!isObject(tool)) wrongType(at, 'an object', tool);
    wantString(tool.type, `${at}.type`);
    if (tool.type !== 'function' && tool.type !== 'custom') return;
    wantName(tool.name, `${at}.name`);
    if (names.has(tool.name))
      refuse(`Invalid 'tools': duplicate tool name '${tool.name}'.`, `${at}.name`, 'invalid_value');
    names.add(tool.name);
    const schema = tool.parameters;
    if (isObject(schema) && Object.keys(schema).length && schema.type !== 'object') {
      refuse(
        `Invalid schema for function '${tool.name}': schema must be a JSON Schema of 'type: "object"', got 'type: "${schema.type ?? 'None'}"'.`,
        `${at}.parameters`,
        'invalid_function_parameters',
      );
    }
  });
  if (isObject(choice) && choice.type === 'function' && !names.has(choice.name))
    refuse(`Tool choice '${choice.name}' not found in 'tools' parameter.`, 'tool_choice');
}

function checkParts(parts, at, allowed) {
  parts.forEach((part, k) => {
    const here = `${at}[${k}]`;
    if (!isObject(part)) wrongType(here, 'an object', part);
    if (part.type === undefined) missing(`${here}.type`);
    if (!allowed.includes(part.type)) wrongValue(`${here}.type`, part.type, allowed);
    if (/_text$/.test(part.type)) wantString(part.text, `${here}.text`);
    if (part.type === 'refusal') wantString(part.refusal, `${here}.refusal`);
  });
}

function checkText(content, at, allowed) {
  if (content === undefined) missing(at);
  if (Array.isArray(content)) return checkParts(content, at, allowed);
  if (typeof content !== 'string')
    refuse(
      `Invalid type for '${at}': expected one of a string or array of content parts, but got ${nounOf(content)} instead.`,
      at,
      'invalid_type',
    );
}

/** DeepSeek and xAI give items ids of their own making. */
const foreign = (model) => /deepseek|grok/.test(model ?? '');

function wantPrefix(item, at, prefix, model) {
  if (item.id === undefined || item.id === null || foreign(model)) return;
  wantShort(item.id, `${at}.id`);
  if (!item.id.startsWith(prefix))
    refuse(
      `Invalid '${at}.id': '${item.id}'. Expected an ID that begins with '${prefix}'.`,
      `${at}.id`,
      'invalid_value',
    );
}

function checkItem(item, i, model) {
  const at = `input[${i}]`;
  if (!isObject(item)) wrongType(at, 'an object', item);
  const type = item.type ?? (item.role === undefined ? undefined : 'message');
  if (type === undefined) missing(`${at}.type`);
  if (!Object.hasOwn(KEYS, type) && !OPEN.has(type))
    wrongValue(`${at}.type`, type, [...Object.keys(KEYS), ...OPEN].sort());
  if (KEYS[type]) for (const key of Object.keys(item)) if (!KEYS[type].includes(key)) unknown(`${at}.${key}`);
  if (type === 'message') {
    if (!Object.hasOwn(PARTS, item.role))
      wrongValue(`${at}.role`, item.role, ['assistant', 'system', 'developer', 'user']);
    wantPrefix(item, at, 'msg', model);
    checkText(item.content, `${at}.content`, PARTS[item.role]);
  }
  if (type === 'function_call' || type === 'custom_tool_call') {
    wantShort(item.call_id, `${at}.call_id`);
    wantPrefix(item, at, type === 'function_call' ? 'fc' : 'ctc', model);
    wantName(item.name, `${at}.name`);
    const argument = type === 'function_call' ? 'arguments' : 'input';
    wantString(item[argument], `${at}.${argument}`);
  }
  if (type === 'function_call_output' || type === 'custom_tool_call_output') {
    // The output of a function may name its tool in place of its call.
    const named = type === 'function_call_output' && item.name && (item.call_id ?? null) === null;
    if (!named) wantShort(item.call_id, `${at}.call_id`);
    checkText(item.output, `${at}.output`, OUTPUT_PARTS);
  }
  if (type === 'reasoning' && !Array.isArray(item.summary)) missing(`${at}.summary`);
}

const isMessage = (item, role) => (item.type ?? 'message') === 'message' && item.role === role;

/** The names of the tools that a request may call without waiting, each behind its namespace. */
function asyncNames({ tools, input }) {
  const names = new Set();
  const collect = (list, namespace = '') => {
    if (!Array.isArray(list)) return;
    for (const tool of list.filter(isObject)) {
      if (tool.async === true) names.add(`${namespace}/${tool.name}`);
      if (tool.type === 'namespace' && !namespace) collect(tool.tools, tool.name);
    }
  };
  for (const list of [tools, ...input.map((item) => item.tools)]) collect(list);
  return names;
}

/** Outputs answer by id, wherever they stand behind their call; DeepSeek wants them before the next message of anybody
 *  but the model. What is doubled is refused in the words of compatible servers (docs/rules/openai-responses.md): no
 *  refusal of OpenAI's is recorded. A call of an asynchronous tool may stay open. `held`:
 *  call ids that the server itself remembers, or null when any may be; `later`: asynchronous ones that it remembers. */
function checkPairs(items, { held, later = [] }, model, asynchronous) {
  const waits = (item) => !(item.async ?? asynchronous.has(`${item.namespace ?? ''}/${item.name}`));
  const byName = new Map(); // tool -> the ids of its open calls
  const called = new Set([...(held ?? []), ...later]);
  const open = new Map((held ?? []).map((id) => [id, 'function call'])); // id -> what the sentence calls it
  const unanswered = new Set();
  const answeredIds = new Set();
  let between = null; // DeepSeek: a call that another message follows before its output
  for (const item of items) {
    const id = item.call_id;
    if (/_call$/.test(item.type ?? '') && id !== undefined) {
      if (unanswered.has(id)) refuse(`Duplicate 'call_id': ${id}`);
      unanswered.add(id);
      answeredIds.delete(id);
      called.add(id);
      if (CALLS[item.type] && waits(item)) {
        open.set(id, CALLS[item.type]);
        byName.set(item.name, [...(byName.get(item.name) ?? []), id]);
      }
      if (between) refuse(`No tool output found for tool call ${between}.`);
    }
    if (/deepseek/.test(model ?? '') && isMessage(item, 'assistant') && open.size) between ??= [...open.keys()][0];
    if (/deepseek/.test(model ?? '') && SPEAKERS.some((role) => isMessage(item, role)) && open.size)
      refuse(`No tool output found for tool call ${[...open.keys()][0]}.`);
    const answered = OUTPUT.exec(item.type ?? '')?.[1];
    if (!answered || !CALLS[answered]) continue;
    if ((id ?? null) === null) {
      open.delete(byName.get(item.name)?.findLast((one) => open.has(one)));
      continue;
    }
    if (held !== null && !called.has(id))
      refuse(`No tool call found for ${CALLS[answered]} output with call_id ${id}.`);
    if (held !== null && answeredIds.has(id))
      refuse(
        `Duplicate function_call_output for call_id '${id}'. Each function_call must have exactly one matching function_call_output`,
      );
    answeredIds.add(id);
    unanswered.delete(id);
    open.delete(id);
  }
  for (const [id, name] of open) refuse(`No tool output found for ${name} ${id}.`);
}

/** Reasoning that the server knows stays with the item after it. */
function checkReasoning(items) {
  items.forEach((item, i) => {
    if (item.type !== 'reasoning' || !item.id?.startsWith('rs_')) return;
    const next = items[i + 1];
    const lost =
      !next ||
      SPEAKERS.some((role) => isMessage(next, role)) ||
      OUTPUT.test(next.type ?? '') ||
      (isMessage(next, 'assistant') && !next.id);
    if (lost) refuse(`Item '${item.id}' of type 'reasoning' was provided without its required following item.`);
  });
}

/** What `work` returns, or the status and the error body of the refusal that it throws. */
export function refusalOf(work) {
  try {
    return work() ?? null;
  } catch (e) {
    if (!(e instanceof Refusal)) throw e;
    return { status: 400, error: errorBody(e.message, { param: e.param ?? 'input', code: e.code }) };
  }
}

/** null when OpenAI would take the body, else the status and the error body it would answer. `held`: response id -> its
 *  call ids; `later`: response id -> the ids of all asynchronous calls up to it. */
export function check(body, { held, later } = {}) {
  return refusalOf(() => {
    checkTop(body);
    checkTools(body);
    const before = body.previous_response_id;
    if (held && before && !held.has(before))
      refuse(`Previous response with id '${before}' not found.`, 'previous_response_id', 'previous_response_not_found');
    if (!Array.isArray(body.input)) return;
    body.input.forEach((item, i) => checkItem(item, i, body.model));
    const elsewhere = before || body.conversation || body.input.some((item) => item.type === 'item_reference');
    const known = elsewhere ? { held: held?.get(before) ?? null, later: later?.get(before) } : { held: [] };
    checkPairs(body.input, known, body.model, asyncNames(body));
    checkReasoning(body.input);
  });
}
