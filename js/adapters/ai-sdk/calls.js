// Calls of a stored chat: which are open, which were started, and what they are answered with.

import { INTERRUPTED, isMissingResult, NOT_RUN } from '../interrupted.js';
import { continuation } from '../marked-messages.js';
import { answerElsewhere } from '../other-branches.js';
import { FORMAT } from './format.js';
import { mark } from './marks.js';
import { messageOf } from './read.js';
import { isToolPart } from './tools.js';

/** The calls of a stored UI message as the session has them. */
const callsOf = ({ slots }) =>
  slots.flatMap(({ neutral }) => (neutral?.type === 'tool_call' && neutral.name !== undefined ? [neutral] : []));

/** The newest call of an id, with the message that has it.
 *  @param {import('../marked-entries.js').Entry[]} entries @param {string} callId */
export function findCall(entries, callId) {
  for (const entry of entries.toReversed()) {
    const call = callsOf(entry).findLast((one) => one.callId === callId);
    if (call) return { entry, call };
  }
  return undefined;
}

/** The result of a call, undefined for one that has none. */
export const resultOfCall = ({ result }) => (result && !isMissingResult(result) ? result : undefined);

/** What `append` needs to store that the tool of a call begins. */
export const startItems = (entry, callId) => continuation(FORMAT, entry, { changes: [mark({ starts: callId })] });

/** What `append` needs to store the result of a call. */
export const resultItems = (callId, { result, isError = false }) => [
  { role: 'tool', parts: [{ type: 'tool_result', callId, result, isError }] },
];

/** Messages for `append` in which the calls of these tools are marked: each stores that it starts before it does.
 *  @param {any[]} items @param {Set<string>} names */
export function withDurableCalls(items, names) {
  return items.map((item) => {
    const isDurable = ({ type, result, name }) => type === 'tool' && result === undefined && names.has(name);
    const durable = item.parts.filter(isDurable).map(({ callId }) => callId);
    return durable.length ? { ...item, parts: [...item.parts, mark({ durable })] } : item;
  });
}

/** The calls of the last answer that can get no result but from here: those that wait for nobody on the page.
 *  `isLeft`: also approved ones, which the next request would run. `mayHaveRun`: nothing proves that the tool was not
 *  started, as of a call that was imported. */
export function lostCalls(entries, { isLeft = false } = {}) {
  const entry = entries.at(-1);
  if (entry?.role !== 'assistant') return [];
  const isWaiting = ({ state, approval }) =>
    state === 'input-available' || (isLeft && state === 'approval-responded' && approval.approved);
  const waiting = messageOf(entry).parts.filter(
    (part) => isToolPart(part) && isWaiting(part) && part.providerExecuted !== true,
  );
  const ids = new Set(waiting.map(({ toolCallId }) => toolCallId));
  return callsOf(entry)
    .filter(({ callId, result }) => result === null && ids.has(callId))
    .map((call) => ({ call, mayHaveRun: entry.starts.has(call.callId) || !entry.durable.has(call.callId) }));
}

/** Stores the result of a call, unless it has one. It takes the place of the note that the call was interrupted. If the
 *  branch that is shown has no such call, it is stored in one that has it.
 *  @param {any} session @param {import('./stored-chat.js').StoredChat} chat @param {string} invocation */
export async function storeResult(session, chat, invocation, { result, isError = false }) {
  const { isElsewhere } = await chat.change((entries) => {
    const call = entries.flatMap(callsOf).find((one) => one.invocation === invocation);
    if (!call) return { isElsewhere: true };
    if (resultOfCall(call)) return {};
    if (call.result === null) return { items: resultItems(invocation, { result, isError }) };
    const answer = { type: 'tool_result', content: result, isError };
    return { write: (target, options) => target.answer(invocation, answer, options) };
  });
  if (isElsewhere) await answerElsewhere(session, invocation, { content: result, isError });
}

/** Notes that a call gets no result: its process ended. In a format of a provider, in which the note is told from a
 *  result of the tool. @param {import('./stored-chat.js').StoredChat} chat */
export function storeLost(chat, { call: { callId }, mayHaveRun }) {
  const note = { role: 'tool', tool_call_id: callId, content: mayHaveRun ? INTERRUPTED : NOT_RUN };
  return chat.change((entries) => {
    if (findCall(entries, callId)?.call.result !== null) return {};
    return { write: (session, options) => session.append({ messages: [note] }, 'openai-chat', options) };
  });
}
