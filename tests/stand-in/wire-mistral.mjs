// The Mistral shapes of an answer: chunks of a stream, or one JSON body.

import { errorBody as error } from './rules-mistral.mjs';

const now = () => Math.floor(Date.now() / 1000);
const frame = (data, piece = false) => ({
  piece,
  bytes: Buffer.from(`data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`),
});
const usageOf = ({ usage }) => ({
  prompt_tokens: usage.input,
  total_tokens: usage.input + usage.output,
  completion_tokens: usage.output,
});
const thinkingChunk = (text) => ({ type: 'thinking', thinking: [{ type: 'text', text }] });

/** Calls come whole, as recorded. */
const callsOf = ({ calls }) =>
  calls.map((c, index) => ({ id: c.id, type: 'function', function: { name: c.name, arguments: c.text }, index }));

/** Frames in order; `piece` marks those that carry content. `terminal: false` leaves the end away. */
export function* frames(answer, { terminal = true } = {}) {
  const created = now();
  const chunk = (delta, finish_reason = null, more = {}) => ({
    id: answer.id,
    object: 'chat.completion.chunk',
    created,
    model: answer.model,
    choices: [{ index: 0, delta, finish_reason }],
    ...more,
  });
  yield frame(chunk({ role: 'assistant', content: '' }));
  for (const p of answer.thinkingPieces) yield frame(chunk({ content: [thinkingChunk(p)] }), true);
  for (const p of answer.pieces) yield frame(chunk({ content: p }), true);
  const calls = callsOf(answer);
  if (!terminal) {
    if (calls.length) yield frame(chunk({ tool_calls: calls }), true);
    return;
  }
  yield frame(
    chunk(calls.length ? { tool_calls: calls } : { content: '' }, answer.finish, { usage: usageOf(answer) }),
    calls.length > 0,
  );
  yield frame('[DONE]');
}

export function whole(answer) {
  const thinking = answer.thinking?.text;
  const content = thinking
    ? [thinkingChunk(thinking), ...(answer.text ? [{ type: 'text', text: answer.text }] : [])]
    : answer.text;
  const message = { role: 'assistant', content, tool_calls: answer.calls.length ? callsOf(answer) : null };
  return {
    id: answer.id,
    object: 'chat.completion',
    created: now(),
    model: answer.model,
    choices: [{ index: 0, message, finish_reason: answer.finish }],
    usage: usageOf(answer),
  };
}

const KINDS = {
  401: ['invalid_request_unauthorized', null],
  429: ['rate_limited', '1300'],
  503: ['internal_server_error', '1000'],
};
const WORDS = { 401: 'Unauthorized', 429: 'Rate limit exceeded' };

export function statusBody(status, message) {
  const [type, code] = KINDS[status] ?? [status < 500 ? 'invalid_request_error' : 'internal_server_error', null];
  return error(message ?? WORDS[status] ?? 'Service unavailable.', { type, code });
}
export const notJson = () =>
  error({ detail: [{ type: 'json_invalid', loc: ['body', 0], msg: 'JSON decode error', input: {} }] });
export const inBandError = (given) =>
  frame(error('Service unavailable.', { type: 'internal_server_error', code: '1000', ...given }));
