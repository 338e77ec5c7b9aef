// Answers that have not come to their end, in `session.state`. Each has a key of its own, because several tabs may
// stream at once; a key whose answer has ended is used again, because keys are never removed.

const KEY = 'rethread/ai-sdk';

/**
 * An answer of `branch`. `message` is what it has, if that is more than is stored; it follows the stored message
 * `after`, or continues the UI message that the branch ends with.
 *
 * @typedef {{ id: string, branch: string, message?: any, after?: string | null }} Arriving
 */

/** @returns {{ key: string, value: Arriving | null }[]} */
function slotsOf({ state }) {
  const keys = state.keys().filter((key) => key === KEY || key.startsWith(`${KEY}/`));
  return keys.map((key) => ({ key, value: state.get(key) ?? null }));
}

/** The answers of the branch that is shown. @returns {Arriving[]} */
export const arrivingAnswers = (session) =>
  slotsOf(session).flatMap(({ value }) => (value && value.branch === session.branch ? [value] : []));

/** True if the branch ends with the answer, or where it begins. `stored`: the messages of which `entries` were read.
 *  @param {Arriving} answer */
const isAtEnd = ({ id, after }, entries, stored) =>
  entries.at(-1)?.id === id || (after !== undefined && (stored.at(-1)?.id ?? null) === after);

/** The answer that was arriving when its page ended. */
export const arrivingMessage = (session, entries, stored) =>
  arrivingAnswers(session).find((answer) => answer.message && isAtEnd(answer, entries, stored))?.message;

/** True if the answer is kept. */
export const isKept = (session, id) => slotsOf(session).some(({ value }) => value?.id === id);

/** Keeps an answer, or with `null` no longer: the next write stores it. Returns what undoes that. */
export function keep(session, id, value) {
  const slots = slotsOf(session);
  const own = slots.find((slot) => slot.value?.id === id);
  if (!own && !value) return () => {};
  const { key } = own ??
    slots.find((slot) => slot.value === null) ?? { key: slots.length ? `${KEY}/${slots.length}` : KEY };
  session.state.set(key, value);
  return () => session.state.set(key, own?.value ?? null);
}
