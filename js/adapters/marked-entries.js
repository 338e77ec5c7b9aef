// Stored messages as those of a library, read by their marks.

import { markValue } from './marks.js';

/** Statuses of an answer that did not come to its end. */
const CUT = ['stopped', 'failed', 'truncated', 'streaming'];

/**
 * A library's message as the store has it: `slots` are its parts, each the neutral part with the value of its mark, or
 * the part itself; `storedIds` are the ids of its stored messages, and `first` and `last` two of these.
 *
 * @typedef {{ part?: any, neutral?: any, kept?: any }} Slot
 * @typedef {{ id: string, role: string, head: any, metadata: unknown, createdAt: number, slots: Slot[],
 *   storedIds: string[], isCut: boolean, status: string | undefined, starts: Set<string>, durable: Set<string>,
 *   first?: any, last?: any }} Entry `starts`: the calls whose tools were started. `durable`: the calls of which that is
 *   stored before their tools start. `status`: that of the last stored message.
 */

/** @returns {Entry} */
const newEntry = (id, { role, createdAt }, head) => ({
  id,
  role: role === 'developer' ? 'system' : role,
  head,
  metadata: undefined,
  createdAt,
  slots: [],
  storedIds: [],
  isCut: false,
  status: undefined,
  starts: new Set(),
  durable: new Set(),
});

const callIdOf = ({ neutral }) => neutral?.call?.callId ?? neutral?.callId;

/** Adds a neutral part. A call whose beginning is stored takes its place. */
function addNeutral(format, entry, neutral) {
  const slot = { neutral };
  const callId = neutral.type === 'tool' || neutral.type === 'tool_call' ? callIdOf(slot) : undefined;
  // The ids of calls come again.
  if (callId !== undefined) for (const calls of [entry.starts, entry.durable]) calls.delete(callId);
  const begun = entry.slots.findIndex(({ part }) => part && format.isBegunCall(part, callId));
  if (callId === undefined || begun < 0) entry.slots.push(slot);
  else entry.slots[begun] = slot;
  return slot;
}

/** Applies a mark to the parts before it. `last` is the slot of the neutral part before the mark. */
function applyMark(entry, value, last) {
  if (value.starts !== undefined) entry.starts.add(value.starts);
  for (const callId of value.durable ?? []) entry.durable.add(callId);
  const at = value.at === undefined ? undefined : entry.slots[value.at];
  if (value.part) {
    if (value.at === undefined) entry.slots.push({ part: value.part, kept: value });
    else if (at) entry.slots[value.at] = { part: value.part, kept: value };
  } else if (value.joins && at?.neutral && last) {
    entry.slots.splice(entry.slots.indexOf(last), 1);
    entry.slots[value.at] = { neutral: { ...at.neutral, text: at.neutral.text + last.neutral.text }, kept: value };
  } else if (value.takes && at && last) {
    if (last !== at) entry.slots.splice(entry.slots.indexOf(last), 1);
    entry.slots[value.at] = { neutral: last.neutral, kept: value };
  } else if (value.rest) {
    const slot = value.at === undefined ? last : at;
    if (slot) slot.kept = value;
  }
}

/** The library's message that a stored message begins or continues. */
function entryOf(format, message, entries) {
  const first = message.parts.map((part) => markValue(format.name, part)).find((value) => value !== undefined) ?? {};
  if (first.of !== undefined) {
    const begun = entries.findLast(({ id }) => id === first.of);
    if (begun) return begun;
  }
  const entry = newEntry(first.of ?? first.id ?? message.id, message, first);
  entries.push(entry);
  return entry;
}

/**
 * The messages of a library of stored messages, oldest first, which continue `entries`.
 *
 * @param {import('./marks.js').MarkFormat} format
 * @param {readonly any[]} messages
 * @returns {Entry[]}
 */
export function readMarked(format, messages, entries = /** @type {Entry[]} */ ([])) {
  for (const message of messages) {
    const entry = entryOf(format, message, entries);
    entry.storedIds.push(message.id);
    entry.first ??= message;
    entry.last = message;
    // That a tool begins does not end an answer that was cut.
    const isStart = message.parts.some((part) => markValue(format.name, part)?.starts !== undefined);
    if (!isStart) {
      entry.status = message.status;
      entry.isCut = CUT.includes(message.status);
    }
    if (message.metadata !== null && message.metadata !== undefined) entry.metadata = message.metadata;
    let last;
    for (const part of message.parts) {
      const value = markValue(format.name, part);
      if (value) applyMark(entry, value, last);
      else last = addNeutral(format, entry, part);
    }
  }
  return entries;
}
