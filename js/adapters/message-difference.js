// What a library's message has that its stored form has not, as messages for `append`.

import { continuation } from './marked-messages.js';

/**
 * What `difference` of an adapter finds. `results`: parts of type `tool_result` for stored calls. `changes`: neutral
 * parts and marks for parts that are stored. `parts`: parts of the library that follow those; `all`: all parts of the
 * message, where how a part is written depends on others. `metadata`: what replaces the stored one, undefined if
 * nothing does.
 *
 * @typedef {{ results: any[], changes: any[], parts: any[], all?: any[], metadata?: unknown }} MessageDifference
 */

/** True if the stored message lacks something. @param {MessageDifference} found */
export const isChanged = ({ results, changes, parts, metadata }) =>
  results.length + changes.length + parts.length > 0 || metadata !== undefined;

/** Messages for `append` whose last one has the status: that of the library's message as a whole.
 *  @param {any[]} items @param {string} [status] @returns {any[]} */
export function withStatus(items, status) {
  const last = items.at(-1);
  return status && last ? [...items.slice(0, -1), { ...last, status }] : items;
}

/**
 * What `append` needs for a difference. With a status there is a message that has it, even if nothing else is new.
 *
 * @param {import('./marks.js').MarkFormat} format
 * @param {{ id: string, role: string }} message
 * @param {MessageDifference} found
 * @param {string} [status]
 * @returns {any[]}
 */
export function additions(format, message, found, status) {
  const results = found.results.length ? [{ role: 'tool', parts: found.results }] : [];
  const isLonger = found.changes.length + found.parts.length > 0 || found.metadata !== undefined;
  const longer = isLonger || status ? continuation(format, message, found) : [];
  return withStatus([...results, ...longer], status);
}
