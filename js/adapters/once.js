// "rethread/once": a function that runs once for each call of a tool, whatever loop makes the call.

import { RethreadError } from '../error.js';
import { sleep } from '../host/async.js';
import { FIRST_PAUSE_MS, LONGEST_PAUSE_MS, SAVE_TIMEOUT_MS } from '../host/save-retries.js';
import { reasonOf, textOf } from '../untrusted-value.js';
import { INTERRUPTED, UNREADABLE } from './interrupted.js';
import { CallJournal } from './once/call-journal.js';
import { asJson } from './once/json.js';
import { SharedRun } from './once/shared-run.js';

/** @typedef {import('./once/call-journal.js').ToolCall} ToolCall */
/** @typedef {import('./once/call-journal.js').ToolResult} ToolResult */
/** @typedef {import('./once/call-journal.js').CallKey} CallKey */

/** @type {WeakMap<object, CallJournal>} */
const journals = new WeakMap();

const isText = (value) => typeof value === 'string' && value !== '';

/** The id of a call, where a loop passes it: beside the arguments. */
function callIdOf(...args) {
  for (const context of args.slice(1)) {
    const { callId, toolCallId, toolCall, agent } = context ?? {};
    const id = [callId, toolCallId, toolCall?.callId, toolCall?.id, agent?.toolCallId].find(isText);
    if (id !== undefined) return id;
  }
  return undefined;
}

/** The arguments as the model wrote them, where a loop passes them beside the id (OpenAI Agents): those of `execute` may
 *  have a schema's defaults, or be a wrapper's. @returns {string | undefined} */
function writtenArguments(callId, args) {
  const written = args.slice(1).map((context) => context?.toolCall);
  const found = written.find((call) => call?.callId === callId && typeof call.arguments === 'string');
  return found?.arguments;
}

/** @returns {AbortSignal | undefined} */
function signalOf(args) {
  const signals = args.slice(1).map((context) => context?.signal ?? context?.abortSignal);
  return signals.find((signal) => typeof signal?.throwIfAborted === 'function');
}

const invalid = (message) => new RethreadError('config_invalid', message);

function checkedTool(tool) {
  const { name, execute, onInterrupted = 'report', callId = callIdOf, saveTimeoutMs = SAVE_TIMEOUT_MS } = tool ?? {};
  const known = { name, execute, onInterrupted, callId, saveTimeoutMs };
  const [unknown] = Object.keys(tool ?? {}).filter((key) => !Object.hasOwn(known, key));
  if (unknown !== undefined) throw invalid(`\`once\` has no option \`${unknown}\``);
  if (!isText(name)) throw invalid('`name` must be the name of the tool');
  if (typeof execute !== 'function') throw invalid('`execute` must be a function');
  if (typeof callId !== 'function') throw invalid("`callId` must be a function of the tool's arguments");
  if (!['report', 'rerun'].includes(onInterrupted) && typeof onInterrupted !== 'function')
    throw invalid('`onInterrupted` must be "report", "rerun", or a function that asks somebody');
  if (typeof saveTimeoutMs !== 'number' || !(saveTimeoutMs >= 0))
    throw invalid('`saveTimeoutMs` must be a number of milliseconds');
  return known;
}

/** @returns {ToolCall} */
function checkedCall({ name, callId: find }, args) {
  const callId = find(...args);
  if (!isText(callId)) {
    throw new RethreadError(
      'invalid_input',
      `a call of ${name} has no id; pass \`callId\`, a function of the tool's arguments that returns it`,
    );
  }
  return { callId, name, arguments: asJson(args[0] ?? {}), written: writtenArguments(callId, args) };
}

const NEVER = new AbortController().signal;
const PERMANENT = [
  'invalid_input',
  'too_large',
  'not_found',
  'wrong_state',
  'closed',
  'evicted',
  'unsupported_version',
];

/** Repeats a save that fails after growing pauses, for `timeoutMs`. */
async function saved(save, timeoutMs) {
  const end = performance.now() + timeoutMs;
  for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(2 * pause, LONGEST_PAUSE_MS)) {
    try {
      await save();
      return;
    } catch (error) {
      if (PERMANENT.includes(error?.code) || performance.now() + pause > end) throw error;
    }
    await sleep(pause, NEVER);
  }
}

/** The codes of errors of a result that no store takes. */
const UNSTORABLE = /** @type {const} */ (['invalid_input', 'too_large']);

/** What is stored in the place of a result that cannot be stored. It names the code of the error that is thrown. */
const unstorable = (error) => `This call has run. Its result cannot be stored (${error.code}): ${reasonOf(error)}`;

/** The code that `unstorable` has named in a stored text. */
function codeOfUnstorable(content) {
  const [, code] = /^This call has run\. Its result cannot be stored \((\w+)\): /.exec(content) ?? [];
  return UNSTORABLE.find((one) => one === code);
}

/** What a stored result is to the loop: an error result is thrown, as the tool threw it. */
function outcomeOf({ content, isError }) {
  if (!isError) return content;
  const code = codeOfUnstorable(content);
  if (code) throw new RethreadError(code, content, {});
  throw new Error(typeof content === 'string' ? content : JSON.stringify(content));
}

/** The abort of a call whose start stays stored. A new error: the reason may be that of other calls, too. */
function unwithdrawn(reason, { callId, name }, cause) {
  const message = `${reasonOf(reason)} (${name} was not run, but that could not be stored: the call ${callId} counts as one that may have run)`;
  return Object.assign(new Error(message, { cause }), { name: textOf(reason, 'name') ?? 'AbortError' });
}

/** One call of a tool. */
class OnceCall {
  #journal;
  #tool;
  #call;
  #args;
  #own;
  /** Of all who wait for the call. @type {AbortSignal} */
  #signal;

  /** @param {CallJournal} journal @param {any} tool
   *  @param {{ call: ToolCall, args: any[], own: SharedRun }} options */
  constructor(journal, tool, { call, args, own }) {
    this.#journal = journal;
    this.#tool = tool;
    this.#call = call;
    this.#args = args;
    this.#own = own;
    this.#signal = own.signal;
  }

  async perform() {
    let starts = 0;
    for (;;) {
      const begun = await this.#journal.begin(this.#own, this.#call, { starts, signal: this.#signal });
      if (begun.kind === 'joined') {
        const joined = await this.#join(begun.run);
        if (joined) return joined.output;
        starts = 0;
      } else if (begun.kind === 'unknown') {
        const decision = await this.#decision(begun.call);
        if (decision !== 'rerun') return this.#settle(begun.call, decision.result);
        starts = begun.call.starts;
      } else return this.#end(begun);
    }
  }

  /** Waits for the execution of another caller. Returns undefined for one that had been given up: the call can be
   *  started then, or is unknown. @param {SharedRun} run */
  async #join(run) {
    const isGivenUp = run.signal.aborted;
    try {
      return { output: await run.wait(this.#signal) };
    } catch (error) {
      if (!isGivenUp || this.#signal.aborted) throw error;
      return undefined;
    }
  }

  async #end(begun) {
    switch (begun.kind) {
      case 'finished':
        return outcomeOf(begun.result);
      case 'unsaved':
        await this.#save(begun.key, begun.result);
        return outcomeOf(begun.result);
      case 'unreadable':
        if (!begun.isTold) await this.#save(begun.key, { content: UNREADABLE, isError: true });
        throw new RethreadError('invalid_input', UNREADABLE, { callId: begun.key.callId });
      case 'changed':
        throw this.#changed(begun.call);
      case 'ambiguous':
        throw this.#ambiguous(begun.count);
      default:
        return this.#start(begun);
    }
  }

  /** What happens to a call that may have run. @returns {Promise<'rerun' | { result: any }>} */
  async #decision({ callId }) {
    const { onInterrupted } = this.#tool;
    const decision =
      typeof onInterrupted === 'function' ? await onInterrupted(this.#interrupted(callId)) : onInterrupted;
    if (decision === 'report') {
      throw new RethreadError('wrong_state', INTERRUPTED, { outcome: 'unknown', callId });
    }
    if (decision === 'rerun' || (typeof decision === 'object' && decision && Object.hasOwn(decision, 'result')))
      return decision;
    throw new RethreadError(
      'callback_failed',
      '`onInterrupted` must return "report", "rerun" or { result }; the tool was not run',
    );
  }

  /** What `onInterrupted` gets. `callId`: as it is stored. */
  #interrupted(callId) {
    const { name, arguments: args } = this.#call;
    return { callId, name, arguments: args };
  }

  /** Runs the tool, whose start is stored, unless all callers gave up meanwhile: the call can then be started again. */
  async #start(begun) {
    if (this.#signal.aborted) await this.#withdraw(begun);
    this.#signal.throwIfAborted();
    return this.#run(begun.key);
  }

  async #withdraw(begun) {
    try {
      await saved(() => this.#journal.withdraw(begun), this.#tool.saveTimeoutMs);
    } catch (cause) {
      throw unwithdrawn(this.#signal.reason, this.#call, cause);
    }
  }

  async #run(key) {
    let output;
    try {
      output = await this.#tool.execute(...this.#args);
    } catch (error) {
      // An abort does not say what the tool has done before.
      if (!this.#signal.aborted) await this.#save(key, { content: reasonOf(error), isError: true });
      throw error;
    }
    return this.#settle(key, output);
  }

  /** Stores what the tool returned, and returns it. */
  async #settle(key, output) {
    try {
      await this.#save(key, { content: asJson(output), isError: false });
    } catch (error) {
      if (!UNSTORABLE.includes(error?.code)) throw error;
      const content = unstorable(error);
      await this.#save(key, { content, isError: true });
      throw new RethreadError(error.code, content, {}, { cause: error });
    }
    return output;
  }

  /** @param {CallKey} key @param {ToolResult} result */
  #save(key, result) {
    return saved(() => this.#journal.end(key, result), this.#tool.saveTimeoutMs);
  }

  #ambiguous(count) {
    const { callId, name } = this.#call;
    return new RethreadError(
      'conflict',
      `the answer has ${count} calls ${callId} that these arguments do not tell apart, and ${name} was not run; pass the \`id\` that \`session.invocations()\` gives the call`,
      {},
    );
  }

  #changed({ name }) {
    const { callId, name: ownName } = this.#call;
    const what = name === ownName ? 'other arguments' : `the tool ${name}`;
    return new RethreadError(
      'conflict',
      `the call ${callId} is stored with ${what}, and ${ownName} was not run; each call needs an id of its own`,
      {},
    );
  }
}

/** @param {any} session @param {any} tool @returns {any} */
export function once(session, tool) {
  if (typeof session?.append !== 'function' || typeof session.answer !== 'function')
    throw invalid('`once` takes a session: `await store.session(id)`');
  const checked = checkedTool(tool);
  return async (...args) => {
    const call = checkedCall(checked, args);
    const signal = signalOf(args);
    signal?.throwIfAborted();
    const journal = journals.get(session) ?? new CallJournal(session);
    journals.set(session, journal);
    const own = new SharedRun();
    const work = new OnceCall(journal, checked, { call, args: own.argumentsOf(args, signal), own });
    // Its outcome is what the callers wait for.
    own.perform(() => work.perform()).catch(() => {});
    return own.wait(signal);
  };
}
