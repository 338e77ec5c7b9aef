// What Mistral's conversations refuse. Shares no code with the engine. The schema is that of client-python
// (`src/mistralai/client/models`, read on 2026-11-28), with the members of 2026 that vercel/ai sends; the sentence about calls was given by Mistral's agents
// (client-python#234). The other sentences are those of the chat endpoint, and are not recorded here.

import { errorBody } from './rules-mistral.mjs';

export { errorBody };

const TOP = new Set(
  `inputs model agent_id agent_version stream store handoff_execution instructions tools completion_args guardrails name
  description metadata from_entry_id tool_confirmations`.split(/\s+/),
);
const ARGS = new Set(
  `stop presence_penalty frequency_penalty temperature top_p max_tokens random_seed prediction response_format
  tool_choice reasoning_effort`.split(/\s+/),
);
const COMMON = ['object', 'type', 'created_at', 'completed_at', 'id'];
const OF_MODEL = ['agent_id', 'model'];
/** The members of each entry: those that it may have, and those that it must have. */
const ENTRIES = {
  'message.input': { may: [...COMMON, 'role', 'content', 'prefix'], must: ['role', 'content'] },
  'message.output': { may: [...COMMON, ...OF_MODEL, 'role', 'content'], must: ['content'] },
  'function.call': {
    may: [...COMMON, ...OF_MODEL, 'tool_call_id', 'name', 'arguments', 'confirmation_status'],
    must: ['tool_call_id', 'name', 'arguments'],
  },
  'function.result': { may: [...COMMON, 'tool_call_id', 'result'], must: ['tool_call_id', 'result'] },
  'tool.execution': { may: [...COMMON, ...OF_MODEL, 'name', 'arguments', 'info'], must: ['name', 'arguments'] },
  'agent.handoff': {
    may: [...COMMON, 'previous_agent_id', 'previous_agent_name', 'next_agent_id', 'next_agent_name'],
    must: ['previous_agent_id', 'previous_agent_name', 'next_agent_id', 'next_agent_name'],
  },
};
const CHUNKS = ['text', 'image_url', 'document_url', 'tool_file', 'thinking'];
const OUTPUT_CHUNKS = [...CHUNKS, 'tool_reference'];
const NAME = /^[a-zA-Z0-9_-]{1,64}$/;

class Refusal extends Error {
  constructor(status, error) {
    super();
    Object.assign(this, { status, error });
  }
}
const isObject = (v) => typeof v === 'object' && v !== null && !Array.isArray(v);
const refuse = (message, type = 'invalid_request_error', code = '3230') => {
  throw new Refusal(400, errorBody(message, { type, code }));
};
const invalid = (type, loc, msg, input) => {
  throw new Refusal(422, errorBody({ detail: [{ type, loc: ['body', ...loc], msg, input }] }));
};
const wantString = (value, loc) => {
  if (typeof value !== 'string') invalid('string_type', loc, 'Input should be a valid string', value);
};

function checkTop(body) {
  if (!isObject(body)) invalid('model_attributes_type', [], 'Input should be a valid dictionary', body);
  for (const key of Object.keys(body))
    if (!TOP.has(key)) invalid('extra_forbidden', [key], 'Extra inputs are not permitted', body[key]);
  for (const key of Object.keys(body.completion_args ?? {}))
    if (!ARGS.has(key)) invalid('extra_forbidden', ['completion_args', key], 'Extra inputs are not permitted', key);
  const begins = body.model || body.agent_id;
  if (body.inputs === undefined && !begins && Object.keys(body).length) return;
  if (body.inputs === undefined) invalid('missing', ['inputs'], 'Field required', body);
  if (typeof body.inputs !== 'string' && !Array.isArray(body.inputs))
    invalid('list_type', ['inputs'], 'Input should be a valid list', body.inputs);
  if (body.instructions !== undefined && body.instructions !== null) wantString(body.instructions, ['instructions']);
  if (body.model && body.agent_id) refuse('Only one of model and agent_id can be given', undefined, '3000');
}

function checkContent(content, chunks, at) {
  if (typeof content === 'string') return;
  if (!Array.isArray(content)) invalid('list_type', at, 'Input should be a valid list', content);
  content.forEach((chunk, k) => {
    if (!chunks.includes(chunk?.type))
      invalid(
        'union_tag_invalid',
        [...at, k],
        `Input tag '${chunk?.type}' does not match any of the expected tags`,
        chunk,
      );
    if (chunk.type === 'text') wantString(chunk.text, [...at, k, 'text']);
  });
}

function checkName(name) {
  if (!NAME.test(name)) refuse(`Function name was ${name} but must be a-z, A-Z, 0-9`, 'invalid_function_call', '3280');
}

/** Returns the type of an entry: without one, that of the first schema whose members it has. */
function typeOf(entry) {
  if (entry.type !== undefined) return entry.type;
  const fits = ([, { must }]) => must.every((key) => entry[key] !== undefined && entry[key] !== null);
  const order = ['message.input', 'function.result', 'function.call', 'message.output', 'tool.execution'];
  const found = order.map((type) => [type, ENTRIES[type]]).find(fits) ?? Object.entries(ENTRIES).find(fits);
  return found?.[0] ?? 'message.input';
}

/** Returns the type of an entry that fits its schema. */
function checkEntry(entry, i) {
  if (!isObject(entry)) invalid('model_attributes_type', ['inputs', i], 'Input should be a valid dictionary', entry);
  const kind = typeOf(entry);
  const schema = Object.hasOwn(ENTRIES, kind) ? ENTRIES[kind] : null;
  const at = ['inputs', i, kind];
  if (!schema)
    invalid('union_tag_invalid', ['inputs', i], `Input tag '${kind}' does not match any of the expected tags`, entry);
  for (const key of Object.keys(entry))
    if (!schema.may.includes(key))
      invalid('extra_forbidden', [...at, key], 'Extra inputs are not permitted', entry[key]);
  for (const key of schema.must)
    if (entry[key] === undefined || entry[key] === null) invalid('missing', [...at, key], 'Field required', entry);
  if (kind === 'message.input' && !['user', 'assistant'].includes(entry.role))
    invalid('literal_error', [...at, 'role'], "Input should be 'assistant' or 'user'", entry.role);
  if (kind === 'message.output' && (entry.role ?? 'assistant') !== 'assistant')
    invalid('literal_error', [...at, 'role'], "Input should be 'assistant'", entry.role);
  if (kind.startsWith('message.')) checkContent(entry.content, kind === 'message.output' ? OUTPUT_CHUNKS : CHUNKS, at);
  if (kind === 'function.result') wantString(entry.result, [...at, 'result']);
  if (kind === 'function.call') {
    if (typeof entry.arguments !== 'string' && !isObject(entry.arguments))
      invalid('string_type', [...at, 'arguments'], 'Input should be a valid string', entry.arguments);
    checkName(entry.name);
  }
  if (kind.startsWith('function.')) wantString(entry.tool_call_id, [...at, 'tool_call_id']);
  if (kind === 'tool.execution') wantString(entry.arguments, [...at, 'arguments']);
  return kind;
}

/** Results follow the answer with their calls, as many as there are. `continues`: the service may have the calls. */
function checkCalls(entries, continues) {
  let open = null;
  const held = new Set();
  let answered = new Set();
  // Mistral runs them itself.
  const confirmed = new Set();
  let inAnswer = false;
  const close = () => {
    if (open && answered.size !== open.size) refuse('Not the same number of function calls and responses');
    open = null;
  };
  for (const entry of entries) {
    const kind = typeOf(entry);
    if (kind === 'function.result') {
      const id = entry.tool_call_id;
      inAnswer = false;
      if (!open?.has(id)) {
        if (held.has(id)) refuse('Not the same number of function calls and responses');
        held.add(id);
        if (continues || confirmed.has(id)) continue;
        refuse(`Unexpected tool call id ${id} in tool results`);
      }
      if (answered.has(id)) refuse('Not the same number of function calls and responses');
      answered.add(id);
      continue;
    }
    const isAnswer = kind !== 'message.input' || entry.role === 'assistant';
    if (!isAnswer || !inAnswer) close();
    inAnswer = isAnswer;
    if (kind !== 'function.call') continue;
    if (entry.confirmation_status) {
      confirmed.add(entry.tool_call_id);
      continue;
    }
    if (!open) [open, answered] = [new Set(), new Set()];
    if (open.has(entry.tool_call_id)) refuse('Duplicate tool call id in assistant message', undefined, '3240');
    open.add(entry.tool_call_id);
  }
  close();
}

/** null when the endpoint would take the body, else the status and the error body it would answer. */
export function check(body) {
  try {
    checkTop(body);
    if (body.inputs === undefined || typeof body.inputs === 'string') return null;
    body.inputs.forEach(checkEntry);
    checkCalls(body.inputs, !body.model && !body.agent_id);
    return null;
  } catch (e) {
    if (!(e instanceof Refusal)) throw e;
    return { status: e.status, error: e.error };
  }
}
