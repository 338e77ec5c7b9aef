// Stored messages as UI messages.

import { readMarked } from '../marked-entries.js';
import { plain } from '../plain.js';
import { FORMAT } from './format.js';
import { readablePart, uiPart } from './parts.js';
import { isToolPart, validToolPart } from './tools.js';

/** @typedef {import('../marked-entries.js').Entry} Entry */

/** The UI messages of stored messages, oldest first, which continue `entries`.
 *  @param {readonly any[]} messages @param {Entry[]} [entries] @returns {Entry[]} */
export const readEntries = (messages, entries) => readMarked(FORMAT, messages, entries);

/** A UI message must have a part: one that shows nothing. */
const placeholder = (role) => (role === 'assistant' ? { type: 'step-start' } : { type: 'text', text: '' });

/** The parts of an entry, each with its place among the slots. Those of one dialect are none.
 *  @param {Entry} entry @returns {{ at: number, part: any }[]} */
export const partsOf = ({ role, slots }) =>
  slots.flatMap(({ part, neutral, kept }, at) => {
    const shown = part ?? uiPart(neutral, role, kept);
    if (!shown) return [];
    return [{ at, part: plain(isToolPart(shown) ? validToolPart(shown) : shown) }];
  });

/** @param {Entry} entry @returns {any} */
export function messageOf(entry) {
  const { id, role, head } = entry;
  const metadata = entry.metadata ?? head.metadata;
  const parts = partsOf(entry).map(({ part }) => part);
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
