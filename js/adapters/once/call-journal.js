// What a session has of the calls of `once`: a call that was started, and its result. A session that has the call
// already, in an answer of the model, gets a mark beside it. So does a start whose tool did not run after all.

import { UNREADABLE } from '../interrupted.js';
import { answerElsewhere, messagesElsewhere } from '../other-branches.js';
import { isSameJson } from '../plain.js';
import { changeSession, KnownMessages } from '../session-messages.js';
import { TaskQueue } from '../task-queue.js';
import { noteExecution } from './executions.js';
import { argumentValue, isJsonText } from '../call-arguments.js';
import { currentInvocation, lineage, markMessage, markOf, markPart, newId } from './marks.js';
import { SharedRun } from './shared-run.js';

/** Results that a store did not take, by session and call: of this process, which may open a session anew for
 *  each request. @type {Map<string, ToolResult>} */
const unsaved = new Map();

/** `written`: the arguments as the model wrote them, if the loop says so.
 *  @typedef {{ callId: string, name: string, arguments: any, written?: string }} ToolCall */
/** @typedef {{ content: any, isError: boolean }} ToolResult */
/** `origin`: the first invocation that it had; `argumentsText`: as the model wrote them; `starts`: how often its tool
 *  has begun; `unsettled`: the starts of which nobody has said that they did not run it; `withdrawn`: those that did not.
 *  @typedef {ToolCall & { argumentsText: string, invocation: string, origin: string, result: ToolResult | null,
 *    starts: number, unsettled: Set<string>, withdrawn: Set<string> }} JournaledCall */
/** `callId`: as it is stored. @typedef {{ invocation: string, origin: string, callId: string }} CallKey */
/** `begun`: the tool may run. `unknown`: it may have run before. `ambiguous`: as many calls could be meant.
 *  `unreadable`: the model wrote no JSON; `isTold`: it has the result that says so.
 *  @typedef {{ kind: 'begun', key: CallKey, start: string } | { kind: 'unknown', call: JournaledCall }
 *    | { kind: 'finished', result: ToolResult } | { kind: 'unsaved', key: CallKey, result: ToolResult }
 *    | { kind: 'joined', run: SharedRun } | { kind: 'changed', call: JournaledCall }
 *    | { kind: 'ambiguous', count: number } | { kind: 'unreadable', key: CallKey, isTold: boolean }} Begin */

/** @returns {JournaledCall} */
function journaledCall({ callId, name, arguments: args, argumentsText, invocation, result, status }) {
  // The text of an interrupted call is no result: its tool may still give one.
  const isInterrupted = status === 'interrupted';
  return {
    callId,
    name,
    arguments: args,
    argumentsText,
    invocation,
    origin: invocation,
    result: isInterrupted ? null : (result ?? null),
    starts: isInterrupted ? 1 : 0,
    unsettled: new Set(isInterrupted ? ['interrupted'] : []),
    withdrawn: new Set(),
  };
}

/** `isTurn`: somebody speaks in it, the user or the model; a journal's own message is none.
 *  @typedef {{ calls: any[], mark: any, isTurn: boolean }} Reading */
/** What was read of messages that have not changed. @type {WeakMap<object, Reading>} */
const readings = new WeakMap();

const SPEAKERS = ['user', 'assistant'];

function readMessage(message) {
  const known = readings.get(message);
  if (known) return known;
  const calls = message.parts.filter(({ type }) => type === 'tool_call');
  const mark = markOf(message);
  const isTurn = !mark && SPEAKERS.includes(message.role) && message.parts.some(({ type }) => type !== 'data');
  const reading = { calls, mark, isTurn };
  readings.set(message, reading);
  return reading;
}

/** The invocation that a call of these messages has by now. */
const currentOf = (messages, invocation) =>
  currentInvocation(
    messages.map((message) => readMessage(message).mark),
    invocation,
  );

/** The calls that an id may mean: the stored call of which it is or was the invocation, or those with this `callId` in
 *  the newest answer that has one. */
function callsOf(messages, id) {
  const current = currentOf(messages, id);
  for (const isOne of [({ invocation }) => invocation === current, ({ callId }) => callId === id]) {
    const at = messages.findLastIndex((message) => readMessage(message).calls.some(isOne));
    if (at >= 0)
      return readMessage(messages[at])
        .calls.filter(isOne)
        .map((call) => withMarks(call, messages.slice(at)));
  }
  return [];
}

/** True if the conversation has left a call behind before a journal had it: its answer was imported, or the user or
 *  the model has spoken since. Who executed its answer then may have run it. */
function isLeftBehind({ invocation }, [answer, ...later]) {
  if (readMessage(answer).mark) return false;
  const isJournaled = ({ mark }) => mark?.invocation === invocation && (mark.start ?? mark.withdrawn) !== undefined;
  const first = later.findIndex((message) => isJournaled(readMessage(message)));
  const before = first < 0 ? later : later.slice(0, first);
  return answer.source?.type === 'history' || before.some((message) => readMessage(message).isTurn);
}

/** In place of a start: the call was not started here, and may have run elsewhere. */
const LEFT_BEHIND = 'left behind';

/** The call with what the marks in these messages say of it. `messages[0]` has the call. */
function withMarks(call, messages) {
  const found = journaledCall(call);
  if (!found.result && !found.starts && isLeftBehind(found, messages)) {
    found.starts = 1;
    found.unsettled.add(LEFT_BEHIND);
  }
  return withMarksOf(found, messages, ({ invocation }) => invocation === found.invocation);
}

/** The call with the marks of messages that others of the session may precede or follow.
 *  @param {JournaledCall} found @param {any[]} messages
 *  @param {(mark: import('./marks.js').CallMark) => boolean} isOwn */
function withMarksOf(found, messages, isOwn) {
  for (const message of messages) {
    const { mark } = readMessage(message);
    if (!mark || !isOwn(mark)) continue;
    found.origin = mark.was?.[0] ?? found.origin;
    if (mark.withdrawn !== undefined) {
      found.withdrawn.add(mark.withdrawn);
      found.unsettled.delete(mark.withdrawn);
      continue;
    }
    if (mark.start === undefined) continue;
    found.starts += 1;
    if (!found.withdrawn.has(mark.start)) found.unsettled.add(mark.start);
    // Those that the tool got; the model may have written them otherwise.
    if (Object.hasOwn(mark, 'arguments')) found.arguments = mark.arguments;
  }
  return found;
}

const mayHaveRun = ({ unsettled }) => unsettled.size > 0;
const isStartedHere = ({ unsettled }) => [...unsettled].some((start) => start !== LEFT_BEHIND);

/** True if these arguments are a text that the model wrote in the place of JSON, as in an answer that was cut. */
function isUnreadable({ arguments: stored, argumentsText }, { arguments: args }) {
  return typeof stored === 'string' && stored === args && !isJsonText(argumentsText);
}

const isToldUnreadable = ({ result }) => result?.isError === true && result.content === UNREADABLE;

/** True if a loop passes the arguments of the call: their value, or the text that the model wrote. */
const hasArguments = ({ arguments: stored }, args) => isSameJson(argumentValue(stored), argumentValue(args));

/** True for a call that has these arguments, or takes any: nobody has started it here, and a schema may add some. */
const takesArguments = (found, { arguments: args }) =>
  (!isStartedHere(found) && !found.result) || hasArguments(found, args);

/** Of the calls of one answer with one id, those that can be meant: name and arguments tell them apart. */
function candidates(found, call) {
  const named = found.filter(({ name }) => name === call.name);
  const equal = named.filter((one) => hasArguments(one, call.arguments));
  return [equal, named, found].find((some) => some.length);
}

/** The message that stores a call which the session does not have, and that its tool begins: with the arguments that
 *  the model wrote, as the loop will store the call, and beside them those that the tool gets, if they differ.
 *  @param {ToolCall} call @param {import('./marks.js').CallMark} mark */
function callMessage({ callId, name, arguments: args, written }, mark) {
  const argumentsText = written !== undefined && isJsonText(written) ? written : JSON.stringify(args);
  const call = { id: mark.invocation, callId, name, arguments: argumentValue(argumentsText), argumentsText };
  const parts = [{ type: 'tool', call: { ...call, result: null, finishedAt: null } }];
  const own = hasArguments(call, args) ? mark : { ...mark, arguments: args };
  return { role: 'assistant', parts: [markPart(own, parts), ...parts] };
}

/** The message that stores the start of a stored call: with arguments only if the tool gets others, so that they are
 *  erased with the call. */
const startMessage = (found, { arguments: args }, mark) =>
  markMessage(hasArguments(found, args) ? mark : { ...mark, arguments: args });

/** @returns {CallKey} */
const keyOf = ({ invocation, origin, callId }) => ({ invocation, origin, callId });

/** @param {ToolCall} call @returns {CallKey} */
function newKey({ callId }) {
  const invocation = newId();
  return { invocation, origin: invocation, callId };
}

/** The calls of one session. */
export class CallJournal extends TaskQueue {
  #session;
  #messages;

  constructor(session) {
    super();
    this.#session = session;
    this.#messages = new KnownMessages(session);
  }

  /** Stores that the tool of the call begins, in an append that fails if another process was first; `starts` is how
   *  often it may have begun before. What is begun or unknown is claimed for `own`.
   *  @param {SharedRun} own @param {ToolCall} call @param {{ starts?: number, signal?: AbortSignal }} options
   *  @returns {Promise<Begin>} */
  begin(own, call, { starts = 0, signal }) {
    const read = () => this.#messages.read();
    return this.queued(() =>
      changeSession(this.#session, read, async ({ revision, messages }) => {
        own.release();
        const some = candidates(callsOf(messages, call.callId), call) ?? [];
        if (some.length > 1) return { kind: 'ambiguous', count: some.length };
        const [found] = some;
        if (found && !found.result && !isStartedHere(found)) await this.#readOtherBranches(found, messages);
        const known = found && this.#known(own, found, { call, starts });
        if (known) return known;
        signal?.throwIfAborted();
        const key = found ? keyOf(found) : newKey(call);
        const { invocation } = key;
        const mark = { invocation, start: newId() };
        const message = found ? startMessage(found, call, mark) : callMessage(call, mark);
        own.claim(this.#nameOf(key));
        await this.#messages.append([message], revision);
        return { kind: 'begun', key, start: mark.start };
      }),
    );
  }

  /** Adds the starts of a call that other branches have: it is one call in all of them. @param {JournaledCall} found */
  async #readOtherBranches(found, messages) {
    const marksOf = (some) => some.map((message) => readMessage(message).mark);
    const invocations = lineage(marksOf(messages), found.invocation);
    for (const own of await messagesElsewhere(this.#session, messages, found.invocation)) {
      const theirs = marksOf(own);
      const isOne = ({ invocation }) => lineage(theirs, invocation).some((one) => invocations.includes(one));
      withMarksOf(found, own, isOne);
    }
  }

  /** Stores that a start did not run the tool. */
  withdraw({ key: { invocation }, start }) {
    const read = () => this.#messages.read();
    return this.queued(() =>
      changeSession(this.#session, read, ({ revision, messages }) => {
        const mark = { invocation: currentOf(messages, invocation), withdrawn: start };
        return this.#messages.append([markMessage(mark)], revision);
      }),
    );
  }

  /** What keeps the tool of a stored call from running. @returns {Begin | undefined} */
  #known(own, found, { call, starts }) {
    const { result } = found;
    const key = keyOf(found);
    if (found.name !== call.name || !takesArguments(found, call)) return { kind: 'changed', call: found };
    const unreadable = { kind: /** @type {const} */ ('unreadable'), key };
    if (isToldUnreadable(found)) return { ...unreadable, isTold: true };
    if (result) return { kind: 'finished', result };
    const other = SharedRun.under(this.#nameOf(key));
    if (other) return { kind: 'joined', run: other };
    const kept = unsaved.get(this.#nameOf(key));
    if (kept) return { kind: 'unsaved', key, result: kept };
    if (!mayHaveRun(found) || found.starts === starts)
      return isUnreadable(found, call) ? { ...unreadable, isTold: false } : undefined;
    own.claim(this.#nameOf(key));
    return { kind: 'unknown', call: found };
  }

  /** Stores the result of a call that has begun; the first one that is stored counts. Until it is stored, it is kept
   *  here. @param {CallKey} key @param {ToolResult} result */
  async end(key, result) {
    const name = this.#nameOf(key);
    unsaved.set(name, result);
    try {
      await this.queued(() => this.#answerCurrent(key, result));
    } catch (error) {
      if (['not_found', 'evicted'].includes(error?.code)) unsaved.delete(name); // its call or its session is gone
      throw error;
    }
    unsaved.delete(name);
  }

  /** Answers the call, whose message somebody may write anew meanwhile. */
  async #answerCurrent({ invocation, callId }, result) {
    let current = currentOf(this.#messages.known?.messages ?? [], invocation);
    for (let answered; answered !== current; ) {
      answered = current;
      current = await this.#answer({ invocation: answered, callId }, result);
    }
  }

  /** Stores a result of an invocation. Returns the one that the call has by then. */
  async #answer({ invocation, callId }, result) {
    const { revision } = this.#session;
    const isKnown = this.#messages.known?.revision === revision;
    try {
      await this.#session.answer(invocation, { type: 'tool_result', ...result });
    } catch (error) {
      if (!['not_found', 'wrong_state'].includes(error?.code)) throw error;
      const { messages } = await this.#messages.read();
      const current = currentOf(messages, invocation);
      const isStored = error.code === 'wrong_state' && callsOf(messages, current)[0]?.result;
      // The reply to an earlier attempt was lost.
      if (isStored && isSameJson(isStored.content, result.content)) noteExecution(this.#session, current);
      if (current !== invocation || isStored) return current;
      if (error.code === 'not_found' && (await answerElsewhere(this.#session, invocation, result))) return invocation;
      throw error;
    }
    noteExecution(this.#session, invocation);
    await this.#messages.readAppended(revision, new Set([callId]), 0);
    const isAlone = isKnown && this.#session.revision === revision + 1;
    return isAlone ? invocation : currentOf((await this.#messages.read()).messages, invocation);
  }

  /** @param {CallKey} key */
  #nameOf({ origin }) {
    return JSON.stringify([this.#session.id, origin]);
  }
}
