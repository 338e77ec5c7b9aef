// What the Anthropic messages endpoint refuses, in its own words. Shares no code with the engine.

import { forged } from './signature.mjs';

const TOP = new Set(
  `model messages max_tokens system tools tool_choice stream temperature top_p top_k stop_sequences
  metadata thinking service_tier cache_control container mcp_servers context_management output_config output_format
  inference_geo speed betas thread compaction fallbacks`.split(/\s+/),
);

const SERVER_RESULT = /^(?!tool_result$)[a-z_]+_tool_result$/;
const SERVER_USE = new Set(['server_tool_use', 'mcp_tool_use']);
// Closed blocks: every key that may stand in them. Blocks that are not named here pass as they are.
const KEYS = {
  text: ['text', 'citations'],
  image: ['source'],
  tool_use: ['id', 'name', 'input', 'caller'],
  tool_result: ['tool_use_id', 'content', 'is_error'],
  thinking: ['thinking', 'signature'],
  redacted_thinking: ['data'],
};
const OPEN = new Set(
  `document search_result server_tool_use mcp_tool_use container_upload tool_addition tool_removal
  tool_reference compaction fallback mcp_tool_listing`.split(/\s+/),
);
const IN_RESULT = new Set(['text', 'image', 'document', 'search_result', 'tool_reference']);
const ID = /^[a-zA-Z0-9_-]+$/;
const NAME = /^[a-zA-Z0-9_-]{1,128}$/;

/** What some models reject, by their names (providers' documentation, 2026-11). Names of hosts have other words around
 *  it. */
const versionOf = (model, line) => {
  const found = new RegExp(`claude-${line}-(\\d{1,2})(?:[-.](\\d{1,2})(?!\\d))?`).exec(model ?? '');
  return found ? Number(found[1]) + Number(found[2] ?? 0) / 100 : null;
};
const atLeast = (model, line, from) => (versionOf(model, line) ?? 0) >= from;
const alwaysThinks = (model) =>
  atLeast(model, 'opus', 5.05) ||
  atLeast(model, 'sonnet', 5.05) ||
  atLeast(model, 'fable', 5) ||
  atLeast(model, 'mythos', 5);
const takesNoBudget = (model) =>
  alwaysThinks(model) || atLeast(model, 'opus', 4.07) || atLeast(model, 'sonnet', 5) || atLeast(model, 'haiku', 5.05);
const cannotBeForced = (model) =>
  ['opus', 'sonnet'].some((line) => atLeast(model, line, 5.05)) ||
  ['fable', 'mythos'].some((line) => atLeast(model, line, 5.01));
const takesNoPrefill = (model) =>
  /mythos-preview/.test(model ?? '') ||
  ['opus', 'sonnet', 'haiku', 'fable', 'mythos'].some((line) => atLeast(model, line, 4.06));
/** Sonnet and Opus think adaptively since 4.6, and no Haiku before 5 does. */
const hasNoAdaptive = (model) =>
  ['opus', 'sonnet', 'haiku'].some(
    (line) => versionOf(model, line) !== null && versionOf(model, line) < (line === 'haiku' ? 5 : 4.06),
  );
const isOld = (model) =>
  ['opus', 'sonnet', 'haiku'].some(
    (line) => versionOf(model, line) !== null && versionOf(model, line) < (line === 'opus' ? 4.08 : 5),
  );

class Refusal extends Error {}
const refuse = (message) => {
  throw new Refusal(message);
};
const listOf = (v) => (Array.isArray(v) ? v : []);
const isObject = (v) => typeof v === 'object' && v !== null && !Array.isArray(v);
const extra = (path) => refuse(`${path}: Extra inputs are not permitted`);

function wantString(v, path) {
  if (v === undefined) refuse(`${path}: Field required`);
  if (typeof v !== 'string') refuse(`${path}: Input should be a valid string`);
}
function wantMatch(v, path, pattern) {
  wantString(v, path);
  if (v === '') refuse(`${path}: String should have at least 1 character`);
  if (!pattern.test(v)) refuse(`${path}: String should match pattern '${pattern.source}'`);
}
function wantDictionary(v, path) {
  if (v === undefined) refuse(`${path}: Field required`);
  if (!isObject(v)) refuse(`${path}: Input should be a valid dictionary`);
}

function checkTop(body, vertex) {
  if (!isObject(body)) refuse('Input should be a valid dictionary');
  // Google's address names the model; its body names the version instead of a header.
  if (vertex && typeof body.anthropic_version !== 'string') refuse('anthropic_version: Field required');
  if (vertex && body.model !== undefined) extra('model');
  if (!vertex && body.model === undefined) refuse('model: Field required');
  if (!vertex && typeof body.model !== 'string') refuse('model: Input should be a valid string');
  if (body.model === '') refuse('model: String should have at least 1 character');
  if (body.max_tokens === undefined) refuse('max_tokens: Field required');
  if (!Number.isInteger(body.max_tokens)) refuse('max_tokens: Input should be a valid integer');
  if (body.max_tokens < 1) refuse('max_tokens: Input should be greater than or equal to 1');
  if (body.messages === undefined) refuse('messages: Field required');
  if (!Array.isArray(body.messages)) refuse('messages: Input should be a valid list');
  if (body.messages.length === 0) refuse('messages: at least one message is required');
  for (const k of Object.keys(body)) if (!TOP.has(k) && !(vertex && k === 'anthropic_version')) extra(k);
  if (body.stream !== undefined && typeof body.stream !== 'boolean') refuse('stream: Input should be a valid boolean');
  checkSystem(body.system);
}

function checkSystem(system) {
  if (system === undefined || typeof system === 'string') return;
  if (!Array.isArray(system)) refuse('system: Input should be a valid list');
  system.forEach((b, i) => {
    if (!isObject(b) || b.type !== 'text') refuse(`system.${i}.type: Input should be 'text'`);
    wantString(b.text, `system.${i}.text`);
    if (b.text === '') refuse('system: text content blocks must be non-empty');
  });
}

function checkTools(body) {
  const names = new Set();
  if (body.tools !== undefined) {
    if (!Array.isArray(body.tools)) refuse('tools: Input should be a valid list');
    body.tools.forEach((tool, i) => {
      if (!isObject(tool)) refuse(`tools.${i}: Input should be a valid dictionary or object to extract fields from`);
      if (tool.type !== undefined && tool.type !== 'custom') {
        if (!/_\d{8}$/.test(tool.type) && tool.type !== 'mcp_toolset') {
          refuse(
            `tools.${i}: Input tag '${tool.type}' found using 'type' does not match any of the expected tags: 'bash_20250124', 'custom', 'text_editor_20250728', 'web_search_20250305'`,
          );
        }
        if (tool.name === undefined) return;
      } else {
        const at = `tools.${i}.custom`;
        wantMatch(tool.name, `${at}.name`, NAME);
        if (tool.input_schema === undefined) refuse(`${at}.input_schema: Field required`);
        wantDictionary(tool.input_schema, `${at}.input_schema`);
        if (tool.input_schema.type === undefined) refuse(`${at}.input_schema.type: Field required`);
        if (tool.input_schema.type !== 'object') refuse(`${at}.input_schema.type: Input should be 'object'`);
        for (const k of Object.keys(tool)) {
          if (
            ![
              'type',
              'name',
              'description',
              'input_schema',
              'cache_control',
              'strict',
              'defer_loading',
              'allowed_callers',
              'input_examples',
              'eager_input_streaming',
            ].includes(k)
          )
            extra(`${at}.${k}`);
        }
      }
      if (names.has(tool.name)) refuse('tools: Tool names must be unique.');
      names.add(tool.name);
    });
  }
  const choice = body.tool_choice;
  if (choice === undefined) return;
  wantDictionary(choice, 'tool_choice');
  if (!['auto', 'any', 'tool', 'none'].includes(choice.type)) {
    refuse(
      `tool_choice: Input tag '${choice.type}' found using 'type' does not match any of the expected tags: 'auto', 'any', 'tool', 'none'`,
    );
  }
  if (!body.tools?.length && choice.type !== 'none')
    refuse('tool_choice: tool_choice may only be specified while providing tools');
  if (choice.type === 'tool' && !names.has(choice.name))
    refuse(`tool_choice: Tool '${choice.name}' not found in provided tools`);
  if (body.thinking?.type === 'enabled' && ['any', 'tool'].includes(choice.type)) {
    refuse('Thinking may not be enabled when tool_choice forces tool use.');
  }
}

function checkThinking({ model, thinking, tool_choice: choice }) {
  const guide = 'Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.';
  if (cannotBeForced(model) && ['any', 'tool'].includes(choice?.type))
    refuse('tool_choice: type "tool" and "any" are not supported for this model.');
  if (!thinking) return;
  if (thinking.type === undefined && (atLeast(model, 'sonnet', 5.05) || atLeast(model, 'haiku', 5.05)))
    refuse('thinking.type: Field required');
  if (thinking.type === 'enabled' && takesNoBudget(model))
    refuse(`"thinking.type.enabled" is not supported for this model. ${guide}`);
  if (thinking.type === 'disabled' && alwaysThinks(model))
    refuse(`"thinking.type.disabled" is not supported for this model. ${guide}`);
  if (thinking.type === 'adaptive' && hasNoAdaptive(model)) refuse('adaptive thinking is not supported on this model');
  if (thinking.type === 'between_tools' && /claude/.test(model) && !atLeast(model, 'sonnet', 5.05))
    refuse('"thinking.type.between_tools" is not supported for this model.');
}

/** The marks of tools, of the system's blocks, of blocks and of what is in results count together. */
function checkCacheMarks({ tools, system, messages }) {
  const blocks = messages.flatMap(blocksOf);
  const inResults = blocks.flatMap(({ type, content }) => (type === 'tool_result' ? listOf(content) : []));
  const marked = [...listOf(tools), ...listOf(system), ...blocks, ...inResults].filter((one) => one.cache_control);
  if (marked.length > 4) refuse(`A maximum of 4 blocks with cache_control may be provided. Found ${marked.length}.`);
}

/** A signed summary is the first block of the conversation, and the only one. */
function checkCompaction(messages) {
  const blocks = messages.flatMap((m) => blocksOf(m).map((block) => ({ block, role: m.role })));
  const signed = blocks.filter(({ block }) => block.type === 'compaction' && block.signature && block.content);
  if (signed.length > 1) refuse('`messages` holds more than one `compaction` block with content.');
  if (signed.length && (blocks[0] !== signed[0] || signed[0].role === 'system'))
    refuse('The `compaction` block is not the first block of the conversation.');
}

function checkResult(b, at) {
  wantMatch(b.tool_use_id, `${at}.tool_use_id`, ID);
  if (b.is_error !== undefined && typeof b.is_error !== 'boolean')
    refuse(`${at}.is_error: Input should be a valid boolean`);
  const { content } = b;
  if (b.is_error && (content === undefined || content.length === 0))
    refuse(`${at}: content cannot be empty if \`is_error\` is true`);
  if (content === undefined || typeof content === 'string') return;
  if (!Array.isArray(content)) refuse(`${at}.content: Input should be a valid list`);
  content.forEach((part, k) => {
    const here = `${at}.content.${k}`;
    if (!isObject(part)) refuse(`${here}: Input should be a valid dictionary or object to extract fields from`);
    if (!IN_RESULT.has(part.type)) {
      refuse(
        `${here}: Input tag '${part.type}' found using 'type' does not match any of the expected tags: 'document', 'image', 'search_result', 'text', 'tool_reference'`,
      );
    }
    if (part.type === 'text') checkText(part, `${here}.text`);
  });
}

function checkText(b, at) {
  wantString(b.text, `${at}.text`);
  if (b.text === '') refuse('messages: text content blocks must be non-empty');
}

const CHECKS = {
  text: checkText,
  tool_result: checkResult,
  image: (b, at) => wantDictionary(b.source, `${at}.source`),
  tool_use(b, at) {
    wantMatch(b.id, `${at}.id`, ID);
    wantMatch(b.name, `${at}.name`, NAME);
    wantDictionary(b.input, `${at}.input`);
  },
  thinking(b, at) {
    wantString(b.thinking, `${at}.thinking`);
    wantString(b.signature, `${at}.signature`);
    if (forged(b.thinking, b.signature))
      refuse(`${at.replace(/\.thinking$/, '')}: Invalid \`signature\` in \`thinking\` block`);
  },
  redacted_thinking: (b, at) => wantString(b.data, `${at}.data`),
};

const ONLY = {
  tool_use: 'assistant',
  thinking: 'assistant',
  redacted_thinking: 'assistant',
  server_tool_use: 'assistant',
  tool_result: 'user',
};

function checkBlock(b, role, i, k) {
  const at = `messages.${i}.content.${k}`;
  if (!isObject(b)) refuse(`${at}: Input should be a valid dictionary or object to extract fields from`);
  if (b.type === undefined) refuse(`${at}.type: Field required`);
  const known = Object.hasOwn(KEYS, b.type);
  if (!known && !OPEN.has(b.type) && !SERVER_RESULT.test(b.type)) {
    refuse(
      `${at}: Input tag '${b.type}' found using 'type' does not match any of the expected tags: 'document', 'image', 'redacted_thinking', 'search_result', 'server_tool_use', 'text', 'thinking', 'tool_result', 'tool_use', 'web_search_tool_result'`,
    );
  }
  if (known) {
    for (const key of Object.keys(b)) {
      if (key !== 'type' && key !== 'cache_control' && !KEYS[b.type].includes(key)) extra(`${at}.${b.type}.${key}`);
    }
    CHECKS[b.type](b, `${at}.${b.type}`);
  }
  if (ONLY[b.type] && ONLY[b.type] !== role)
    refuse(`messages.${i}: \`${b.type}\` blocks can only be in \`${ONLY[b.type]}\` messages`);
}

function checkMessage(m, i, last, model) {
  const at = `messages.${i}`;
  if (!isObject(m)) refuse(`${at}: Input should be a valid dictionary or object to extract fields from`);
  if (m.role === undefined) refuse(`${at}.role: Field required`);
  if (!['user', 'assistant', 'system'].includes(m.role)) refuse(`${at}.role: Input should be 'user' or 'assistant'`);
  if (m.role === 'system' && isOld(model)) refuse(`${at}: role 'system' is not supported on this model`);
  if (m.content === undefined) refuse(`${at}.content: Field required`);
  const own = m.role === 'system' ? ['role', 'content', 'clear_at', 'output_config'] : ['role', 'content'];
  for (const k of Object.keys(m)) if (!own.includes(k)) extra(`${at}.${k}`);
  if (typeof m.content !== 'string' && !Array.isArray(m.content)) refuse(`${at}.content: Input should be a valid list`);
  if (m.content.length === 0 && !(last && m.role === 'assistant')) {
    refuse(`${at}: all messages must have non-empty content except for the optional final assistant message`);
  }
  if (Array.isArray(m.content)) m.content.forEach((b, k) => checkBlock(b, m.role, i, k));
}

const blocksOf = (m) => (typeof m.content === 'string' ? [{ type: 'text', text: m.content }] : m.content);

function unanswered(i, ids) {
  refuse(
    `messages.${i}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${ids.join(', ')}. Each \`tool_use\` block must have a corresponding \`tool_result\` block in the next message.`,
  );
}

/** The server's own calls have their results in the same turn (anthropic-sdk-python#961, vercel/ai#13040): only a turn
 *  that pauses, or that waits for the client too (recorded), has one without. */
function checkServerCalls(messages) {
  let waiting = new Map(); // id -> name
  let clientCalls = false;
  messages.forEach((m, i) => {
    if (m.role === 'assistant') {
      for (const b of blocksOf(m)) {
        if (b.type === 'server_tool_use') waiting.set(b.id, b.name);
        if (SERVER_RESULT.test(b.type)) waiting.delete(b.tool_use_id);
        if (b.type === 'fallback') waiting.clear();
        clientCalls ||= b.type === 'tool_use';
      }
      return;
    }
    const [first] = waiting;
    if (first && !clientCalls)
      refuse(
        `messages.${i - 1}: \`${first[1]}\` tool use with id \`${first[0]}\` was found without a corresponding \`${first[1]}_tool_result\` block`,
      );
    waiting = new Map();
    clientCalls = false;
  });
}

/** `continues`: the server has messages before these. */
function checkSequence(messages, continues) {
  let open = new Map(); // id -> index of its message; assistant messages in a row are one turn
  let server = new Set();
  let left = new Set(); // calls before a `fallback` block: with a result or without
  const leave = () => {
    if (open.size) unanswered([...open.values()].at(-1), [...open.keys()]);
  };
  messages.forEach((m, i) => {
    const blocks = blocksOf(m);
    if (m.role === 'system') return leave();
    if (m.role === 'assistant') {
      if (messages[i - 1]?.role !== 'assistant') server = new Set();
      blocks.forEach((b, k) => {
        // Another model went on from here; what the first one had called may stay open.
        if (b.type === 'fallback') {
          open.forEach((_, id) => left.add(id));
          open.clear();
        }
        if (SERVER_USE.has(b.type)) server.add(b.id);
        if (SERVER_RESULT.test(b.type) && !server.has(b.tool_use_id)) {
          const use = b.type === 'mcp_tool_result' ? 'mcp_tool_use' : 'server_tool_use';
          refuse(
            `messages.${i}.content.${k}: unexpected \`tool_use_id\` found in \`${b.type}\` blocks: ${b.tool_use_id}. Each \`${b.type}\` block must have a corresponding \`${use}\` block before it.`,
          );
        }
        if (b.type !== 'tool_use') return;
        if (open.has(b.id)) refuse(`messages.${i}.content.${k}: \`tool_use\` ids must be unique`);
        open.set(b.id, i);
      });
      return;
    }
    const called = messages.slice(0, i).some((one) => one.role === 'assistant');
    const given = new Set();
    const front = new Set(); // only results before any other block count
    let leading = true;
    blocks.forEach((b, k) => {
      if (b.type !== 'tool_result') {
        leading = false;
        return;
      }
      const at = `messages.${i}.content.${k}`;
      if (!open.has(b.tool_use_id) && !left.has(b.tool_use_id) && !(continues && !called)) {
        refuse(
          `${at}: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${b.tool_use_id}. Each \`tool_result\` block must have a corresponding \`tool_use\` block in the previous message.`,
        );
      }
      if (given.has(b.tool_use_id))
        refuse(
          `${at}: each tool_use must have a single result. Found multiple \`tool_result\` blocks with id: ${b.tool_use_id}`,
        );
      given.add(b.tool_use_id);
      if (leading) front.add(b.tool_use_id);
    });
    for (const id of front) open.delete(id);
    leave();
    open = new Map();
    left = new Set();
  });
  leave();
}

function checkEnd(body) {
  const { messages, thinking } = body;
  const on = thinking?.type === 'enabled';
  if (on && thinking.budget_tokens >= body.max_tokens)
    refuse(
      '`max_tokens` must be greater than `thinking.budget_tokens`. Please consult our documentation at https://docs.claude.com/en/docs/build-with-claude/extended-thinking#max-tokens-and-context-window-size',
    );
  const last = messages.at(-1);
  const blocks = blocksOf(last);
  if (last.role === 'assistant') {
    const end = blocks.at(-1);
    const isResumed = /^(compaction|(server|mcp)_tool_use)$/.test(end?.type);
    if (takesNoPrefill(body.model) && !isResumed && !body.compaction)
      refuse('This model does not support assistant message prefill. The conversation must end with a user message.');
    if (end?.type === 'text' && /\s$/.test(end.text))
      refuse('messages: final assistant content cannot end with trailing whitespace');
    const k = on || thinking?.type === 'adaptive' ? -1 : blocks.findIndex((b) => /thinking$/.test(b.type));
    if (k >= 0)
      refuse(
        `messages.${messages.length - 1}.content.${k}.type: When thinking is disabled, an \`assistant\` message in the final position cannot contain \`thinking\`. To use thinking blocks, enable \`thinking\` in your request.`,
      );
  }
  if (!on) return;
  // Only the tool loop that runs now is judged; earlier turns may go without thinking.
  let i = messages.length - 1;
  if (last.role === 'user' && !blocks.some((b) => b.type === 'tool_result')) return;
  while (i >= 0 && messages[i].role !== 'assistant') i -= 1;
  while (i > 0 && messages[i - 1].role === 'assistant') i -= 1;
  // A loop that reaches back to the first message of a thread's continuation began at the server.
  const isResults = (m) => m.role === 'user' && blocksOf(m).every((b) => b.type === 'tool_result');
  if (body.thread?.type === 'continue' && messages.slice(0, Math.max(i, 0)).every(isResults)) return;
  const first = i >= 0 ? blocksOf(messages[i])[0] : null;
  if (first && !/thinking$/.test(first.type)) {
    refuse(
      `messages.${i}.content.0.type: Expected \`thinking\` or \`redacted_thinking\`, but found \`${first.type}\`. When \`thinking\` is enabled, a final \`assistant\` message must start with a thinking block (preceeding the lastmost set of \`tool_use\` and \`tool_result\` blocks). We recommend you include thinking blocks from previous turns. To avoid this requirement, disable \`thinking\`.`,
    );
  }
}

export function errorBody(message, { type = 'invalid_request_error' } = {}) {
  return { type: 'error', error: { type, message } };
}

/** null when Anthropic would take the body, else the status and the error body it would answer. */
export function check(body, { vertex = false } = {}) {
  try {
    checkTop(body, vertex);
    checkTools(body);
    body.messages.forEach((m, i) => checkMessage(m, i, i === body.messages.length - 1, body.model));
    checkThinking(body);
    checkCacheMarks(body);
    checkServerCalls(body.messages);
    checkSequence(body.messages, body.thread?.type === 'continue');
    checkCompaction(body.messages);
    checkEnd(body);
    return null;
  } catch (e) {
    if (!(e instanceof Refusal)) throw e;
    return { status: 400, error: errorBody(e.message) };
  }
}
