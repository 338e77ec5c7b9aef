// An answer that TanStack gives another id while it grows: the text after a tool's result has an id of its own, and the
// message with the call takes it. Here it keeps the first one. TanStack dates what it makes, and keeps that time:
// without one, an answer that begins as the one before cannot be told from another answer to the same question.

import { isObject, isSame } from '../plain.js';

/** `NaN` without a time, which equals nothing. */
const timeOf = ({ createdAt }) => new Date(createdAt ?? Number.NaN).getTime();

/** True if the second message is the first one with another id, and perhaps more parts. */
function isRenamed(before, after) {
  return (
    before.id !== after.id &&
    before.role === 'assistant' &&
    after.role === 'assistant' &&
    before.parts?.length > 0 &&
    Array.isArray(after.parts) &&
    timeOf(before) === timeOf(after) &&
    before.parts.every((part, at) => isSame(part, after.parts[at]))
  );
}

export class RenamedAnswers {
  /** The ids that messages are stored with, by those that they were given later. @type {Map<string, string>} */
  #ids = new Map();

  /** The messages with the ids that they are stored with. `before`: what the page had before, as this returned it. */
  stored(before, messages) {
    const at = messages.length - 1;
    const [old, last] = [before[at], messages[at]];
    const isAtEnd = before.length === messages.length && isObject(old) && isObject(last);
    if (isAtEnd && !this.#ids.has(last.id) && isRenamed(old, last)) this.#ids.set(last.id, old.id);
    return messages.map((message) => {
      const id = this.#ids.get(message.id);
      return id === undefined ? message : { ...message, id };
    });
  }

  clear() {
    this.#ids.clear();
  }
}
