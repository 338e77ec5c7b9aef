// From a step (scripted or thought up) to a complete answer with ids, pieces and usage; still no wire.

import { digest, sign } from './signature.mjs';

const FINISH = {
  'openai-chat': { end_turn: 'stop', max_tokens: 'length', tool_use: 'tool_calls', refusal: 'content_filter' },
  anthropic: { stop: 'end_turn', length: 'max_tokens', tool_calls: 'tool_use', content_filter: 'refusal' },
};

function textPieces(text, pieces) {
  if (Array.isArray(pieces)) return pieces;
  if (!text) return [];
  if (Number.isInteger(pieces) && pieces > 0) {
    const letters = Array.from(text);
    const size = Math.ceil(letters.length / pieces);
    return Array.from({ length: Math.ceil(letters.length / size) }, (_, i) => letters.slice(i * size, (i + 1) * size).join(''));
  }
  return text.match(/\s*\S+\s*$|\s*\S+/g) ?? [text];
}

/** Small pieces, one boundary right behind every backslash: readers must not parse before the end. */
function argumentPieces(text) {
  const out = [];
  let piece = '';
  let size = 0;
  for (const letter of text) { // by code point: a real provider does not cut one in two
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

export function answerFor({ dialect, step, body, bodyText, seed }) {
  const openai = dialect === 'openai-chat';
  const prefix = openai ? 'call_' : 'toolu_01';
  const calls = (step.calls ?? []).map((c, i) => {
    const text = typeof c.arguments === 'string' ? c.arguments : JSON.stringify(c.arguments ?? {});
    // The body is in the hash, so a restarted server with fresh counters does not reuse old ids.
    return { id: c.id ?? `${prefix}${digest(`${seed}:${i}:${c.name}:${bodyText}`, openai ? 24 : 22)}`, name: c.name, text };
  });
  let finish = step.finish ?? (calls.length ? 'tool_calls' : 'stop');
  finish = FINISH[dialect][finish] ?? finish;
  const short = finish === 'length' || finish === 'max_tokens';
  // Out of tokens inside the arguments: the last call stays half written.
  if (short && calls.length) calls.at(-1).text = calls.at(-1).text.slice(0, Math.ceil(calls.at(-1).text.length / 2));
  for (const c of calls) c.pieces = argumentPieces(c.text);
  const pieces = textPieces(step.text, step.pieces);
  const text = pieces.join('');
  const thinking = step.thinking && { ...step.thinking };
  if (thinking && !thinking.redacted) thinking.signature ??= sign(thinking.text);
  const out = tokens(text + calls.map((c) => c.name + c.text).join('') + (thinking?.text ?? ''));
  return {
    id: `${openai ? 'chatcmpl-' : 'msg_01'}${digest(`${seed}:${bodyText}`, openai ? 29 : 22)}`,
    model: body.model, pieces, text, calls, finish, thinking,
    thinkingPieces: thinking?.text ? textPieces(thinking.text, thinking.pieces) : [],
    usage: { input: tokens(bodyText), output: out },
    includeUsage: Boolean(body.stream_options?.include_usage),
    interleave: Boolean(step.interleave),
  };
}
