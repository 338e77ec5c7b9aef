// `Rethread.resumeAll`: resumes what a crash or a reload interrupted, and what waits for a person.

import { memberOf } from './untrusted-value.js';

/** Runs that go on by themselves, or with a decision. One that failed is tried again when a person says so. */
const RESUMED_STATES = new Set(['interrupted', 'waiting_approval']);
/** Another tab was faster, or the run has ended meanwhile. */
const TAKEN = new Set(['busy', 'not_found']);

/**
 * @param {import('./rethread.js').Rethread} client
 * @param {import('./own-runs.js').OwnRuns} own
 */
export async function resumeAll(client, own, { pending, request }) {
  const runs = [];
  const failed = [];
  for (const found of pending) {
    const { session, id } = found;
    if (!RESUMED_STATES.has(found.state) || own.has(session, id)) continue;
    try {
      const given = typeof request === 'function' ? await request(found) : request;
      // Asked again: the function may have taken its time.
      if (given === null || given === undefined || own.has(session, id)) continue;
      const open = await client.session(session);
      if (own.has(session, id)) continue;
      runs.push(await open.resume(id, given));
    } catch (error) {
      if (!TAKEN.has(memberOf(error, 'code'))) failed.push({ session, run: id, error });
    }
  }
  return { runs, failed };
}
