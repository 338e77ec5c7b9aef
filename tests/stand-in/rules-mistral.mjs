// What Mistral's chat endpoint refuses, in its own words. Shares no code with the engine.
// What does not fit its schema is a 422 with a list; what stands in a wrong order is a 400 with a sentence.

const TOP = new Set(
  `model messages stream tools tool_choice parallel_tool_calls temperature top_p max_tokens stop random_seed n
  presence_penalty frequency_penalty response_format prediction prompt_mode safe_prompt metadata reasoning_effort guardrails
  prompt_cache_key`.split(/\s+/),
);
const KEYS = {
  system: ['role', 'content'],
  user: ['role', 'content'],
  assistant: ['role', 'content', 'tool_calls', 'prefix'],
  tool: ['role', 'content', 'tool_call_id', 'name'],
};
const CHUNKS = ['text', 'image_url', 'document_url', 'file', 'thinking', 'reference', 'input_audio'];
const ID = /^[a-zA-Z0-9]{9}$/;
const NAME = /^[a-zA-Z0-9_-]{1,64}$/;
/** Who may speak after whom; recorded: a user after a tool. */
const AFTER = {
  system: ['system', 'user', 'assistant'],
  user: ['system', 'user', 'assistant'],
  assistant: ['user', 'assistant', 'tool'],
  tool: ['tool', 'user', 'assistant'],
};

class Refusal extends Error {
  constructor(status, error) {
    super();
    Object.assign(this, { status, error });
  }
}
const isObject = (v) => typeof v === 'object' && v !== null && !Array.isArray(v);

export function errorBody(message, { type = 'invalid_request_error', code = null } = {}) {
  return { object: 'error', message, type, param: null, code };
}
const refuse = (message, type, code) => {
  throw new Refusal(400, errorBody(message, { type, code }));
};
const order = (message) => refuse(message, 'invalid_request_message_order', '3230');
const invalid = (type, loc, msg, input) => {
  throw new Refusal(422, errorBody({ detail: [{ type, loc: ['body', ...loc], msg, input }] }));
};

const missing = (loc, input) => invalid('missing', loc, 'Field required', input);
function wantString(v, loc, input) {
  if (v === undefined) missing(loc, input);
  if (typeof v !== 'string') invalid('string_type', loc, 'Input should be a valid string', v);
}
function wantList(v, loc) {
  if (!Array.isArray(v)) invalid('list_type', loc, 'Input should be a valid list', v);
}

function checkTop(body) {
  if (!isObject(body))
    invalid('model_attributes_type', [], 'Input should be a valid dictionary or object to extract fields from', body);
  for (const key of Object.keys(body))
    if (!TOP.has(key)) invalid('extra_forbidden', [key], 'Extra inputs are not permitted', body[key]);
  wantString(body.model, ['model'], body);
  if (body.messages === undefined) missing(['messages'], body);
  wantList(body.messages, ['messages']);
  if (!body.messages.length) refuse('Conversation must have at least one message', 'invalid_request_error', '1200');
}

function checkTools({ tools, tool_choice: choice }) {
  if (tools === undefined || tools === null) return;
  wantList(tools, ['tools']);
  const names = new Set();
  tools.forEach((tool, i) => {
    const at = ['tools', i, 'function'];
    if (!isObject(tool?.function)) missing(at, tool);
    wantString(tool.function.name, [...at, 'name'], tool.function);
    if (!NAME.test(tool.function.name))
      refuse(
        `Function name was ${tool.function.name} but must be a-z, A-Z, 0-9, or contain underscores and dashes, with a maximum length of 64.`,
        'invalid_function_definition',
        '3000',
      );
    if (names.has(tool.function.name))
      refuse(`Duplicate function name: ${tool.function.name}`, 'invalid_function_definition', '3000');
    names.add(tool.function.name);
  });
  if (isObject(choice) && !names.has(choice.function?.name))
    refuse(`Tool choice ${choice.function?.name} is not in the tools`, 'invalid_request_error', '3000');
}

function checkContent({ role, content }, i) {
  const at = ['messages', i, role, 'content'];
  if (content === undefined || content === null) {
    if (role === 'assistant' || role === 'tool') return;
    missing(at, { role });
  }
  if (typeof content === 'string') return;
  wantList(content, at);
  content.forEach((chunk, k) => {
    if (!isObject(chunk))
      invalid(
        'model_attributes_type',
        [...at, k],
        'Input should be a valid dictionary or object to extract fields from',
        chunk,
      );
    if (!CHUNKS.includes(chunk.type)) {
      invalid(
        'union_tag_invalid',
        [...at, k],
        `Input tag '${chunk.type}' found using 'type' does not match any of the expected tags: ${CHUNKS.map((name) => `'${name}'`).join(', ')}`,
        chunk,
      );
    }
    if (chunk.type === 'text') wantString(chunk.text, [...at, k, 'text', 'text'], chunk);
  });
}

function checkName(name, type, code) {
  if (!NAME.test(name))
    refuse(
      `Function name was ${name} but must be a-z, A-Z, 0-9, or contain underscores and dashes, with a maximum length of 64.`,
      type,
      code,
    );
}

function checkCall(call, i, k) {
  const at = ['messages', i, 'assistant', 'tool_calls', k];
  if (!isObject(call?.function)) missing([...at, 'function'], call);
  wantString(call.function.name, [...at, 'function', 'name'], call.function);
  checkName(call.function.name, 'invalid_function_call', '3280');
  const given = call.function.arguments;
  if (typeof given !== 'string' && !isObject(given))
    invalid('string_type', [...at, 'function', 'arguments'], 'Input should be a valid string', given);
  if (call.id === undefined || call.id === null || call.id === 'null')
    refuse('Tool call id has to be defined.', 'invalid_function_call', '3280');
  checkId(call.id, 'invalid_function_call', '3280');
}

function checkId(id, type, code) {
  if (!ID.test(id)) refuse(`Tool call id was ${id} but must be a-z, A-Z, 0-9, with a length of 9.`, type, code);
}

const isEmpty = (content) => content === undefined || content === null || content.length === 0;

function checkMessage(m, i, last) {
  if (!isObject(m))
    invalid(
      'model_attributes_type',
      ['messages', i],
      'Input should be a valid dictionary or object to extract fields from',
      m,
    );
  if (!Object.hasOwn(KEYS, m.role)) {
    invalid(
      'union_tag_invalid',
      ['messages', i],
      `Input tag '${m.role}' found using 'role' does not match any of the expected tags: 'system', 'user', 'assistant', 'tool'`,
      m,
    );
  }
  for (const key of Object.keys(m))
    if (!KEYS[m.role].includes(key))
      invalid('extra_forbidden', ['messages', i, m.role, key], 'Extra inputs are not permitted', m[key]);
  checkContent(m, i);
  if (m.role === 'tool' && m.tool_call_id !== undefined)
    checkId(m.tool_call_id, 'invalid_request_tool_message', '3270');
  if (m.role === 'tool' && typeof m.name === 'string' && m.name)
    checkName(m.name, 'invalid_request_tool_message', '3270');
  if (m.role !== 'assistant') return;
  if (m.tool_calls !== undefined && m.tool_calls !== null)
    wantList(m.tool_calls, ['messages', i, 'assistant', 'tool_calls']);
  (m.tool_calls ?? []).forEach((call, k) => checkCall(call, i, k));
  if (isEmpty(m.content) && isEmpty(m.tool_calls))
    refuse(
      'Assistant message must have either content or tool_calls, but not none.',
      'invalid_request_assistant_message',
      '3240',
    );
  if (m.prefix === true && !last) order('Assistant message with prefix True must be the last message');
}

function checkSequence(messages) {
  let open = null; // ids that tool messages may answer now
  let answered = new Set();
  const close = () => {
    if (open && answered.size !== open.size) order('Not the same number of function calls and responses');
    open = null;
  };
  messages.forEach((m, i) => {
    const before = messages[i - 1]?.role;
    if (m.role === 'tool') {
      if ((before && !AFTER[before].includes('tool')) || !open)
        order(`Unexpected role 'tool' after role '${before ?? 'start'}'`);
      const id = m.tool_call_id;
      if (!open.has(id)) order(`Unexpected tool call id ${id} in tool results`);
      if (answered.has(id)) order(`Duplicate tool call id ${id} in tool results`);
      answered.add(id);
      return;
    }
    close();
    if (before && !AFTER[before].includes(m.role)) order(`Unexpected role '${m.role}' after role '${before}'`);
    const ids = (m.tool_calls ?? []).map((call) => call.id);
    if (new Set(ids).size !== ids.length)
      refuse('Duplicate tool call id in assistant message', 'invalid_request_assistant_message', '3240');
    if (ids.length) [open, answered] = [new Set(ids), new Set()];
  });
  close();
  const last = messages.at(-1);
  if (last.role === 'system' || (last.role === 'assistant' && last.prefix !== true)) {
    order(`Expected last role User or Tool (or Assistant with prefix True) for serving but got ${last.role}`);
  }
}

/** null when Mistral would take the body, else the status and the error body it would answer. */
export function check(body) {
  try {
    checkTop(body);
    checkTools(body);
    body.messages.forEach((m, i) => checkMessage(m, i, i === body.messages.length - 1));
    checkSequence(body.messages);
    return null;
  } catch (e) {
    if (!(e instanceof Refusal)) throw e;
    return { status: e.status, error: e.error };
  }
}
