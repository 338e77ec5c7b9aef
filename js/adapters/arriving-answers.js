// Answers that have not come to their end, in `session.state`. Each has a key of its own, because several tabs may
// stream at once; a key whose answer has ended is used again, because keys are never removed.

/**
 * An answer of `branch`. `message` is what it has, if that is more than is stored; it follows the stored message
 * `after`, or continues the message of the page that the branch ends with.
 *
 * `durable`: the names of the tools that store that they start before they do.
 *
 * @typedef {{ id: string, branch: string, message?: any, after?: string | null, durable?: string[] }} Arriving
 */

/** True if the branch ends with the answer, or where it begins. `stored`: the messages of which `entries` were read.
 *  @param {Arriving} answer */
const isAtEnd = ({ id, after }, entries, stored) =>
  entries.at(-1)?.id === id || (after !== undefined && (stored.at(-1)?.id ?? null) === after);

export class ArrivingAnswers {
  #key;

  /** @param {string} key The adapter's. */
  constructor(key) {
    this.#key = key;
  }

  /** @returns {{ key: string, value: Arriving | null }[]} */
  #slots({ state }) {
    const keys = state.keys().filter((key) => key === this.#key || key.startsWith(`${this.#key}/`));
    return keys.map((key) => ({ key, value: state.get(key) ?? null }));
  }

  /** The answers of the branch that is shown. @returns {Arriving[]} */
  shown(session) {
    return this.#slots(session).flatMap(({ value }) => (value && value.branch === session.branch ? [value] : []));
  }

  /** The answer that was arriving when its page ended. */
  cut(session, entries, stored) {
    return this.shown(session).find((answer) => answer.message && isAtEnd(answer, entries, stored));
  }

  /** The message of that answer. */
  message(session, entries, stored) {
    return this.cut(session, entries, stored)?.message;
  }

  /** What is kept of an answer. @returns {Arriving | undefined} */
  find(session, id) {
    return this.#slots(session).find(({ value }) => value?.id === id)?.value ?? undefined;
  }

  /** True if the answer is kept. */
  isKept(session, id) {
    return this.find(session, id) !== undefined;
  }

  /** Keeps an answer, or with `null` no longer: the next write stores it. Returns what undoes that.
   *  @param {any} session @param {string} id @param {Arriving | null} value */
  keep(session, id, value) {
    const slots = this.#slots(session);
    const own = slots.find((slot) => slot.value?.id === id);
    if (!own && !value) return () => {};
    const { key } = own ??
      slots.find((slot) => slot.value === null) ?? { key: slots.length ? `${this.#key}/${slots.length}` : this.#key };
    session.state.set(key, value);
    return () => session.state.set(key, own?.value ?? null);
  }
}
