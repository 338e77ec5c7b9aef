// What a session has of the calls of `once`: a call that was started, and its result. A session that has the call
// already, in an answer of the model, gets a mark beside it.

import { recordOf, recordPart } from '../message-record.js';
import { isSameJson } from '../plain.js';
import { changeSession, KnownMessages } from '../session-messages.js';
import { TaskQueue } from '../task-queue.js';
import { ToolRun } from '../tool-run.js';

/** The name of the part with the mark. */
const RECORD = 'once';

/** Results that a store did not take, by session and invocation: of this process, which may open a session anew for
 *  each request. @type {Map<string, ToolResult>} */
const unsaved = new Map();

/** @typedef {{ callId: string, name: string, arguments: any }} ToolCall */
/** @typedef {{ content: any, isError: boolean }} ToolResult */
/** `starts`: how often its tool has begun.
 *  @typedef {ToolCall & { invocation: string, result: ToolResult | null, starts: number }} JournaledCall */
/** `begun`: the tool may run. `unknown`: it may have run before.
 *  @typedef {{ kind: 'begun', invocation: string } | { kind: 'unknown', call: JournaledCall }
 *    | { kind: 'finished', result: ToolResult } | { kind: 'unsaved', invocation: string, result: ToolResult }
 *    | { kind: 'joined', outcome: Promise<any> } | { kind: 'changed', call: JournaledCall }} Begin */

function journaledCall({ callId, name, arguments: args, invocation, result, status }) {
  // The text of an interrupted call is no result: its tool may still give one.
  const isInterrupted = status === 'interrupted';
  return {
    callId,
    name,
    arguments: args,
    invocation,
    result: isInterrupted ? null : (result ?? null),
    starts: isInterrupted ? 1 : 0,
  };
}

/** What was read of messages that have not changed. @type {WeakMap<object, { calls: any[], mark: any }>} */
const readings = new WeakMap();

function readMessage(message) {
  const known = readings.get(message);
  if (known) return known;
  const calls = message.parts.filter(({ type }) => type === 'tool_call');
  const reading = { calls, mark: recordOf(RECORD, message) };
  readings.set(message, reading);
  return reading;
}

/** Returns the newest call with the id. @returns {JournaledCall | undefined} */
function findCall(messages, callId) {
  const callOf = (message) => readMessage(message).calls.findLast((call) => call.callId === callId);
  const at = messages.findLastIndex((message) => callOf(message) !== undefined);
  if (at < 0) return undefined;
  const found = journaledCall(callOf(messages[at]));
  for (const message of messages.slice(at)) {
    const { mark } = readMessage(message);
    if (mark?.starts !== callId) continue;
    found.starts += 1;
    // Those that the tool got; the model may have written them otherwise.
    if (Object.hasOwn(mark, 'arguments')) found.arguments = mark.arguments;
  }
  return found;
}

function newInvocation() {
  const bytes = Array.from(crypto.getRandomValues(new Uint8Array(12)));
  return `once_${bytes.map((byte) => byte.toString(16).padStart(2, '0')).join('')}`;
}

/** The message that stores the start of a call which the session does not have. */
function callMessage({ callId, name, arguments: args }, invocation) {
  const call = { id: invocation, callId, name, arguments: args, argumentsText: JSON.stringify(args) };
  const parts = [{ type: 'tool', call: { ...call, result: null, finishedAt: null } }];
  return { role: 'assistant', parts: [recordPart(RECORD, { starts: callId }, parts), ...parts] };
}

function markMessage({ callId, arguments: args }) {
  return { role: 'assistant', parts: [recordPart(RECORD, { starts: callId, arguments: args }, [])] };
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
   *  @param {ToolRun} own @param {ToolCall} call @returns {Promise<Begin>} */
  begin(own, call, starts = 0) {
    const read = () => this.#messages.read();
    return this.queued(() =>
      changeSession(this.#session, read, async ({ revision, messages }) => {
        own.release();
        const found = findCall(messages, call.callId);
        const known = found && this.#known(own, found, { call, starts });
        if (known) return known;
        const invocation = found?.invocation ?? newInvocation();
        own.claim(this.#key(invocation));
        await this.#messages.append([found ? markMessage(call) : callMessage(call, invocation)], revision);
        return { kind: 'begun', invocation };
      }),
    );
  }

  /** What keeps the tool of a stored call from running. @returns {Begin | undefined} */
  #known(own, found, { call, starts }) {
    const { invocation, result } = found;
    // Of a call that nobody has started, the arguments are as the model wrote them.
    const isSame = (!found.starts && !result) || isSameJson(found.arguments, call.arguments);
    if (found.name !== call.name || !isSame) return { kind: 'changed', call: found };
    if (result) return { kind: 'finished', result };
    const key = this.#key(invocation);
    const other = ToolRun.under(key);
    if (other) return { kind: 'joined', outcome: other.outcome };
    const kept = unsaved.get(key);
    if (kept) return { kind: 'unsaved', invocation, result: kept };
    if (found.starts === starts) return undefined;
    own.claim(key);
    return { kind: 'unknown', call: found };
  }

  /** Stores the result of a call that has begun; the first one that is stored counts. Until it is stored, it is kept
   *  here. @param {{ invocation: string, callId: string }} call @param {ToolResult} result */
  async end({ invocation, callId }, result) {
    const key = this.#key(invocation);
    unsaved.set(key, result);
    await this.queued(async () => {
      const { revision } = this.#session;
      try {
        await this.#session.answer(invocation, { type: 'tool_result', ...result });
      } catch (error) {
        const isStored =
          error?.code === 'wrong_state' && findCall((await this.#messages.read()).messages, callId)?.result;
        if (['not_found', 'evicted'].includes(error?.code)) unsaved.delete(key); // its session is gone
        if (!isStored) throw error;
      }
      await this.#messages.readAppended(revision, new Set([callId]), 0);
    });
    unsaved.delete(key);
  }

  #key(invocation) {
    return JSON.stringify([this.#session.id, invocation]);
  }
}
