// What a message of TanStack has that its stored form has not.

import { markWith } from '../marks.js';
import { isObject, isSame, without } from '../plain.js';
import { FORMAT } from './format.js';
import { unwrittenPart, writtenPart } from './parts.js';
import { callsOf, messageOf, shownParts } from './read.js';
import { isCall, isResult, keptOfCall, neutralCall, resultOf, withStored } from './tools.js';

const mark = (value) => markWith(FORMAT.name, value);
const isText = ({ type }) => type === 'text' || type === 'thinking';

/** The states of a call, in the order in which it has them. */
const STATES = [
  'awaiting-input',
  'input-streaming',
  'input-complete',
  'approval-requested',
  'approval-responded',
  'complete',
  'error',
];

const addsNothing = (before, after) => Object.entries(after).every(([key, value]) => isSame(before[key], value));

/** True if `after` is an earlier state of the part: of a stream that is repeated, for example. */
function isEarlier(before, after) {
  if (!isText(before) && !isCall(before)) return before.type === 'structured-output' && before.status === 'complete';
  const [old, text] = [before, after].map((part) => (isText(part) ? part.content : part.arguments));
  const isBeginning = [old, text].every((part) => typeof part === 'string') && old.startsWith(text);
  if (!isBeginning || after.output !== undefined) return false;
  if (text.length < old.length) return true;
  const isBehind = isCall(after) && STATES.indexOf(after.state) < STATES.indexOf(before.state);
  return isBehind || addsNothing(before, after);
}

/** @returns {any[] | null} */
function textChange(before, after, at) {
  const rest = without(after, 'type', 'content');
  if (before.content === after.content) return [mark({ at, rest })];
  if (typeof after.content !== 'string' || !after.content.startsWith(before.content)) return null;
  const text = after.content.slice(before.content.length);
  return [{ type: after.type === 'text' ? 'text' : 'reasoning', text }, mark({ at, joins: true, rest })];
}

/** A part without a neutral form, which may have got one. @returns {any[]} */
function replacement(after, at, all) {
  const written = writtenPart(after, 'assistant', all);
  if (!written) return [mark({ ...unwrittenPart(after, all), at })];
  return [written.neutral, mark({ rest: {}, ...(written.kept ?? keptOfCall(after, all)), at, takes: true })];
}

/** The changes of one part, at the place `at`; null if it is another part. The mark of a call that gets its result now,
 *  `answered`, says that the page has seen it. @returns {any[] | null} */
function partChange(slot, before, after, { at, all, mayLag, answered }) {
  if (isSame(before, after)) return answered ? [mark({ at, ...keptOfCall(after, all) })] : [];
  if (before.type !== after.type) return null;
  if (isCall(before) && (before.id !== after.id || before.name !== after.name)) return null;
  if (isResult(before) && before.toolCallId !== after.toolCallId) return null;
  if (mayLag && isEarlier(before, after)) return [];
  if (slot.part) return replacement(after, at, all);
  if (isText(before)) return textChange(before, after, at);
  if (!isCall(before)) return null;
  return neutralCall(after, all) ? [mark({ at, ...keptOfCall(after, all) })] : [];
}

/** Results of calls that are stored without one. Of two results of a call the first one counts. */
const newResults = (entry, parts) =>
  callsOf(entry).flatMap(({ callId, result }) => {
    const call = result ? undefined : parts.find((part) => isCall(part) && part.id === callId);
    const found = call && resultOf(call, parts);
    return found ? [{ type: 'tool_result', callId, ...found }] : [];
  });

/**
 * The changes of the stored parts, and the number of parts of `after` that they are; null if it is another message.
 *
 * @returns {{ changes: any[], length: number } | null}
 */
function storedChanges(entry, after, { all, mayLag, results }) {
  const changes = /** @type {any[]} */ ([]);
  let place = 0;
  for (const { part, at } of shownParts(entry)) {
    const other = after.parts[place];
    if (at === undefined) {
      // The page may not have seen the result.
      if (other && isResult(other) && other.toolCallId === part.toolCallId) place += 1;
      continue;
    }
    if (!other) {
      if (mayLag) break;
      return null;
    }
    const answered = isCall(other) && results.some(({ callId }) => callId === other.id);
    const change = partChange(entry.slots[at], part, other, { at, all, mayLag, answered });
    if (!change) return null;
    changes.push(...change);
    place += 1;
  }
  return { changes, length: place };
}

/**
 * What is to be stored so that a stored message becomes `after`; null if it is another message. With `mayLag`, the
 * stored message may have more than `after`.
 *
 * @param {import('../marked-entries.js').Entry} entry
 * @returns {import('../message-difference.js').MessageDifference | null}
 */
export function difference(entry, after, { mayLag }) {
  if (entry.role !== after.role) return null;
  const before = messageOf(entry);
  const isAnswer = after.role === 'assistant';
  if (!isAnswer && !isSame(before.parts, after.parts)) return null;
  const all = isAnswer ? withStored(after.parts, callsOf(entry)) : after.parts;
  const results = isAnswer ? newResults(entry, after.parts) : [];
  const stored = isAnswer
    ? storedChanges(entry, after, { all, mayLag, results })
    : { changes: [], length: after.parts.length };
  if (!stored) return null;
  const isTold = isObject(after.metadata) && !isSame(before.metadata, after.metadata);
  return {
    results,
    changes: stored.changes,
    parts: after.parts.slice(stored.length),
    all,
    ...(isTold ? { metadata: after.metadata } : {}),
  };
}
