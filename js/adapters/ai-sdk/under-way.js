// Answers that are under way in this process: their calls are stored before their tools begin.

import { BySession } from './by-session.js';

/** The answers that a transport sends to pages. @type {BySession<import('./live-answer.js').LiveAnswer>} */
export const liveAnswers = new BySession();

/** The answers of models that are not stored yet. @type {BySession<Set<Promise<void>>>} */
const unstored = new BySession();

/** The answer that a transport sends to pages. */
export const liveAnswerOf = (session) => liveAnswers.get(session);

/** Resolves when what has come of the answer with the call is stored. */
export async function untilStored(session, callId) {
  const live = liveAnswers.get(session);
  if (live) await live.storeCall(callId);
  else await Promise.all(unstored.get(session) ?? []);
}

/** Notes that an answer is asked for. Returns what says that it is stored, or will not be. */
export function beginAnswer(session) {
  const answers = unstored.get(session) ?? new Set();
  unstored.set(session, '', answers);
  /** @type {() => void} */
  let settle = () => {};
  const stored = new Promise((resolve) => {
    settle = () => resolve(undefined);
  });
  answers.add(stored);
  return () => {
    answers.delete(stored);
    if (!answers.size) unstored.delete(session);
    settle();
  };
}
