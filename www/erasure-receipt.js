// The receipt of an erasure, in words.

import { bytes, counted } from './dom.js';

const TABLES = { log: 'history', tool_invocations: 'the audit table', runs: 'journals', copies: 'earlier values' };
const capitalized = (text) => text.charAt(0).toUpperCase() + text.slice(1);

/** `[sentence, lines]` of what `deleteMessages` returned: what is gone, and what may still have a copy. */
export function receiptLines({ messages, invocations, records, bytes: freed, unreached }) {
  const what = [counted(messages.length, 'message'), ...(invocations ? [counted(invocations, 'call')] : [])].join(
    ' with ',
  );
  const where = records
    .filter(({ count }) => count > 0)
    .map(({ table, count }) => `${counted(count, 'record')} of ${TABLES[table] ?? table}`)
    .join(', ');
  return [
    `Erased: ${what}. Rewritten or removed: ${where || 'nothing'}; ${bytes(freed)} less are stored. What may have a copy:`,
    unreached.map(({ why }) => `${capitalized(why)}.`),
  ];
}
