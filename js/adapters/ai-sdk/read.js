// Stored messages as UI messages.

import { markOf } from './marks.js';
import { readablePart, uiPart } from './parts.js';
import { plain } from './plain.js';
import { isToolPart, validToolPart } from './tools.js';

/** Statuses of an answer that did not come to its end. */
const CUT = ['stopped', 'failed', 'truncated', 'streaming'];

/**
 * A UI message as the store has it: `slots` are its parts, each the neutral part with the value of its mark, or the part
 * itself; `lastId` is the id of the last of its stored messages; `storedIds` are all.
 *
 * @typedef {{ part?: any, neutral?: any, kept?: any }} Slot
 * @typedef {{ id: string, role: string, head: any, metadata: unknown, slots: Slot[], storedIds: string[],
 *   isCut: boolean, starts: Set<string> }} Entry `starts`: the calls whose tools were started.
 */

/** @returns {Entry} */
const newEntry = (id, role, head = {}) => ({
  id,
  role: role === 'developer' ? 'system' : role,
  head,
  metadata: undefined,
  slots: [],
  storedIds: [],
  isCut: false,
  starts: new Set(),
});

const callIdOf = ({ neutral }) => neutral?.call?.callId ?? neutral?.callId;

/** Adds a neutral part. A call whose beginning is stored takes its place. */
function addNeutral(entry, neutral) {
  const slot = { neutral };
  const callId = neutral.type === 'tool' || neutral.type === 'tool_call' ? callIdOf(slot) : undefined;
  // The ids of calls come again.
  if (callId !== undefined) entry.starts.delete(callId);
  const begun = entry.slots.findIndex(
    ({ part }) => part && isToolPart(part) && part.state === 'input-streaming' && part.toolCallId === callId,
  );
  if (callId === undefined || begun < 0) entry.slots.push(slot);
  else entry.slots[begun] = slot;
  return slot;
}

/** Applies a mark to the parts before it. `last` is the slot of the neutral part before the mark. */
function applyMark(entry, value, last) {
  if (value.starts !== undefined) entry.starts.add(value.starts);
  const at = value.at === undefined ? undefined : entry.slots[value.at];
  if (value.part) {
    if (value.at === undefined) entry.slots.push({ part: value.part });
    else if (at) entry.slots[value.at] = { part: value.part };
  } else if (value.joins && at?.neutral && last) {
    entry.slots.splice(entry.slots.indexOf(last), 1);
    entry.slots[value.at] = { neutral: { ...at.neutral, text: at.neutral.text + last.neutral.text }, kept: value };
  } else if (value.rest) {
    const slot = value.at === undefined ? last : at;
    if (slot) slot.kept = value;
  }
}

/** The UI message that a stored message begins or continues. */
function entryOf(message, entries) {
  const first = message.parts.map(markOf).find((value) => value !== undefined) ?? {};
  if (first.of !== undefined) {
    const begun = entries.findLast(({ id }) => id === first.of);
    if (begun) return begun;
  }
  const entry = newEntry(first.of ?? first.id ?? message.id, message.role, first);
  entries.push(entry);
  return entry;
}

/** The UI messages of stored messages, oldest first, which continue `entries`. @returns {Entry[]} */
export function readEntries(messages, entries = /** @type {Entry[]} */ ([])) {
  for (const message of messages) {
    const entry = entryOf(message, entries);
    entry.storedIds.push(message.id);
    // That a tool begins does not end an answer that was cut.
    const isStart = message.parts.some((part) => markOf(part)?.starts !== undefined);
    if (!isStart) entry.isCut = CUT.includes(message.status);
    if (message.metadata !== null && message.metadata !== undefined) entry.metadata = message.metadata;
    let last;
    for (const part of message.parts) {
      const value = markOf(part);
      if (value) applyMark(entry, value, last);
      else last = addNeutral(entry, part);
    }
  }
  return entries;
}

/** A UI message must have a part: one that shows nothing. */
const placeholder = (role) => (role === 'assistant' ? { type: 'step-start' } : { type: 'text', text: '' });

/** @param {Entry} entry @returns {any} */
export function messageOf(entry) {
  const { id, role, head } = entry;
  const metadata = entry.metadata ?? head.metadata;
  const parts = entry.slots.flatMap(({ part, neutral, kept }) => {
    const shown = part ?? uiPart(neutral, role, kept);
    if (!shown) return [];
    return [isToolPart(shown) ? validToolPart(shown) : shown];
  });
  if (!parts.length) parts.push(placeholder(role));
  return plain({ ...head.extra, id, role, ...(metadata === undefined ? {} : { metadata }), parts });
}

/** @type {typeof import('../ai-sdk.d.ts').toUIMessages} */
export function toUIMessages(messages, { ai } = {}) {
  return readEntries(messages).map((entry) => {
    const message = messageOf(entry);
    return { ...message, parts: message.parts.map((part) => readablePart(part, ai)) };
  });
}
