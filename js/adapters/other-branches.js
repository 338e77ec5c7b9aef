// What other branches of a session have. A call that branches share is one call: what one of them has started may have
// run in all of them.

import { isMissingResult } from './interrupted.js';
import { currentInvocation, lineage, markOf, startMarks } from './once/marks.js';
import { ATTEMPTS, readPages } from './session-messages.js';

const PAGE = 1000;

/** What a branch has that is not shown: `shared` is how many of the shown messages it has, `own` are those that follow.
 *  @typedef {{ shared: number, own: any[] }} OtherBranch */
/** @typedef {import('../types.js').Branch} Branch */

export const isDamage = (error) => ['corrupt_record', 'unsupported_version'].includes(error?.code);

/** By session, the messages that a branch may have whose record is damaged: those that were there when that was seen
 *  first. @type {WeakMap<object, Map<string, Set<string>>>} */
const damaged = new WeakMap();

/** The other branches, except sides of conflicts, and all of them. Notes which messages damaged ones may have.
 *  @param {any} session @param {any[]} messages those that are shown */
export async function listBranches(session, messages) {
  const all = /** @type {Branch[]} */ (await session.branches());
  const others = all.filter(({ branch, kind }) => branch !== session.branch && kind !== 'conflict');
  const noted = damaged.get(session) ?? new Map();
  for (const { branch } of others.filter((one) => one.damaged))
    if (!noted.has(branch)) noted.set(branch, new Set(messages.map(({ id }) => id)));
  if (noted.size) damaged.set(session, noted);
  return { all, others };
}

/** @param {Map<string, number>} places of the shown messages, by id @returns {Promise<OtherBranch>} */
async function readOther(session, branch, places) {
  const pages = [];
  let cursor;
  do {
    const page = await session.messages({ limit: PAGE, cursor, branch });
    const last = page.items.findLastIndex(({ id }) => places.has(id));
    pages.unshift(page.items.slice(last + 1));
    if (last >= 0) return { shared: (places.get(page.items[last].id) ?? 0) + 1, own: pages.flat() };
    cursor = page.cursor ?? undefined;
  } while (cursor !== undefined);
  return { shared: 0, own: pages.flat() };
}

/** The branches of a session beside the one that is shown. */
class OtherBranches {
  #session;
  #places;
  /** By name. @type {Map<string, Branch>} */
  #all;

  /** @param {any} session @param {any[]} messages those that are shown
   *  @param {{ all: Branch[], others: Branch[] }} list */
  constructor(session, messages, { all, others }) {
    this.#session = session;
    this.#places = new Map(messages.map(({ id }, at) => [id, at]));
    this.#all = new Map(all.map((one) => [one.branch, one]));
    this.others = others;
    this.messages = messages;
  }

  /** How many of the shown messages the place of a fork shares; undefined if it is not among them. */
  #sharedAt({ forkedAfter }) {
    if (forkedAfter === null) return 0;
    const place = this.#places.get(forkedAfter);
    return place === undefined ? undefined : place + 1;
  }

  /** How many of the shown messages a branch has, as far as the records of the branches say it.
   *  @param {Branch | undefined} one @returns {number | undefined} */
  #recordedShared(one) {
    if (!one || one.damaged) return undefined;
    let shared = this.messages.length;
    for (let own = this.#all.get(this.#session.branch); own; own = this.#all.get(own.parent ?? '')) {
      if (own.branch === one.branch) return shared;
      // "main" is nobody's fork.
      if (own.kind === 'main') break;
      const at = own.damaged ? undefined : this.#sharedAt(own);
      if (at === undefined) return undefined;
      shared = Math.min(shared, at);
    }
    if (one.kind === 'main') return undefined;
    const at = this.#sharedAt(one);
    if (at !== undefined) return at;
    return this.#recordedShared(this.#all.get(one.parent ?? '')) === 0 ? 0 : undefined;
  }

  /** True if a branch may have the message at a place, as far as the records of the branches say it. */
  mayHave(one, place) {
    if (one.damaged) return damaged.get(this.#session)?.get(one.branch)?.has(this.messages[place]?.id) ?? true;
    const shared = this.#recordedShared(one);
    return shared === undefined || shared > place;
  }

  /** The number of the shown messages that a branch has. */
  async shared(one) {
    return this.#recordedShared(one) ?? (await this.read(one)).shared;
  }

  /** @param {Branch} one */
  read({ branch }) {
    return readOther(this.#session, branch, this.#places);
  }
}

/** Returns which of these messages of the branch that is shown another one has, or may have: it is damaged.
 *  @param {any} session @param {any[]} messages those that are shown @param {string[]} ids
 *  @returns {Promise<Set<string>>} */
export async function keptElsewhere(session, messages, ids) {
  const list = await listBranches(session, messages);
  if (!list.others.length) return new Set();
  const branches = new OtherBranches(session, messages, list);
  const asked = new Set(ids);
  const wanted = [...messages.entries()].filter(([, { id }]) => asked.has(id));
  const kept = new Set();
  for (const one of list.others) {
    if (!wanted.some(([place]) => branches.mayHave(one, place))) continue;
    const shared = await branches.shared(one).catch((error) => {
      if (isDamage(error)) return undefined;
      throw error;
    });
    for (const [place, { id }] of wanted)
      if (shared === undefined ? branches.mayHave(one, place) : place < shared) kept.add(id);
  }
  return kept;
}

const hasCall = ({ parts }, invocations) =>
  parts.some(({ type, invocation }) => type === 'tool_call' && invocations.includes(invocation));

/** The invocations that a call has, or had before its message was written anew, and the first of the shown messages
 *  that has one. */
function placedCall(messages, marks, invocation) {
  const invocations = lineage(marks, invocation);
  return { invocation, invocations, place: messages.findIndex((message) => hasCall(message, invocations)) };
}

/** Reads the other branches that may have one of these calls, each with the calls that it may have. Of one that cannot
 *  be read, `damage` is the error.
 *  @param {any} session @param {any[]} messages those that are shown @param {string[]} invocations */
async function branchesWith(session, messages, invocations) {
  const list = await listBranches(session, messages);
  if (!list.others.length) return [];
  const branches = new OtherBranches(session, messages, list);
  const marks = messages.map(markOf);
  const calls = invocations.map((one) => placedCall(messages, marks, one)).filter(({ place }) => place >= 0);
  const found = [];
  for (const one of list.others) {
    const asked = calls.filter(({ place }) => branches.mayHave(one, place));
    if (!asked.length) continue;
    try {
      const { shared, own } = await branches.read(one);
      const had = asked.filter(({ place }) => place < shared);
      if (had.length) found.push({ calls: had, shared, own });
    } catch (damage) {
      if (!isDamage(damage)) throw damage;
      found.push({ calls: asked, shared: 0, own: [], damage });
    }
  }
  return found;
}

/** The messages of other branches that may say something of a call: those that follow what they share with the branch
 *  that is shown. Rejects with `corrupt_record` if one cannot be read that may have the call.
 *  @param {any} session @param {any[]} messages those that are shown @param {string} invocation */
export async function messagesElsewhere(session, messages, invocation) {
  const found = await branchesWith(session, messages, [invocation]);
  for (const { damage } of found) if (damage) throw damage;
  return found.map(({ own }) => own);
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

/** The invocations of which messages after the shared ones say that they were started. */
function startedIn(messages, { shared, own }, startsOf) {
  const marks = [...messages.slice(0, shared), ...own].map(markOf);
  // The ids of calls come again: a start is of the newest one.
  const newest = new Map();
  for (const message of messages.slice(0, shared)) noteCalls(message, newest);
  const started = new Set();
  for (const message of own) {
    noteCalls(message, newest);
    for (const callId of startsOf(message))
      for (const invocation of newest.get(callId) ?? []) for (const one of lineage(marks, invocation)) started.add(one);
  }
  return started;
}

/** The invocations that `once` has started in these messages. */
function startedByOnceIn(own) {
  const marks = own.flatMap((message) => markOf(message) ?? []);
  return new Set(startMarks(marks).flatMap(({ invocation }) => lineage(marks, invocation)));
}

/** What other branches say of calls of the branch that is shown. `started`: the calls that their messages start, by
 *  what `startsOf` returns of each; `startedByOnce`: those that `once` has started; `doubted`: those of which a branch
 *  that may have them cannot be read.
 *  @param {any} session @param {any[]} messages @param {string[]} invocations
 *  @param {(message: any) => string[]} startsOf */
export async function startedElsewhere(session, messages, invocations, startsOf) {
  const told = {
    started: new Set(),
    startedByOnce: new Set(),
    doubted: new Set(),
    damage: /** @type {unknown} */ (undefined),
  };
  if (!invocations.length) return told;
  for (const { calls, damage, ...other } of await branchesWith(session, messages, invocations)) {
    const [started, startedByOnce] = [startedIn(messages, other, startsOf), startedByOnceIn(other.own)];
    for (const { invocation, invocations: all } of calls) {
      if (damage) told.doubted.add(invocation);
      if (all.some((one) => started.has(one))) told.started.add(invocation);
      if (all.some((one) => startedByOnce.has(one))) told.startedByOnce.add(invocation);
    }
    told.damage ??= damage;
  }
  return told;
}

/** The call of a branch, whose message may have been written anew. */
function callIn(messages, invocation) {
  const current = currentInvocation(messages.map(markOf), invocation);
  const isOne = (part) => part.type === 'tool_call' && part.invocation === current;
  return messages.flatMap(({ parts }) => parts).find(isOne);
}

/** Stores a result in a branch that has the call. The first result counts; the note that there is none is replaced.
 *  False if the branch has no such call. */
async function answerIn(session, branch, { invocation, answer, replaced }) {
  for (let attempt = 1; ; attempt += 1) {
    const { revision } = await session.refresh();
    const messages = await readPages(session, branch);
    const call = callIn(messages, invocation);
    if (!call) return false;
    const isOpen = call.result === null || call.status === 'interrupted';
    if (!isOpen && !(replaced && isMissingResult(call.result))) return true;
    const part = { type: 'tool_result', callId: call.invocation, ...answer };
    const items = isOpen ? [{ role: 'tool', parts: [part] }] : replaced(messages, revision);
    try {
      await session.append(items, { branch, expectedRevision: revision });
      return true;
    } catch (error) {
      // Somebody else has answered it, or has written meanwhile.
      if (!['conflict', 'invalid_input'].includes(error?.code) || attempt === ATTEMPTS) throw error;
      const isSame = (await session.refresh()).revision === revision;
      if (error.code === 'invalid_input' && isSame) throw error;
    }
  }
}

/** Stores the result of a call that the branch which is shown does not have, in one that has it: somebody has shown
 *  another one while the tool ran. One that the call has already stays. False if none has the call.
 *  @param {any} session @param {string} invocation @param {{ content: any, isError?: boolean }} result
 *  @param {(messages: any[], revision: number) => any[]} [replaced] What `append` needs to replace the note that the
 *    call has no result, where it is stored as a result. */
export async function answerElsewhere(session, invocation, { content, isError = false }, replaced) {
  let damage;
  const answer = { result: content, isError };
  for (const { branch, kind } of await session.branches()) {
    if (branch === session.branch || kind === 'conflict') continue;
    try {
      if (await answerIn(session, branch, { invocation, answer, replaced })) return true;
    } catch (error) {
      if (!isDamage(error)) throw error;
      damage = error;
    }
  }
  if (damage) throw damage;
  return false;
}
