// Calls of tools and their results, which are parts of their own in TanStack's messages, and neutral calls.

import { isSame, without } from '../plain.js';

export const isCall = ({ type }) => type === 'tool-call';
export const isResult = ({ type }) => type === 'tool-result';

/** States in which the model has not finished the call. */
const BEGUN = ['awaiting-input', 'input-streaming'];
const CLOSED = ['complete', 'error'];

const isResultOf = (part, call) => isResult(part) && part.toolCallId === call.id && CLOSED.includes(part.state);

/** The text that the model is sent of a result. */
const textOf = (content) => (typeof content === 'string' ? content : JSON.stringify(content));

/** Text parts as one text; a result with other parts is sent as it is. */
function contentValue(content) {
  if (!Array.isArray(content)) return content ?? '';
  const isText = (part) => part?.type === 'text' && typeof part.content === 'string';
  return content.length && content.every(isText) ? content.map((part) => part.content).join('\n') : content;
}

/** The result of a call that is stored, of which the parts of its message may say something else. */
const STORED = Symbol('stored');

/** Parts of a message of which some calls are stored with results. */
export const withStored = (parts, calls) =>
  parts.map((part) => {
    const stored = isCall(part) ? calls.find(({ callId, result }) => result && callId === part.id) : undefined;
    if (!stored) return part;
    return { ...part, [STORED]: { result: stored.result.content, isError: stored.result.isError } };
  });

/** What a call has as its result, and otherwise the parts of its message; undefined without any.
 *  @returns {{ result: any, isError: boolean } | undefined} */
export function resultOf(call, parts) {
  const stored = parts.find((other) => other[STORED] && other.id === call.id);
  if (stored) return stored[STORED];
  const part = parts.find((other) => isResultOf(other, call));
  const { output } = call;
  if (!part) {
    return output === undefined ? undefined : { result: output, isError: call.state === 'error' };
  }
  return { result: resultValue(part, call), isError: part.state === 'error' || call.state === 'error' };
}

/** What the model is sent of a part that is a result. */
export function resultValue({ content }, { output }) {
  return typeof output === 'object' && JSON.stringify(output) === content ? output : contentValue(content);
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The neutral call of a part; undefined for one that the model has not finished writing, of which it is never told. */
export function neutralCall(part, parts) {
  const { id, name, state } = part;
  const isNamed = [id, name].every((text) => typeof text === 'string' && text);
  if (!isNamed || typeof part.arguments !== 'string') return undefined;
  const result = resultOf(part, parts);
  if (BEGUN.includes(state) && !result) return undefined;
  return { type: 'tool', callId: id, name, arguments: part.arguments.trim() ? part.arguments : '{}', ...result };
}

/** The call as a stored message has it. @param {{ callId: string, name: string, arguments: string, result?: any, isError?: boolean }} call */
export const storedCall = ({ callId, name, arguments: argumentsText, result, isError = false }) => ({
  callId,
  name,
  argumentsText,
  result: result === undefined ? null : { content: result, isError },
});

/** TanStack has the error of a tool in an object. */
const outputOf = ({ content, isError }) => (isError && typeof content === 'string' ? { error: content } : content);

/** A stored call as TanStack has one that nothing else is known of. */
function plainCall({ callId, name, argumentsText = '{}', result }) {
  const input = parsed(argumentsText);
  const state = result ? (result.isError ? 'error' : 'complete') : 'input-complete';
  const output = result ? { output: outputOf(result) } : {};
  return {
    type: 'tool-call',
    id: callId,
    name,
    arguments: argumentsText,
    ...(input === undefined ? {} : { input }),
    state,
    ...output,
  };
}

/** What a mark keeps of a call. */
export function keptOfCall(part, parts) {
  const neutral = neutralCall(part, parts);
  if (!neutral) return undefined;
  const base = plainCall(storedCall(neutral));
  const isOther = ([key, value]) => !(key in base) || !isSame(base[key], value);
  const rest = Object.fromEntries(Object.entries(part).filter(isOther));
  const missing = Object.keys(base).filter((key) => !(key in part));
  return {
    rest: { ...rest, state: part.state },
    ...(missing.length ? { without: missing } : {}),
    ...(neutral.result === undefined ? {} : { answered: true }),
  };
}

/** The part of a stored call. `kept`: the value of its mark, if it has one. */
export function callPart(call, kept) {
  const base = plainCall(call);
  if (!kept) return base;
  const { rest, without: missing = [] } = kept;
  // A result that was stored after the mark.
  if (call.result && !kept.answered) return { ...base, ...without(rest, 'state', 'output') };
  return without({ ...base, ...rest }, ...missing);
}

/** The part for a result of which the store has only the call's. */
export function resultPart({ callId, result }) {
  const content = textOf(result.content);
  const state = result.isError ? { state: 'error', error: content } : { state: 'complete' };
  return { type: 'tool-result', toolCallId: callId, content, ...state };
}

/** The mark of a part that is a result: its content is the call's, if that is the same. */
export function keptResult(part, parts) {
  const call = parts.find((other) => isCall(other) && other.id === part.toolCallId);
  const result = call && neutralCall(call, parts) && resultOf(call, parts);
  const isOfCall = result && parts.find((other) => isResultOf(other, call)) === part;
  return isOfCall && textOf(result.result) === part.content
    ? { part: without(part, 'content'), content: 'result' }
    : { part };
}

/** The part of a mark that `keptResult` has made. `calls`: the stored calls of the message. */
export function readResult({ part, content }, calls) {
  if (content !== 'result') return part;
  const call = calls.find(({ callId }) => callId === part.toolCallId);
  return { ...part, content: call?.result ? textOf(call.result.content) : '' };
}
