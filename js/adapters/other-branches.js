// What other branches of a session have. A call that branches share is one call: what one of them has started may have
// run in all of them.

const PAGE = 100;

/** What a branch has that is not shown: `shared` is how many of the shown messages it has, `own` are those that follow.
 *  @typedef {{ shared: number, own: any[] }} OtherBranch */

/** @param {Map<string, number>} places of the shown messages, by id @returns {Promise<OtherBranch>} */
async function readOther(session, branch, places) {
  const own = [];
  let cursor;
  do {
    const page = await session.messages({ limit: PAGE, cursor, branch });
    const last = page.items.findLastIndex(({ id }) => places.has(id));
    own.unshift(...page.items.slice(last + 1));
    if (last >= 0) return { shared: (places.get(page.items[last].id) ?? 0) + 1, own };
    cursor = page.cursor ?? undefined;
  } while (cursor !== undefined);
  return { shared: 0, own };
}

/** Reads the other branches, except sides of conflicts. @param {any} session @param {any[]} messages those that are shown
 *  @returns {Promise<OtherBranch[]>} */
export async function otherBranches(session, messages) {
  const branches = await session.branches();
  const others = branches.filter(({ branch, kind }) => branch !== session.branch && kind !== 'conflict');
  const places = new Map(messages.map(({ id }, at) => [id, at]));
  const read = [];
  for (const { branch } of others) read.push(await readOther(session, branch, places));
  return read;
}

/** Notes the invocations of a message's calls, by the id that the model gave them. */
function noteCalls({ parts }, newest) {
  const calls = parts.filter(({ type, name }) => type === 'tool_call' && name !== undefined);
  for (const { callId } of calls) {
    const own = calls.filter((call) => call.callId === callId);
    newest.set(
      callId,
      own.map(({ invocation }) => invocation),
    );
  }
}

/** The invocations of calls that other branches have started. `startsOf` returns the ids of the calls of which a message
 *  says so. @param {any} session @param {any[]} messages @param {(message: any) => string[]} startsOf
 *  @returns {Promise<Set<string>>} */
export async function startedElsewhere(session, messages, startsOf) {
  const started = new Set();
  for (const { shared, own } of await otherBranches(session, messages)) {
    // The ids of calls come again: a start is of the newest one.
    const newest = new Map();
    for (const message of messages.slice(0, shared)) noteCalls(message, newest);
    for (const message of own) {
      noteCalls(message, newest);
      for (const callId of startsOf(message))
        for (const invocation of newest.get(callId) ?? []) started.add(invocation);
    }
  }
  return started;
}

/** Stores the result of a call that the branch which is shown does not have, in one that has it: somebody has shown
 *  another one while the tool ran. False if none has the call.
 *  @param {any} session @param {string} invocation @param {{ content: any, isError?: boolean }} result */
export async function answerElsewhere(session, invocation, { content, isError = false }) {
  const isCall = ({ parts }) => parts.some((part) => part.type === 'tool_call' && part.invocation === invocation);
  for (const { branch, kind } of await session.branches()) {
    if (branch === session.branch || kind === 'conflict') continue;
    const { own } = await readOther(session, branch, new Map());
    if (!own.some(isCall)) continue;
    const part = { type: 'tool_result', callId: invocation, result: content, isError };
    await session.append([{ role: 'tool', parts: [part] }], { branch });
    return true;
  }
  return false;
}
