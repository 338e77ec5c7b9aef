// `drive`: executes the effects of a run. Knows no provider and keeps no state between runs.

import * as check from './arguments.js';
import { Credentials } from './credentials.js';
import { RethreadError } from './error.js';
import { Approvals } from './host/approvals.js';
import { concurrencyLimit, queue, sleep } from './host/async.js';
import { registerStaticHeaders } from './host/headers.js';
import { callModel } from './host/model-call.js';
import { SaveRetries } from './host/save-retries.js';
import { runTool } from './host/tool-call.js';
import { redactedError } from './host/redacted-error.js';
import { dispose } from './wasm-handle.js';

const END_STATUSES = new Set(['finished', 'failed', 'cancelled']);

/** Runs that are being driven. */
const drivenRuns = new WeakSet();

/** Throws for a run that cannot be driven and for invalid or unknown options. */
function checkArguments(run, options) {
  check.drivenRun(run);
  check.driveOptions(options);
  if (drivenRuns.has(run))
    throw new RethreadError(
      'wrong_state',
      'this run is being driven already: use the return value of the first `drive`',
    );
}

/**
 * Drives a run to its end, or until it waits for an approval that nobody gives here. Starts at once; watching is
 * optional.
 *
 * @type {typeof import('./types.js').drive}
 */
export function drive(run, options = {}) {
  checkArguments(run, options);
  drivenRuns.add(run);
  const events = new EventStream();
  const emitEvents = () => {
    const emitted = run.events();
    emitted.forEach((event) => events.push(event));
    return emitted;
  };

  const result = executeEffects(run, options, emitEvents).finally(() => {
    try {
      emitEvents();
    } catch {
      // the run was disposed or its instance has stopped; `result` rejects with the reason
    }
    drivenRuns.delete(run);
    events.end();
  });
  // Callers that only watch the events must not get an unhandled rejection.
  result.catch(() => {});
  return { result, [Symbol.asyncIterator]: () => events.iterator() };
}

/** @type {typeof import('./types.js').isDriven} */
export function isDriven(run) {
  return drivenRuns.has(run);
}

/** The member of a delta that grows. */
const DELTAS = { text_delta: 'text', reasoning_delta: 'text', tool_arguments_delta: 'json' };

/** Appends a delta to the one before it, if both belong to one text; returns false if they do not. */
function joinDelta(last, event) {
  if (last?.type !== event.type || !Object.hasOwn(DELTAS, event.type)) return false;
  if (last.messageId !== event.messageId || last.index !== event.index) return false;
  last[DELTAS[event.type]] += event[DELTAS[event.type]];
  return true;
}

/**
 * The events of a run. All iterators take from one queue, so each event is delivered once. Deltas that nobody has read
 * are joined: so the queue is as long as an answer has parts, and not as long as the stream has chunks.
 */
class EventStream {
  #events = queue();
  /** The `resolve` functions of calls of `next` that wait for an event. */
  #waiting = queue();
  #hasEnded = false;

  push(event) {
    const resolve = this.#waiting.take();
    if (resolve) resolve({ value: event, done: false });
    else if (!joinDelta(this.#events.last(), event)) this.#events.push(event);
  }

  end() {
    this.#hasEnded = true;
    for (let resolve = this.#waiting.take(); resolve; resolve = this.#waiting.take())
      resolve({ value: undefined, done: true });
  }

  iterator() {
    let isClosed = false;
    const done = /** @type {const} */ ({ value: undefined, done: true });
    return {
      next: () => {
        if (isClosed) return Promise.resolve(done);
        const event = this.#events.take();
        if (event) return Promise.resolve({ value: event, done: false });
        return this.#hasEnded ? Promise.resolve(done) : new Promise((resolve) => this.#waiting.push(resolve));
      },
      return: () => {
        isClosed = true; // stops watching, not the run
        return Promise.resolve(done);
      },
    };
  }
}

/** Executes the effects of the run until it ends, or waits for an approval without `onApproval`; returns its result. */
async function executeEffects(run, driveOptions, emitEvents) {
  const options = { ...driveOptions, credentials: new Credentials() };
  const { signal } = options;
  const allEffects = new AbortController();
  const approvals = new Approvals(run, options);
  const saves = new SaveRetries(run, options, allEffects.signal);
  /** @type {{ isOpen: boolean, failure: { error: unknown } | null }} */
  const cancellation = { isOpen: false, failure: null };
  const cancel = () => {
    allEffects.abort(signal?.reason);
    cancellation.isOpen = true;
    // A run that waits for an approval may have another holder, which rejects.
    run
      .cancel()
      .catch((error) => {
        cancellation.failure = { error };
      })
      .finally(() => {
        cancellation.isOpen = false;
        approvals.wake();
      });
  };
  if (signal?.aborted) cancel();
  else signal?.addEventListener('abort', cancel, { once: true });

  registerStaticHeaders(options);
  const limitTools = concurrencyLimit(Math.max(1, options.toolConcurrency ?? Infinity));
  /** The abort controllers of the started effects, by effect id. */
  const started = new Map();
  approvals.ask();
  try {
    // An earlier `drive` may have taken effects and left them open, so start from all open effects.
    run.takeEffects();
    let changes = { opened: run.effects(), closed: [] };
    for (;;) {
      const changed = run.changed();
      changed.catch(() => {}); // the loop may end before it is awaited
      const types = emitEvents().map(({ type }) => type);
      if (types.includes('approval_needed')) approvals.ask();
      if (types.includes('save_failed')) saves.begin();
      if (END_STATUSES.has(run.status)) break;
      if (cancellation.failure) throw cancellation.failure.error;
      if (run.status === 'waiting_approval' && !approvals.isAsking && !cancellation.isOpen) {
        approvals.throwFailure();
        break;
      }
      // The host does not stay awake for it; `pendingRuns` says when to resume the run.
      if (changes.opened.some(({ type, ms }) => type === 'wait' && ms > (options.longestPauseMs ?? Infinity))) {
        run[dispose]();
        throw new RethreadError(
          'closed',
          'the model is called again after a pause that is longer than `longestPauseMs`; `pendingRuns()` says when to resume the run',
        );
      }
      for (const effect of changes.opened) {
        const controller = new AbortController();
        started.set(effect.id, controller);
        executeEffect(run, effect, options, AbortSignal.any([allEffects.signal, controller.signal]), limitTools);
      }
      // Abort effects that the run has closed: the rest of a stream, a tool of a cancelled run.
      for (const id of changes.closed) {
        started.get(id)?.abort();
        started.delete(id);
      }
      await (approvals.isAsking || cancellation.isOpen ? Promise.race([changed, approvals.answered()]) : changed);
      // Only the changes: a round may have thousands of calls, and each changes twice.
      changes = run.takeEffects();
    }
  } finally {
    allEffects.abort();
    approvals.stop();
    signal?.removeEventListener('abort', cancel);
  }
  return run.result();
}

/** Executes one effect and answers it. Never rejects: a failure is an answer. */
async function executeEffect(run, effect, options, signal, limitTools) {
  try {
    if (effect.type === 'call_model') await callModel(run, effect, options, signal);
    else if (effect.type === 'run_tool') await limitTools(() => runTool(run, effect, options, signal));
    else await wait(run, effect, options, signal);
  } catch (error) {
    await run.answer(effect.id, { type: 'failed', error: redactedError(error, options) }).catch(() => {});
  }
}

async function wait(run, effect, options, signal) {
  await sleep(effect.ms, signal);
  options.hasWaited = true;
  if (!signal.aborted) await run.answer(effect.id, { type: 'waited' });
}
