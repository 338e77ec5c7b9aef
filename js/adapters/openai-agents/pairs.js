// Pairs of calls and results in a list of items: which a part of the list must not tear apart.

const CALL_OF_RESULT = {
  function_call_result: 'function_call',
  computer_call_result: 'computer_call',
  shell_call_output: 'shell_call',
  apply_patch_call_output: 'apply_patch_call',
  program_output: 'program',
};

export const isResult = ({ type }) => Object.hasOwn(CALL_OF_RESULT, type);

/** True for calls and results that name each other by `callId`. */
export const isPaired = ({ type }) => isResult({ type }) || Object.values(CALL_OF_RESULT).includes(type);

const keyOf = (type, callId) => JSON.stringify([type, callId]);

/** True if a tool has to be executed for the items of an answer. What a provider executes has its result there. */
export function hasOpenCalls(items) {
  const answered = items.filter(isResult).map(({ type, callId }) => keyOf(CALL_OF_RESULT[type], callId));
  return items.some(
    ({ type, callId }) => Object.values(CALL_OF_RESULT).includes(type) && !answered.includes(keyOf(type, callId)),
  );
}

/** Returns the items without results that no call before them asks for, and second results of one call: a provider
 *  rejects the request that has one. Calls without a result stay: a run that waits for an approval answers them. */
export function withoutOrphans(items) {
  const open = new Map();
  return items.filter(({ type, callId }) => {
    const callType = CALL_OF_RESULT[type];
    if (callType === undefined) {
      if (typeof callId === 'string') open.set(keyOf(type, callId), true);
      return true;
    }
    const key = keyOf(callType, callId);
    return open.delete(key);
  });
}

/** Returns the items without second results of one call. Those of no call stay: nothing else says what they do. */
export function withoutSecondResults(items) {
  const answered = new Map();
  return items.filter(({ type, callId }) => {
    const callType = CALL_OF_RESULT[type];
    const key = keyOf(callType ?? type, callId);
    if (callType === undefined) answered.set(key, false);
    const isSecond = callType !== undefined && answered.get(key) === true;
    if (callType !== undefined && answered.has(key)) answered.set(key, true);
    return !isSecond;
  });
}

/** Returns the newest items, `limit` of them, and before these what they need: the call of each result, the calls of
 *  the same answer, and the reasoning that precedes them. */
export function newest(items, limit) {
  let start = Math.max(items.length - limit, 0);
  for (;;) {
    const needed = neededStart(items, start);
    if (needed === start) return items.slice(start);
    start = needed;
  }
}

function neededStart(items, start) {
  let first = start;
  const calls = new Set();
  for (const { type, callId } of items.slice(start)) {
    const callType = CALL_OF_RESULT[type];
    if (callType === undefined) {
      if (typeof callId === 'string') calls.add(keyOf(type, callId));
    } else if (!calls.has(keyOf(callType, callId))) {
      const at = items.findLastIndex(
        (item, place) => place < first && item.type === callType && item.callId === callId,
      );
      if (at >= 0) first = at;
    }
  }
  // A call is an answer's as long as calls and reasoning precede it.
  const isAnswers = ({ type }) => type === 'reasoning' || Object.values(CALL_OF_RESULT).includes(type);
  const needsReasoning = first > 0 && first < items.length && items[first - 1].type === 'reasoning';
  const isCall = first < items.length && Object.values(CALL_OF_RESULT).includes(items[first].type);
  while (first > 0 && (isCall ? isAnswers(items[first - 1]) : needsReasoning && items[first - 1].type === 'reasoning'))
    first -= 1;
  return first;
}
