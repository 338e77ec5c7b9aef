// What a UI message has that its stored form has not.

import { mark } from './marks.js';
import { writtenPart } from './parts.js';
import { isSame, without } from './plain.js';
import { isOpen, isToolPart, restOfCall, toolPart, toolResult } from './tools.js';

const isText = ({ type }) => type === 'text' || type === 'reasoning';

/**
 * The changes of one part, at `at`; null if it is another one.
 *
 * @returns {{ changes?: any[], results?: any[] } | null}
 */
function partChange(before, after, at, isGrowing) {
  if (isSame(before, after)) return {};
  if (isToolPart(before) && isToolPart(after)) return callChange(before, after, at);
  if (before.type !== after.type) return null;
  if (before.type === 'file') return before.url === after.url ? {} : null;
  if (!isText(before)) return { changes: [mark({ at, part: after })] };
  if (before.text === after.text) {
    // Versions of `ai` write other members of a text; that it has come to its end matters.
    const hasEnded = before.state === 'streaming' && after.state !== 'streaming';
    return hasEnded ? { changes: [mark({ at, rest: without(after, 'type', 'text') })] } : {};
  }
  if (isGrowing && after.text.startsWith(before.text)) {
    const text = after.text.slice(before.text.length);
    const joins = mark({ at, joins: true, rest: without(after, 'type', 'text') });
    return { changes: [{ type: after.type, text }, joins] };
  }
  return null;
}

function callChange(before, after, at) {
  if (before.toolCallId !== after.toolCallId || before.type !== after.type) return null;
  if (before.state === 'input-streaming') {
    // The model finished the call: the neutral one takes its place.
    const written = writtenPart(after, 'assistant');
    if (!written) return { changes: [mark({ at, part: after })] };
    return { changes: [written.neutral, ...(written.kept ? [mark(written.kept)] : [])] };
  }
  // Of two results of a call the first one counts.
  if (!isOpen(before) || (isOpen(after) && after.state === 'input-streaming')) return {};
  const kept = { at, ...restOfCall(after) };
  if (isOpen(after)) return { changes: [mark(kept)] };
  const result = toolResult(after);
  const stored = {
    callId: after.toolCallId,
    name: after.type === 'dynamic-tool' ? after.toolName : after.type.slice('tool-'.length),
    argumentsText: JSON.stringify(before.input ?? {}),
    result: { content: result.result, isError: result.isError ?? false },
  };
  const isPlain = isSame(toolPart(stored, restOfCall(before)), after);
  return { results: [result], ...(isPlain ? {} : { changes: [mark(kept)] }) };
}

const unchanged = () => ({
  results: /** @type {any[]} */ ([]),
  changes: /** @type {any[]} */ ([]),
  parts: /** @type {any[]} */ ([]),
});

/**
 * What is to be stored so that the stored message `before` becomes `after`; null if it is another message.
 *
 * With `isGrowing`, texts may have become longer; with `mayLag`, the stored message may have more than `after`, which
 * then is no change.
 *
 * @returns {{ results: any[], changes: any[], parts: any[], metadata?: unknown } | null}
 */
export function difference(before, after, { isGrowing = false, mayLag = false }) {
  if (before.role !== after.role) return null;
  if (before.role !== 'assistant') return isSame(before.parts, after.parts) ? unchanged() : null;
  if (after.parts.length < before.parts.length && !mayLag) return null;
  const found = unchanged();
  for (const [at, part] of before.parts.slice(0, after.parts.length).entries()) {
    const isLast = at === after.parts.length - 1;
    const other = after.parts[at];
    const lags = mayLag && isLast && isText(part) && other.type === part.type && part.text.startsWith(other.text);
    const change = lags ? {} : partChange(part, other, at, isGrowing);
    if (!change) return null;
    found.results.push(...(change.results ?? []));
    found.changes.push(...(change.changes ?? []));
  }
  found.parts = after.parts.slice(before.parts.length);
  const isTold = after.metadata !== undefined && after.metadata !== null && !isSame(before.metadata, after.metadata);
  return isTold ? { ...found, metadata: after.metadata } : found;
}

/** @param {{ results: any[], changes: any[], parts: any[], metadata?: unknown }} found */
export const isChanged = ({ results, changes, parts, metadata }) =>
  results.length + changes.length + parts.length > 0 || metadata !== undefined;

/** True if a step has come to its end, as far as its parts tell: all its calls have results. */
function isComplete(step) {
  const calls = step.filter(isToolPart);
  return calls.length > 0 && isToolPart(step.at(-1)) && !calls.some(isOpen);
}

/**
 * The whole message, of a stream that repeats an answer from its beginning: that of the message, or of its last steps,
 * if these were another request. A step that was stored before it ended may be another one in the stream.
 */
export function replayed(before, after) {
  const options = { isGrowing: true, mayLag: true };
  const steps = [0, ...before.parts.flatMap(({ type }, at) => (type === 'step-start' && at > 0 ? [at] : []))];
  const wholeAfter = (kept) => ({ ...after, parts: [...before.parts.slice(0, kept), ...after.parts] });
  const repeated = steps.find((at) => difference(before, wholeAfter(at), options));
  if (repeated !== undefined) return wholeAfter(repeated);
  const last = steps[steps.length - 1];
  if (isComplete(before.parts.slice(last))) return wholeAfter(before.parts.length);
  const ended = { ...before, parts: before.parts.slice(0, last) };
  return wholeAfter(steps.find((at) => at <= last && difference(ended, wholeAfter(at), options)) ?? last);
}
