// Tools that store that they start before they do, and their result when they have one.

import { RethreadError } from '../../error.js';
import { Session } from '../../session.js';
import { INTERRUPTED } from '../interrupted.js';
import { findCall, lostCalls, resultOfCall, startItems, storeLost, storeResult } from './calls.js';
import { checkSession } from './session-argument.js';
import { liveAnswerOf, untilStored } from './under-way.js';
import { isSameJson, plain } from '../plain.js';
import { storedChat } from './stored-chat.js';
import { ToolRun } from '../tool-run.js';

const ON_INTERRUPTED = ['report', 'rerun'];

/** What names a stored call in `ToolRun`: the ids of calls come again. @returns {[string, object]} */
const keyOf = (session, { invocation }) => [JSON.stringify([session.id, invocation]), Session.storeOf(session)];

const textOf = (content) => (typeof content === 'string' ? content : JSON.stringify(content));

/** The output that a stored result stands for. */
function outputOf({ content, isError }) {
  if (isError) throw new Error(textOf(content));
  return content;
}

/** The result of a call that was answered. A note that there is none is an error. */
const knownResult = (call) => resultOfCall(call) ?? { content: call.result.content, isError: true };

const isAsyncIterable = (value) => typeof value?.[Symbol.asyncIterator] === 'function';

/** The last of the outputs of a tool that returns an iterable. */
async function lastOf(outputs) {
  let last;
  for await (const output of outputs) last = output;
  return last;
}

/** True if two inputs differ, as far as JSON has them: a schema may have made what it does not have. */
function isOtherInput(one, other) {
  try {
    return !isSameJson(one ?? {}, other ?? {});
  } catch {
    return false;
  }
}

/** The call of a durable tool. */
class DurableCall {
  #session;
  #chat;
  #callId;
  #invocation = '';
  #signal;
  #input;

  constructor(session, input, { toolCallId, abortSignal }) {
    this.#session = session;
    this.#input = input;
    this.#chat = storedChat(session);
    this.#callId = toolCallId;
    this.#signal = abortSignal;
  }

  /** Returns the output of the tool. @param {() => any} invoke */
  run(invoke, isRepeatable) {
    return new ToolRun(this.#input).perform(async (own) => {
      const known = await this.#begin(own, isRepeatable);
      return known ? known() : this.#invoke(invoke);
    });
  }

  /** Stores that the tool begins, in an append that fails if another process was first. If the call was started
   *  already, returns where its output comes from. @param {ToolRun} own */
  async #begin(own, isRepeatable) {
    await untilStored(this.#session, this.#callId);
    const decide = (entries) => {
      own.release();
      const found = findCall(entries, this.#callId);
      if (!found) throw this.#unknownCall();
      const { entry, call } = found;
      const { result } = call;
      const other = ToolRun.under(...keyOf(this.#session, call));
      if (result) return { items: [], known: async () => outputOf(knownResult(call)) };
      if (other && isOtherInput(other.input, this.#input)) throw this.#ambiguousCall(call);
      if (other) return { items: [], known: () => other.outcome };
      if (entry.starts.has(this.#callId) && !isRepeatable)
        return { items: [], known: async () => outputOf({ content: INTERRUPTED, isError: true }) };
      // Another process may have stopped the answer, or taken its place, since this one looked.
      liveAnswerOf(this.#session)?.checkHold();
      // Of an answer that was stopped meanwhile, the model may have been told that the tool did not run.
      this.#signal?.throwIfAborted();
      own.claim(...keyOf(this.#session, call));
      this.#invocation = call.invocation;
      return { items: startItems(entry, this.#callId), known: undefined };
    };
    return (await this.#chat.change(decide, { startsOf: this.#callId })).known;
  }

  #unknownCall() {
    return new RethreadError(
      'config_invalid',
      `the session has no call ${this.#callId}: wrap the model with \`historyMiddleware(session)\`, with the same session as the tools`,
    );
  }

  #ambiguousCall({ name }) {
    return new RethreadError(
      'conflict',
      `the answer has several calls ${this.#callId}, and ${name} was not run for the input of this one`,
      {},
    );
  }

  /** Stores the result. If that fails, the next request to the model stores it, or is not sent. */
  async #end({ result, isError = false }) {
    try {
      await storeResult(this.#session, this.#chat, this.#invocation, { result, isError });
    } catch {
      this.#chat.unstored.set(this.#invocation, { result, isError });
    }
  }

  async #invoke(invoke) {
    let output;
    try {
      output = await invoke();
      if (isAsyncIterable(output)) output = await lastOf(output);
    } catch (error) {
      await this.#end({ result: messageOfError(error), isError: true });
      throw error;
    }
    await this.#end({ result: plain(output) ?? null });
    return output;
  }
}

const messageOfError = (error) => (error instanceof Error ? error.message : textOf(error ?? 'unknown error'));

function checkedOptions(tools, options) {
  const { onInterrupted = {}, ...unknown } = options;
  const [name] = Object.keys(unknown);
  if (name !== undefined)
    throw new RethreadError(
      'config_invalid',
      `\`${name}\` is not one of the options of \`durableTools\`: onInterrupted`,
    );
  for (const [tool, word] of Object.entries(onInterrupted)) {
    if (!Object.hasOwn(tools, tool)) throw new RethreadError('config_invalid', `there is no tool ${tool}`);
    if (!ON_INTERRUPTED.includes(word))
      throw new RethreadError('config_invalid', `\`onInterrupted\` of ${tool} is "report" or "rerun"`);
  }
  return onInterrupted;
}

/** Durable tools that may run again. @type {WeakSet<object>} */
const mayRerun = new WeakSet();

/** The `providerOptions` of durable tools: of a tool, a model's request has this object itself. @type {WeakSet<object>} */
const optionsOfDurable = new WeakSet();

/** The names of the durable ones among the tools of a model's request. @returns {Set<string>} */
export const durableNames = (tools) =>
  new Set((tools ?? []).filter((tool) => optionsOfDurable.has(tool.providerOptions)).map(({ name }) => name));

/** @param {any} tools @param {any} session @param {any} [options] @returns {any} */
export function durableTools(tools, session, options = {}) {
  checkSession(session, 'durableTools');
  const onInterrupted = checkedOptions(tools, options);
  return Object.fromEntries(
    Object.entries(tools).map(([name, tool]) => {
      if (typeof tool?.execute !== 'function') return [name, tool];
      const isRepeatable = onInterrupted[name] === 'rerun';
      const execute = (input, details) =>
        new DurableCall(session, input, details).run(() => tool.execute(input, details), isRepeatable);
      const providerOptions = { ...tool.providerOptions };
      optionsOfDurable.add(providerOptions);
      const durable = Object.assign(Object.create(Object.getPrototypeOf(tool)), tool, { execute, providerOptions });
      if (isRepeatable) mayRerun.add(durable);
      return [name, durable];
    }),
  );
}

/** Resolves when the signal is aborted. @param {AbortSignal | undefined} signal */
const untilAborted = (signal) =>
  new Promise((resolve) => {
    if (signal?.aborted) resolve(undefined);
    else signal?.addEventListener('abort', resolve, { once: true });
  });

/** Answers a call that has no result because its process ended. A tool that may run again does. */
async function settleCall(session, lost, { tool, signal }) {
  const { call, mayHaveRun } = lost;
  const other = ToolRun.under(...keyOf(session, call));
  if (!other && !(mayHaveRun && mayRerun.has(tool))) return storeLost(storedChat(session), lost);
  // Its failure is its result, and stored.
  const output =
    other?.outcome ?? Promise.resolve(tool.execute(call.arguments, { toolCallId: call.callId, messages: [] }));
  return Promise.race([output.catch(() => {}), untilAborted(signal)]);
}

const toolOf = (tools, { call: { name } }) => (Object.hasOwn(tools, name) ? tools[name] : undefined);

/** Answers the calls of the last answer that nobody answers any more. An abort ends that before its end.
 *  @param {any} session @param {any} [tools] @param {AbortSignal} [signal] */
export async function settleCalls(session, tools, signal) {
  for (const lost of lostCalls(await storedChat(session).entriesWithStarts())) {
    const tool = toolOf(tools ?? {}, lost);
    if (signal?.aborted) return;
    // One without `execute` is the application's to answer.
    if (tool && typeof tool.execute !== 'function') continue;
    await settleCall(session, lost, { tool, signal });
  }
}

/** Notes that the calls of durable tools which a new question leaves have no result. That of a tool that still runs
 *  takes the place of the note. */
export async function leaveCalls(session, tools, question) {
  const chat = storedChat(session);
  const entries = await chat.entriesWithStarts();
  if (question?.role !== 'user' || entries.some(({ id }) => id === question.id)) return;
  for (const lost of lostCalls(entries, { isLeft: true }))
    if (typeof toolOf(tools, lost)?.execute === 'function') await storeLost(chat, lost);
}
