// What a UI message has that its stored form has not.

import { mark } from './marks.js';
import { writtenPart } from './parts.js';
import { isChanged } from '../message-difference.js';
import { isSame, without } from '../plain.js';
import { isOpen, isToolPart, restOfCall, toolPart, toolResult } from './tools.js';

const isText = ({ type }) => type === 'text' || type === 'reasoning';

/**
 * The changes of one part, at `at`; null if it is another one.
 *
 * @returns {{ changes?: any[], results?: any[] } | null}
 */
function partChange(before, after, at, { isGrowing = false, mayLag = false }) {
  if (isSame(before, after)) return {};
  if (isToolPart(before) && isToolPart(after)) return callChange(before, after, { at, mayLag });
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

/** States that a call passes through before its result; the output is a preliminary one. */
const STATES = ['input-streaming', 'input-available', 'approval-requested', 'approval-responded', 'output-available'];
const isEarlier = (state, other) => STATES.includes(state) && STATES.indexOf(state) < STATES.indexOf(other);

function callChange(before, after, { at, mayLag }) {
  if (before.toolCallId !== after.toolCallId || before.type !== after.type) return null;
  if (before.state === 'input-streaming') {
    // The model finished the call: the neutral one takes its place.
    const written = writtenPart(after, 'assistant');
    if (!written) return { changes: [mark({ at, part: after })] };
    return { changes: [written.neutral, ...(written.kept ? [mark(written.kept)] : [])] };
  }
  // Of two results of a call the first one counts.
  if (!isOpen(before) || (isOpen(after) && after.state === 'input-streaming')) return {};
  if (mayLag && isEarlier(after.state, before.state)) return {};
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
 * @returns {import('../message-difference.js').MessageDifference | null}
 */
export function difference(before, after, options) {
  const { mayLag = false } = options;
  if (before.role !== after.role) return null;
  if (before.role !== 'assistant') return isSame(before.parts, after.parts) ? unchanged() : null;
  if (after.parts.length < before.parts.length && !mayLag) return null;
  const found = unchanged();
  for (const [at, part] of before.parts.slice(0, after.parts.length).entries()) {
    const isLast = at === after.parts.length - 1;
    const other = after.parts[at];
    const lags = mayLag && isLast && isText(part) && other.type === part.type && part.text.startsWith(other.text);
    const change = lags ? {} : partChange(part, other, at, options);
    if (!change) return null;
    found.results.push(...(change.results ?? []));
    found.changes.push(...(change.changes ?? []));
  }
  found.parts = after.parts.slice(before.parts.length);
  const hasNewMetadata =
    after.metadata !== undefined && after.metadata !== null && !isSame(before.metadata, after.metadata);
  return hasNewMetadata ? { ...found, metadata: after.metadata } : found;
}

/** True if a step has come to its end, as far as its parts tell: all its calls have results. */
function isComplete(step) {
  const calls = step.filter(isToolPart);
  return calls.length > 0 && isToolPart(step.at(-1)) && !calls.some(isOpen);
}

/** The places where a step begins. */
const stepsOf = ({ parts }) => [0, ...parts.flatMap(({ type }, at) => (type === 'step-start' && at > 0 ? [at] : []))];

const wholeAfter = (before, after, kept) => ({ ...after, parts: [...before.parts.slice(0, kept), ...after.parts] });

/** True if a stream that has come to `after` repeats a message, or its last steps. */
export function isRepeated(before, after) {
  return stepsOf(before).some((at) => {
    const { parts } = wholeAfter(before, after, at);
    const found = difference(before, { ...after, parts }, { mayLag: true });
    const last = parts.at(-1);
    const isShorter =
      last && isText(last) && last.state === 'done' && last.text !== before.parts[parts.length - 1]?.text;
    return found && !isShorter && !isChanged({ ...found, metadata: undefined });
  });
}

/**
 * The whole message, of a stream that repeats an answer from its beginning: that of the message, or of its last steps,
 * if these were another request. A step that was stored before it ended may be another one in the stream.
 */
export function replayed(before, after) {
  const options = { isGrowing: true, mayLag: true };
  const steps = stepsOf(before);
  const repeated = steps.find((at) => difference(before, wholeAfter(before, after, at), options));
  if (repeated !== undefined) return wholeAfter(before, after, repeated);
  const last = steps[steps.length - 1];
  if (isComplete(before.parts.slice(last))) return wholeAfter(before, after, before.parts.length);
  const ended = { ...before, parts: before.parts.slice(0, last) };
  const kept = steps.find((at) => at <= last && difference(ended, wholeAfter(before, after, at), options));
  return wholeAfter(before, after, kept ?? last);
}
