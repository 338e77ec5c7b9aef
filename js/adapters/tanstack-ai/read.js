// Stored messages as those of TanStack.

import { plain } from '../plain.js';
import { uiPart } from './parts.js';
import { isResult, readResult, resultPart } from './tools.js';

const callOf = ({ neutral }) => (neutral?.type === 'tool' ? neutral.call : neutral?.callId ? neutral : undefined);

/** The calls of an entry. */
export const callsOf = ({ slots }) => slots.map(callOf).filter((call) => call !== undefined);

/**
 * The parts that a message is shown with; `at` is the place of a part among the slots of its entry. A result that only
 * its call has follows the calls of its answer, and has no place.
 *
 * @returns {{ part: any, at?: number }[]}
 */
export function shownParts(entry) {
  const calls = callsOf(entry);
  const answered = new Set(entry.slots.flatMap(({ part }) => (part && isResult(part) ? [part.toolCallId] : [])));
  const shown = /** @type {{ part: any, at?: number }[]} */ ([]);
  const results = /** @type {{ part: any }[]} */ ([]);
  for (const [at, slot] of entry.slots.entries()) {
    const { part: own, neutral, kept } = slot;
    const part = own ? (isResult(own) ? readResult(kept, calls) : own) : uiPart(neutral, kept);
    if (!part) continue;
    const call = callOf(slot);
    if (!call) shown.push(...results.splice(0));
    shown.push({ part, at });
    if (call?.result && !kept?.answered && !answered.has(call.callId)) results.push({ part: resultPart(call) });
  }
  return [...shown, ...results];
}

/** A message whose times are texts. @param {import('../marked-entries.js').Entry} entry @returns {any} */
export function messageOf(entry) {
  const { id, role, head, createdAt } = entry;
  const metadata = entry.metadata ?? head.metadata;
  return plain({
    ...head.extra,
    id,
    role,
    parts: shownParts(entry).map(({ part }) => part),
    ...(head.undated ? {} : { createdAt: new Date(createdAt) }),
    ...(metadata === undefined ? {} : { metadata }),
  });
}

function withTime(object) {
  return typeof object.createdAt === 'string' ? { ...object, createdAt: new Date(object.createdAt) } : object;
}

/** A message as TanStack has it. */
export const datedMessage = (message) =>
  withTime({ ...message, parts: message.parts.map((part) => (isResult(part) ? withTime(part) : part)) });
