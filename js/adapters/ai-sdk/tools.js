// Calls of tools in UI messages, in every state, and neutral calls.

import { isObject, without } from '../plain.js';

/** States in which a call has what the model is sent as its result. */
const CLOSED = ['output-available', 'output-error', 'output-denied'];
export const DENIED = 'Tool call execution denied.';
const INTERRUPTED = 'The call was interrupted; it may or may not have run.';

export const isToolPart = ({ type }) =>
  typeof type === 'string' && (type === 'dynamic-tool' || type.startsWith('tool-'));

/** True if the call waits for its result. A preliminary output is none. */
export const isOpen = (part) => !CLOSED.includes(part.state) || part.preliminary === true;

export const nameOf = (part) => (part.type === 'dynamic-tool' ? part.toolName : part.type.slice('tool-'.length));

/** What the model is told of a closed call. */
function resultOf(part) {
  if (part.state === 'output-available') return { result: part.output ?? null };
  if (part.state === 'output-error') return { result: part.errorText ?? '', isError: true };
  return { result: part.approval?.reason ?? DENIED, isError: true };
}

/** The arguments as JSON text. Of a call that could not be parsed, what the model wrote. */
function argumentsOf({ input, rawInput }) {
  if (input !== undefined) return JSON.stringify(input);
  return typeof rawInput === 'string' && rawInput ? rawInput : JSON.stringify(rawInput ?? {});
}

/** What a mark keeps of a call. */
export function restOfCall(part) {
  const ofResult = isOpen(part) ? [] : part.state === 'output-available' ? ['output'] : ['errorText'];
  const ofName = part.type === 'dynamic-tool' ? ['toolName'] : ['type'];
  const kept = part.state === 'output-error' && typeof part.errorText !== 'string' ? [] : ofResult;
  const missing = ['input', ...(part.state === 'output-available' ? ['output'] : [])].filter((key) => !(key in part));
  const rest = without(part, 'toolCallId', 'input', ...ofName, ...kept);
  return missing.length ? { rest, without: missing } : { rest };
}

/** The result of a call as a part of a message of role "tool". */
export const toolResult = (part) => ({ type: 'tool_result', callId: part.toolCallId, ...resultOf(part) });

/** The neutral call; undefined for one that the model has not finished writing, of which it is never told. */
export function neutralCall(part) {
  const name = nameOf(part);
  if (part.state === 'input-streaming' || typeof name !== 'string' || !name) return undefined;
  if (typeof part.toolCallId !== 'string' || !part.toolCallId) return undefined;
  const call = { type: 'tool', callId: part.toolCallId, name, arguments: argumentsOf(part) };
  return isOpen(part) ? call : { ...call, ...resultOf(part) };
}

function inputOf({ argumentsText, arguments: parsed }) {
  try {
    return JSON.parse(argumentsText);
  } catch {
    return parsed === undefined ? {} : parsed;
  }
}

const textOf = (content) => (typeof content === 'string' ? content : JSON.stringify(content));

/** The state of a call that the adapter did not write, or that was closed after it was written. */
function outcomeOf({ callId, status, result }, approval) {
  if (status === 'rejected' || (approval?.approved === false && result?.isError)) {
    const reason = result ? textOf(result.content) : undefined;
    const denied = approval ?? { id: callId, approved: false, ...(reason === undefined ? {} : { reason }) };
    return { state: 'output-denied', approval: denied };
  }
  const granted = approval?.approved === true ? { approval } : {};
  if (result && (result.isError || status === 'interrupted'))
    return { state: 'output-error', errorText: textOf(result.content), ...granted };
  if (result) return { state: 'output-available', output: result.content, ...granted };
  if (status === 'interrupted' || status === 'aborted') return { state: 'output-error', errorText: INTERRUPTED };
  return { state: 'input-available' };
}

/** The part of a stored call. `kept`: the value of its mark, if it has one. */
export function toolPart(call, kept) {
  const input = inputOf(call);
  const base = { type: `tool-${call.name}`, toolCallId: call.callId, input };
  if (!kept) return { ...base, ...outcomeOf(call) };
  const { rest, without: missing = [] } = kept;
  const named = rest.type === 'dynamic-tool' ? { ...base, toolName: call.name } : base;
  let part = { ...named, ...rest };
  if (!isOpen(rest)) {
    if (rest.state === 'output-available') part.output = call.result?.content ?? null;
    if (rest.state === 'output-error' && call.result) part = { errorText: textOf(call.result.content), ...part };
  } else if (call.result) {
    const open = without(part, 'approval', 'preliminary', 'output', 'rawInput');
    part = { ...open, ...outcomeOf(call, rest.approval) };
  }
  return without(part, ...missing.filter((key) => key !== 'output' || part.state === rest.state));
}

/** A part whose members fit its state, so that `validateUIMessages` takes it. A valid one is unchanged. */
export function validToolPart(part) {
  const own = without(part, 'approval', 'output', 'errorText');
  const approval = isObject(part.approval) && typeof part.approval.id === 'string' ? part.approval : undefined;
  const granted = approval?.approved === true ? { approval } : {};
  switch (part.state) {
    case 'output-available':
      return { ...own, ...granted, ...('output' in part ? { output: part.output } : {}) };
    case 'output-error':
      return { ...own, ...granted, errorText: typeof part.errorText === 'string' ? part.errorText : INTERRUPTED };
    case 'output-denied':
      return { ...own, approval: { ...(approval ?? { id: part.toolCallId }), approved: false } };
    case 'approval-responded':
      if (typeof approval?.approved === 'boolean') return { ...own, approval };
      break;
    case 'approval-requested':
      if (approval) return { ...own, approval: without(approval, 'approved', 'reason') };
      break;
    case 'input-streaming':
    case 'input-available':
      return own;
    default:
  }
  return { ...own, state: 'input-available' };
}

const WITHOUT_RESULT = ['input-available', 'approval-requested', 'approval-responded'];

/** True if the call has no result, and gets none once the conversation goes on. The answer to an approval of a call
 *  that the provider executes is sent to the provider, which then answers. */
export const isWithoutResult = (part) =>
  isToolPart(part) &&
  WITHOUT_RESULT.includes(part.state) &&
  !(part.state === 'approval-responded' && part.providerExecuted === true);

/** The part of a call that can get no result any more, because the conversation went on. */
export function closedPart(part) {
  const { approval, ...own } = without(part, 'output', 'preliminary');
  if (part.state !== 'approval-responded')
    return {
      ...own,
      state: 'output-error',
      errorText: 'The call has no result: the conversation went on without it.',
    };
  if (approval?.approved === false) return { ...own, state: 'output-denied', approval };
  // Nobody knows how far the server came.
  return { ...own, state: 'output-error', errorText: INTERRUPTED, ...(approval ? { approval } : {}) };
}
