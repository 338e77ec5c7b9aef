// The Gemini shapes of an answer: events of a stream, one JSON array that grows, or one JSON body.

import { errorBody as error, signed } from './rules-gemini.mjs';
import { sign } from './signature.mjs';

const argsOf = (text) => {
  try {
    return JSON.parse(text);
  } catch {
    return {};
  }
};

/** Gemini 3 names its calls and signs the first of a step; what came before did neither. */
function callParts({ calls, model }) {
  const third = Number(/gemini-(\d+)/.exec(model)?.[1]) >= 3;
  return calls.map(({ id, name, text }, i) => {
    const args = argsOf(text);
    const part = { functionCall: { ...(third && { id }), name, args } };
    if (third && i === 0) part.thoughtSignature = sign(signed({ name, args }));
    return part;
  });
}

const usageOf = ({ usage, thinking }) => ({
  promptTokenCount: usage.input,
  candidatesTokenCount: usage.output,
  totalTokenCount: usage.input + usage.output,
  ...(thinking && { thoughtsTokenCount: 1, totalTokenCount: usage.input + usage.output + 1 }),
  promptTokensDetails: [{ modality: 'TEXT', tokenCount: usage.input }],
});

function chunkOf(answer, parts, finishReason) {
  const candidate = { content: { parts, role: 'model' }, ...(finishReason && { finishReason }), index: 0 };
  return { candidates: [candidate], usageMetadata: usageOf(answer), modelVersion: answer.model, responseId: answer.id };
}

/** Server-sent events where `alt=sse` asks for them, else one array of JSON. */
export const contentType = ({ sse }) => (sse ? undefined : 'application/json; charset=UTF-8');

const sseFrame = (data, piece) => ({ piece, bytes: Buffer.from(`data: ${JSON.stringify(data)}\r\n\r\n`) });

/** Frames in order; `piece` marks those that carry content. `terminal: false` leaves the end away. */
export function* frames(answer, { terminal = true, sse = true } = {}) {
  let first = true;
  const frame = (data, piece = false) => {
    if (sse) return sseFrame(data, piece);
    const text = `${first ? '[' : ',\r\n'}${JSON.stringify(data)}`;
    first = false;
    return { piece, bytes: Buffer.from(text) };
  };
  for (const text of answer.thinkingPieces) yield frame(chunkOf(answer, [{ text, thought: true }]), true);
  for (const text of answer.pieces) yield frame(chunkOf(answer, [{ text }]), true);
  // Calls come whole, all of a step at once.
  if (answer.calls.length) yield frame(chunkOf(answer, callParts(answer)), true);
  if (!terminal) return;
  yield frame(chunkOf(answer, [{ text: '' }], answer.finish));
  if (!sse) yield { piece: false, bytes: Buffer.from(']') };
}

export function whole(answer) {
  const parts = [];
  if (answer.thinking?.text) parts.push({ text: answer.thinking.text, thought: true });
  if (answer.text) parts.push({ text: answer.text });
  return chunkOf(answer, [...parts, ...callParts(answer)], answer.finish);
}

const STATUS = {
  400: 'INVALID_ARGUMENT',
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  429: 'RESOURCE_EXHAUSTED',
  500: 'INTERNAL',
  503: 'UNAVAILABLE',
};
const WORDS = {
  401: 'API key not valid. Please pass a valid API key.',
  429: 'You exceeded your current quota, please check your plan and billing details.',
  503: 'The model is overloaded. Please try again later.',
};

export function statusBody(status, message) {
  return error(
    message ??
      WORDS[status] ??
      'An internal error has occurred. Please retry or report in https://developers.generativeai.google/guide/troubleshooting',
    { code: status, status: STATUS[status] ?? 'UNKNOWN' },
  );
}
export const notJson = () => error('Invalid JSON payload received. Unexpected token.');
export const inBandError = (given, { sse }) => {
  const data = { error: { code: 503, message: WORDS[503], status: 'UNAVAILABLE', ...given } };
  return sse ? sseFrame(data, false) : { piece: false, bytes: Buffer.from(`,\r\n${JSON.stringify(data)}]`) };
};
/** A stream that is one JSON array is refused in one, too. */
export const refusal = (refused, { stream, sse }) => (stream && !sse ? [refused] : refused);
