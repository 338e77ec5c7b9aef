// The OpenAI chat shapes of an answer: chunks of a stream, or one JSON body.

import { errorBody as error } from './rules-openai-chat.mjs';

const DETAILS = {
  prompt_tokens_details: { cached_tokens: 0, audio_tokens: 0 },
  completion_tokens_details: {
    reasoning_tokens: 0,
    audio_tokens: 0,
    accepted_prediction_tokens: 0,
    rejected_prediction_tokens: 0,
  },
};
const usageOf = ({ usage }) => ({
  prompt_tokens: usage.input,
  completion_tokens: usage.output,
  total_tokens: usage.input + usage.output,
  ...DETAILS,
});
const now = () => Math.floor(Date.now() / 1000);
const frame = (data, piece = false) => ({
  piece,
  bytes: Buffer.from(`data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`),
});

function* argumentDeltas(calls, interleave) {
  const head = (c, index) => ({ index, id: c.id, type: 'function', function: { name: c.name, arguments: '' } });
  if (!interleave) {
    for (const [index, c] of calls.entries()) {
      yield head(c, index);
      for (const p of c.pieces) yield { index, function: { arguments: p } };
    }
    return;
  }
  for (const [index, c] of calls.entries()) yield head(c, index);
  for (let k = 0; calls.some((c) => k < c.pieces.length); k += 1) {
    for (const [index, c] of calls.entries())
      if (k < c.pieces.length) yield { index, function: { arguments: c.pieces[k] } };
  }
}

/** Frames in order; `piece` marks those that carry content, which gates and pauses count. `terminal: false` leaves the
 *  end away. */
export function* frames(answer, { terminal = true } = {}) {
  const created = now();
  const chunk = (delta, finish_reason = null) => ({
    id: answer.id,
    object: 'chat.completion.chunk',
    created,
    model: answer.model,
    service_tier: 'default',
    system_fingerprint: 'fp_standin',
    choices: [{ index: 0, delta, logprobs: null, finish_reason }],
    ...(answer.includeUsage ? { usage: null } : {}),
  });
  const empty = answer.calls.length && !answer.pieces.length ? null : '';
  yield frame(chunk({ role: 'assistant', content: empty, refusal: null }));
  for (const p of answer.thinkingPieces) yield frame(chunk({ reasoning_content: p }), true);
  for (const p of answer.pieces) yield frame(chunk({ content: p }), true);
  for (const d of argumentDeltas(answer.calls, answer.interleave)) yield frame(chunk({ tool_calls: [d] }), true);
  if (!terminal) return;
  yield frame(chunk({}, answer.finish));
  if (answer.includeUsage) yield frame({ ...chunk({}), choices: [], usage: usageOf(answer) });
  yield frame('[DONE]');
}

export function whole(answer) {
  const message = { role: 'assistant', content: answer.text || null, refusal: null, annotations: [] };
  if (answer.thinking?.text) message.reasoning_content = answer.thinking.text;
  if (answer.calls.length) {
    message.tool_calls = answer.calls.map((c) => ({
      id: c.id,
      type: 'function',
      function: { name: c.name, arguments: c.text },
    }));
  }
  return {
    id: answer.id,
    object: 'chat.completion',
    created: now(),
    model: answer.model,
    choices: [{ index: 0, message, logprobs: null, finish_reason: answer.finish }],
    usage: usageOf(answer),
    service_tier: 'default',
    system_fingerprint: 'fp_standin',
  };
}

const TYPES = {
  401: ['invalid_request_error', 'invalid_api_key'],
  404: ['invalid_request_error', 'model_not_found'],
  429: ['requests', 'rate_limit_exceeded'],
};
const WORDS = {
  401: 'Incorrect API key provided.',
  429: 'Rate limit reached for requests. Please try again in 1s.',
  503: 'The engine is currently overloaded, please try again later',
};

export function statusBody(status, message) {
  const [type, code] = TYPES[status] ?? [status < 500 ? 'invalid_request_error' : 'server_error', null];
  return error(message ?? WORDS[status] ?? 'The server had an error while processing your request. Sorry about that!', {
    type,
    code,
  });
}
export const notJson = () =>
  error(
    "We could not parse the JSON body of your request. (HINT: This likely means you aren't using your HTTP library correctly. The OpenAI API expects a JSON payload, but what was sent was not valid JSON.)",
  );
export const inBandError = (given) =>
  frame({
    error: {
      message: 'The server had an error while processing your request. Sorry about that!',
      type: 'server_error',
      param: null,
      code: null,
      ...given,
    },
  });
