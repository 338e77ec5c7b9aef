// The calls of `once` whose stored results come from executions here: of a session as it was opened here.

/** By session, the invocations. @type {WeakMap<object, Set<string>>} */
const executed = new WeakMap();

/** Notes that the stored result of a call is that of its execution here. @param {object} session */
export function noteExecution(session, invocation) {
  executed.set(session, (executed.get(session) ?? new Set()).add(invocation));
}

/** @param {object} session @returns {Set<string>} */
export const executionsOf = (session) => executed.get(session) ?? new Set();
