// Messages of a library as messages for `append`, with marks for what these have no member for.

import { markWith } from './marks.js';

/** @typedef {import('./marks.js').MarkFormat} MarkFormat */

/**
 * The parts of a library's message as lists, of which each is a stored message: one answer of the model.
 *
 * @param {MarkFormat} format
 * @param {{ role: string, parts: any[], all?: any[] }} message `all`: the parts of the whole message, if `parts` are
 *   its end.
 */
function answersOf(format, { role, parts, all = parts }) {
  const answers = [/** @type {any[]} */ ([])];
  let before = { role, isAnswered: false, parts: /** @type {any[]} */ ([]) };
  let hasContent = false;
  for (const part of parts) {
    const written = format.writtenPart(part, role, all);
    if (hasContent && format.beginsAnswer(part, written?.neutral, before)) {
      answers.push([]);
      before = { role, isAnswered: false, parts: [] };
      hasContent = false;
    }
    before.parts.push(part);
    if (!written) {
      answers.at(-1)?.push(markWith(format.name, format.unwrittenPart(part, all)));
      continue;
    }
    const { neutral, kept } = written;
    answers.at(-1)?.push(neutral, ...(kept ? [markWith(format.name, kept)] : []));
    hasContent ||= neutral.type !== 'data';
    before.isAnswered ||= neutral.type === 'tool' && neutral.result !== undefined;
  }
  return answers;
}

/** A library's message that is not stored yet, as messages for `append`. `id`: that of the first one, if it is not
 *  taken. @param {MarkFormat} format */
export function newMessages(format, message, id) {
  const { role } = message;
  return answersOf(format, message).map((parts, at) => {
    if (at) return { role, parts: [markWith(format.name, { of: message.id }), ...parts] };
    const head = { ...(message.id === id ? {} : { id: message.id }), ...format.ownMembers(message) };
    const own = Object.keys(head).length ? [markWith(format.name, head), ...parts] : parts;
    return { ...(id === undefined ? {} : { id }), role, ...format.storedMembers(message), parts: own };
  });
}

/**
 * What continues a stored message of a library, as messages for `append`.
 *
 * @param {MarkFormat} format
 * @param {{ id: string, role: string }} message
 * @param {{ changes?: any[], parts?: any[], all?: any[], metadata?: any }} more `changes` are neutral parts and marks
 *   of parts that are stored; `all` are the parts of the whole message.
 */
export function continuation(format, { id, role }, { changes = [], parts = [], all, metadata = undefined }) {
  const answers = answersOf(format, { role, parts, all });
  if (!answers[0].length) answers.shift();
  if (changes.length || !answers.length) answers.unshift(changes);
  return answers.map((own, at) => ({
    role,
    ...(at || metadata === undefined || metadata === null ? {} : { metadata }),
    parts: [markWith(format.name, { of: id }), ...own],
  }));
}
