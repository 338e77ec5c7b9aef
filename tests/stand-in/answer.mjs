// From a step (scripted or thought up) to a complete answer with ids, pieces and usage; still no wire.

import { digest, sign } from './signature.mjs';

/** Why an answer ends, in each provider's word. */
const FINISH = {
  'openai-chat': { stop: 'stop', length: 'length', tool_calls: 'tool_calls', content_filter: 'content_filter' },
  'openai-responses': {
    stop: 'completed',
    length: 'max_output_tokens',
    tool_calls: 'completed',
    content_filter: 'content_filter',
  },
  anthropic: { stop: 'end_turn', length: 'max_tokens', tool_calls: 'tool_use', content_filter: 'refusal' },
  gemini: { stop: 'STOP', length: 'MAX_TOKENS', tool_calls: 'STOP', content_filter: 'SAFETY' },
  mistral: { stop: 'stop', length: 'length', tool_calls: 'tool_calls', content_filter: 'error' },
  bedrock: { stop: 'end_turn', length: 'max_tokens', tool_calls: 'tool_use', content_filter: 'content_filtered' },
  'gemini-interactions': {
    stop: 'completed',
    length: 'incomplete',
    tool_calls: 'requires_action',
    content_filter: 'failed',
  },
  // Its answers do not say it.
  'mistral-conversations': { stop: null, length: null, tool_calls: null, content_filter: null },
};
/** A script may say it in any provider's word. */
const SYNONYMS = {
  end_turn: 'stop',
  max_tokens: 'length',
  tool_use: 'tool_calls',
  refusal: 'content_filter',
  completed: 'stop',
  max_output_tokens: 'length',
  STOP: 'stop',
  MAX_TOKENS: 'length',
  SAFETY: 'content_filter',
};
/** How each provider spells ids: prefix and length of the rest. */
const CALL_ID = {
  'openai-chat': ['call_', 24],
  'openai-responses': ['call_', 24],
  anthropic: ['toolu_01', 22],
  gemini: ['', 8],
  mistral: ['', 9],
  bedrock: ['tooluse_', 22],
  'mistral-conversations': ['', 9],
  'gemini-interactions': ['', 8],
};
const ANSWER_ID = {
  'openai-chat': ['chatcmpl-', 29],
  'openai-responses': ['resp_', 36],
  anthropic: ['msg_01', 22],
  gemini: ['', 22],
  mistral: ['', 32],
  bedrock: ['', 22],
  'mistral-conversations': ['', 32],
  'gemini-interactions': ['', 24],
};

function textPieces(text, pieces) {
  if (Array.isArray(pieces)) return pieces;
  if (!text) return [];
  if (Number.isInteger(pieces) && pieces > 0) {
    const letters = Array.from(text);
    const size = Math.ceil(letters.length / pieces);
    return Array.from({ length: Math.ceil(letters.length / size) }, (_, i) =>
      letters.slice(i * size, (i + 1) * size).join(''),
    );
  }
  return text.match(/\s*\S+\s*$|\s*\S+/g) ?? [text];
}

/** Small pieces, one boundary right behind every backslash: readers must not parse before the end. */
function argumentPieces(text) {
  const out = [];
  let piece = '';
  let size = 0;
  for (const letter of text) {
    // by code point: a real provider does not cut one in two
    piece += letter;
    size += 1;
    if (letter === '\\' || size >= 6) {
      out.push(piece);
      piece = '';
      size = 0;
    }
  }
  if (piece) out.push(piece);
  return out;
}

const tokens = (text) => Math.max(1, Math.ceil(text.length / 4));

/** `model` is the one that was asked for; Gemini names it in the address. */
export function answerFor({ dialect, step, body, bodyText, seed, model = body.model }) {
  const idOf = ([prefix, length], text) => `${prefix}${digest(text, length)}`;
  const calls = (step.calls ?? []).map((c, i) => {
    const text = typeof c.arguments === 'string' ? c.arguments : JSON.stringify(c.arguments ?? {});
    // The body is in the hash, so a restarted server with fresh counters does not reuse old ids.
    return { id: c.id ?? idOf(CALL_ID[dialect], `${seed}:${i}:${c.name}:${bodyText}`), name: c.name, text };
  });
  const given = step.finish ?? (calls.length ? 'tool_calls' : 'stop');
  const reason = SYNONYMS[given] ?? given;
  // Out of tokens inside the arguments: the last call stays half written.
  if (reason === 'length' && calls.length)
    calls.at(-1).text = calls.at(-1).text.slice(0, Math.ceil(calls.at(-1).text.length / 2));
  for (const c of calls) c.pieces = argumentPieces(c.text);
  const pieces = textPieces(step.text, step.pieces);
  const text = pieces.join('');
  const thinking = step.thinking && { ...step.thinking };
  if (thinking && !thinking.redacted) thinking.signature ??= sign(thinking.text);
  const out = tokens(text + calls.map((c) => c.name + c.text).join('') + (thinking?.text ?? ''));
  return {
    id: idOf(ANSWER_ID[dialect], `${seed}:${bodyText}`),
    model,
    pieces,
    text,
    calls,
    finish: reason in FINISH[dialect] ? FINISH[dialect][reason] : given,
    thinking,
    /** What Mistral's own tools did, {name, arguments, info}, and the agents that a handoff names, {from, to}. */
    executions: step.executions ?? [],
    handoff: step.handoff ?? null,
    thinkingPieces: thinking?.text ? textPieces(thinking.text, thinking.pieces) : [],
    usage: { input: tokens(bodyText), output: out },
    body,
    includeUsage: Boolean(body.stream_options?.include_usage),
    interleave: Boolean(step.interleave),
    withoutId: Boolean(step.withoutId),
    /** The conversation that the response names. */
    conversation: step.conversation ?? body.conversation?.id ?? body.conversation ?? null,
  };
}
