// The shapes of an answer of Gemini's Interactions API: events of a stream, or one JSON body (@google/genai 3.1.0, and
// the exchanges that vercel/ai recorded in May 2026; read on 2026-11-28).

import { errorBody } from './rules-gemini-interactions.mjs';
import { sign } from './signature.mjs';

const frame = (data, piece = false) => ({
  piece,
  bytes: Buffer.from(`event: ${data.event_type}\ndata: ${JSON.stringify(data)}\n\n`),
});
const usageOf = ({ usage }) => ({
  total_tokens: usage.input + usage.output,
  total_input_tokens: usage.input,
  total_output_tokens: usage.output,
});
/** A request with `"store": false` gets no id. */
const headOf = ({ id, model, body }, status) => ({
  ...(body.store !== false && { id: `v1_${id}` }),
  object: 'interaction',
  status,
  model,
});
/** A signed thought precedes what the model says or calls. */
const signatureOf = ({ thinking }) => thinking?.signature ?? sign('');

/** Frames in order; `piece` marks those that carry content. `terminal: false` leaves the end away. */
export function* frames(answer, { terminal = true } = {}) {
  yield frame({ event_type: 'interaction.created', interaction: headOf(answer, 'in_progress') });
  const steps = [];
  const text = (piece) => ({ type: 'text', text: piece });
  if (answer.thinking || answer.calls.length) {
    const summary = answer.thinkingPieces.map((piece) => ({ type: 'thought_summary', content: text(piece) }));
    steps.push([{ type: 'thought' }, [...summary, { type: 'thought_signature', signature: signatureOf(answer) }]]);
  }
  if (answer.pieces.length) steps.push([{ type: 'model_output' }, answer.pieces.map(text)]);
  for (const { id, name, pieces } of answer.calls)
    steps.push([
      { type: 'function_call', id, name, arguments: {} },
      pieces.map((piece) => ({ type: 'arguments_delta', arguments: piece })),
    ]);
  for (const [index, [step, deltas]] of steps.entries()) {
    yield frame({ event_type: 'step.start', index, step });
    for (const delta of deltas) yield frame({ event_type: 'step.delta', index, delta }, true);
    yield frame({ event_type: 'step.stop', index });
  }
  if (!terminal) return;
  const interaction = { ...headOf(answer, answer.finish), usage: usageOf(answer) };
  yield frame({ event_type: 'interaction.completed', interaction });
}

export function whole(answer) {
  const text = (said) => [{ type: 'text', text: said }];
  const steps = [];
  if (answer.thinking || answer.calls.length) {
    const summary = answer.thinking?.text ? { summary: text(answer.thinking.text) } : {};
    steps.push({ type: 'thought', signature: signatureOf(answer), ...summary });
  }
  if (answer.text) steps.push({ type: 'model_output', content: text(answer.text) });
  // An answer that ended within the arguments of a call has them as far as they can be read.
  const parsed = (given) => {
    try {
      return JSON.parse(given);
    } catch {
      return {};
    }
  };
  for (const call of answer.calls)
    steps.push({ type: 'function_call', id: call.id, name: call.name, arguments: parsed(call.text) });
  return { ...headOf(answer, answer.finish), steps, usage: usageOf(answer) };
}

export const statusBody = (status, message) =>
  errorBody(message ?? 'Internal error encountered.', status >= 500 ? 'internal' : 'invalid_request');
export const notJson = () => errorBody('Invalid JSON payload received. Unexpected token.');
export const inBandError = (given) =>
  frame({ event_type: 'error', error: { message: 'Service unavailable.', code: 'internal', ...given } });
