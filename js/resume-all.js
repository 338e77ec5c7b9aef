// `Rethread.resumeAll`: resumes what a crash or a reload interrupted.

import { memberOf } from './untrusted-value.js';

/** Another tab may have been faster, or the run has ended meanwhile. */
const MAY_BE_TAKEN = new Set(['busy', 'not_found', 'conflict']);

/** Whoever resumes a run that waits for an approval takes it from the page that shows the question. */
const RESUMED = new Set(['interrupted', 'queued']);

/**
 * @param {import('./rethread.js').Rethread} client
 * @param {import('./own-runs.js').OwnRuns} own
 */
export async function resumeAll(client, own, { pending, request }) {
  const runs = [];
  const queued = [];
  const failed = [];
  for (const { session, id, ...found } of pending) {
    if (!RESUMED.has(found.state) || own.has(session, id)) continue;
    const fail = (error) => failed.push({ session, run: id, error });
    let given = request;
    try {
      if (typeof request === 'function') given = await request({ session, id, ...found });
    } catch (error) {
      fail(error);
      continue;
    }
    if (given === null || given === undefined) continue;
    if (found.state === 'queued') {
      // It begins when the runs before it are over, which the caller drives. So it is the caller who waits.
      queued.push({ session, run: id, resume: () => takeUp(client, own, { session, id, given }) });
      continue;
    }
    try {
      const open = await client.session(session);
      // Asked again: this took its time.
      if (!own.has(session, id)) runs.push(await open.resume(id, given));
    } catch (error) {
      if (!MAY_BE_TAKEN.has(memberOf(error, 'code')) || (await isLeft(client, own, { session, id }))) fail(error);
    }
  }
  return { runs, queued, failed };
}

/** Takes up a question; null if another tab has it, or it waits no more. */
async function takeUp(client, own, { session, id, given }) {
  try {
    return await (await client.session(session)).resume(id, given);
  } catch (error) {
    if (!MAY_BE_TAKEN.has(memberOf(error, 'code')) || (await isLeft(client, own, { session, id }))) throw error;
    return null;
  }
}

/** True if nobody has resumed the run. */
async function isLeft(client, own, { session, id }) {
  const pending = await client.pendingRuns({ session }).catch(() => null);
  if (pending === null) return true;
  return pending.some((run) => run.id === id && run.state !== 'live') && !own.has(session, id);
}
