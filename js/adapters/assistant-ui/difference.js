// What is to be appended so that a stored message becomes the one that was written.

import { mark } from '../ai-sdk/marks.js';
import { neutralOf } from '../ai-sdk/parts.js';
import { isSame, without } from '../plain.js';
import { isOpen, isToolPart, toolResult } from '../ai-sdk/tools.js';

/** The neutral form of a part that models are sent. */
function sentForm(part, role) {
  const written = neutralOf(part, role);
  return written && written.neutral.type !== 'data' ? written : undefined;
}

/** The change of one part: what is appended for it, or null if its text, call or result is another one. */
function partChange({ at, part: before }, after, role) {
  if (isSame(before, after)) return {};
  const [old, written] = [sentForm(before, role), sentForm(after, role)];
  if (!old && !written) return { change: mark({ at, part: after }) };
  if (!old || !written) return null;
  if (isSame(old.neutral, written.neutral)) return { change: mark({ at, ...written.kept }) };
  const isAnswered = isToolPart(before) && isToolPart(after) && isOpen(before) && !isOpen(after);
  const call = without(written.neutral, 'result', 'isError');
  if (!isAnswered || !isSame(old.neutral, call)) return null;
  return { change: mark({ at, ...written.kept }), result: toolResult(after) };
}

const rest = (message) => without(message, 'id', 'parts', 'metadata');

/** The metadata that replaces the stored one; null if it cannot be replaced. */
function metadataChange(before, after) {
  if (isSame(before.metadata ?? null, after.metadata ?? null)) return {};
  return after.metadata === undefined || after.metadata === null ? null : { metadata: after.metadata };
}

/**
 * @param {any} before the stored message
 * @param {any} after what it is to become
 * @param {{ slots: { at: number, part: any }[], isLast: boolean, head?: any }} stored `slots`: the stored parts that
 *   those of `after` are compared with. `head`: the stored form of the first part of `after`, which has all that a
 *   message has beside its parts; null if nothing is stored of it. `isLast`: nothing follows the stored message.
 * @returns {import('../message-difference.js').MessageDifference | null} null if it cannot become that
 */
export function difference(before, after, { slots, isLast, head }) {
  const hasHead = head !== undefined;
  const parts = hasHead ? after.parts.slice(1) : after.parts;
  const metadata = hasHead ? {} : metadataChange(before, after);
  if (before.role !== after.role || parts.length < slots.length || !metadata) return null;
  if (!hasHead && !isSame(rest(before), rest(after))) return null;
  const found = { results: /** @type {any[]} */ ([]), changes: /** @type {any[]} */ ([]) };
  for (const [place, slot] of slots.entries()) {
    const change = partChange(slot, parts[place], after.role);
    if (!change) return null;
    if (change.change) found.changes.push(change.change);
    if (change.result) found.results.push(change.result);
  }
  const added = parts.slice(slots.length);
  if (!isLast && added.some((part) => sentForm(part, after.role))) return null;
  if (hasHead && !isSame(head, after.parts[0])) found.changes.push(mark({ part: after.parts[0] }));
  return { ...found, parts: added, ...metadata };
}
