// The Anthropic shapes of an answer: named events of a stream, or one JSON body.

import { errorBody as error } from './rules-anthropic.mjs';

const CACHE = { cache_creation_input_tokens: 0, cache_read_input_tokens: 0 };
const frame = (data, piece = false) => ({
  piece,
  bytes: Buffer.from(`event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`),
});
const inputOf = (text) => {
  try {
    return JSON.parse(text);
  } catch {
    return {};
  }
};

/** Blocks in wire order: {start, deltas, complete}. */
function blocksOf(answer) {
  const blocks = [];
  const { thinking } = answer;
  if (thinking?.redacted) {
    const block = { type: 'redacted_thinking', data: thinking.redacted };
    blocks.push({ start: block, deltas: [], complete: block });
  } else if (thinking) {
    blocks.push({
      start: { type: 'thinking', thinking: '', signature: '' },
      deltas: [
        ...answer.thinkingPieces.map((p) => ({ type: 'thinking_delta', thinking: p })),
        { type: 'signature_delta', signature: thinking.signature },
      ],
      complete: { type: 'thinking', thinking: thinking.text, signature: thinking.signature },
    });
  }
  if (answer.pieces.length) {
    blocks.push({
      start: { type: 'text', text: '' },
      deltas: answer.pieces.map((p) => ({ type: 'text_delta', text: p })),
      complete: { type: 'text', text: answer.text },
    });
  }
  for (const c of answer.calls) {
    const head = { type: 'tool_use', id: c.id, name: c.name };
    blocks.push({
      start: { ...head, input: {} },
      // The empty first delta is what the real server sends, also for a call without arguments.
      deltas: ['', ...(c.text === '{}' ? [] : c.pieces)].map((p) => ({ type: 'input_json_delta', partial_json: p })),
      complete: { ...head, input: inputOf(c.text) },
    });
  }
  return blocks;
}

/** The blocks of the whole answer. */
export const itemsOf = (answer) => blocksOf(answer).map(({ complete }) => complete);

/** Frames in order; `piece` marks those that carry content. `terminal: false` leaves the end away. */
export function* frames(answer, { terminal = true } = {}) {
  const { usage } = answer;
  yield frame({
    type: 'message_start',
    message: {
      model: answer.model,
      id: answer.id,
      type: 'message',
      role: 'assistant',
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: { input_tokens: usage.input, ...CACHE, output_tokens: 1, service_tier: 'standard' },
      ...(answer.transformations && { input_transformations: answer.transformations }),
    },
  });
  let pinged = false;
  for (const [index, block] of blocksOf(answer).entries()) {
    yield frame({ type: 'content_block_start', index, content_block: block.start });
    if (!pinged) yield frame({ type: 'ping' });
    pinged = true;
    for (const delta of block.deltas) yield frame({ type: 'content_block_delta', index, delta }, true);
    yield frame({ type: 'content_block_stop', index });
  }
  if (!terminal) return;
  yield frame({
    type: 'message_delta',
    delta: { stop_reason: answer.finish, stop_sequence: null },
    usage: { input_tokens: usage.input, ...CACHE, output_tokens: usage.output },
  });
  yield frame({ type: 'message_stop' });
}

export function whole(answer) {
  return {
    model: answer.model,
    id: answer.id,
    type: 'message',
    role: 'assistant',
    content: itemsOf(answer),
    stop_reason: answer.finish,
    stop_sequence: null,
    usage: { input_tokens: answer.usage.input, ...CACHE, output_tokens: answer.usage.output, service_tier: 'standard' },
    ...(answer.transformations && { input_transformations: answer.transformations }),
  };
}

const TYPES = {
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  529: 'overloaded_error',
};
const WORDS = {
  401: 'invalid x-api-key',
  429: "This request would exceed your account's rate limit. Please try again later.",
  529: 'Overloaded',
};

export function statusBody(status, message) {
  return error(message ?? WORDS[status] ?? 'Internal server error', {
    type: TYPES[status] ?? (status < 500 ? 'invalid_request_error' : 'api_error'),
  });
}
export const notJson = () => error('The request body is not valid JSON: expected value at line 1 column 1');
export const inBandError = (given) =>
  frame({ type: 'error', error: { type: 'overloaded_error', message: 'Overloaded', ...given } });
