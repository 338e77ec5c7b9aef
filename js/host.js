// `drive`: executes the effects of a run. Knows no provider and keeps no state between runs.

import { driveOptions, drivenRun } from './arguments.js';
import { Credentials, errorWords, headerPairs, plainWords } from './credentials.js';
import { RethreadError } from './error.js';
import { memberOf } from './foreign.js';
import { ResponseFilter } from './response-filter.js';
import { validateArguments, validates } from './tool.js';

const ENDED = new Set(['finished', 'failed', 'cancelled']);

/** Runs that are being driven. */
const driven = new WeakSet();

/** Throws for a run that cannot be driven and for invalid or unknown options. */
function check(run, options) {
  drivenRun(run);
  driveOptions(options);
  if (driven.has(run)) throw new RethreadError('wrong_state', 'this run is being driven already: use the return value of the first `drive`');
  driven.add(run);
}

/**
 * Drives a run to its end. Starts at once; watching is optional.
 *
 * @type {typeof import('./types.js').drive}
 */
export function drive(run, options = {}) {
  check(run, options);
  const events = queue();
  const readers = queue();
  let over = false;

  const emit = () => {
    for (const event of run.events()) {
      const reader = readers.take();
      if (reader) reader({ value: event, done: false });
      else events.push(event);
    }
  };

  const result = work(run, options, emit).finally(() => {
    try {
      emit();
    } catch {
      // the run was disposed or its instance has stopped; `result` rejects with the reason
    }
    over = true;
    driven.delete(run);
    for (let reader = readers.take(); reader; reader = readers.take()) reader({ value: undefined, done: true });
  });
  // Callers that only watch the events must not get an unhandled rejection.
  result.catch(() => {});

  return {
    result,
    [Symbol.asyncIterator]() {
      let left = false;
      return {
        next() {
          if (left) return Promise.resolve({ value: undefined, done: true });
          const event = events.take();
          if (event) return Promise.resolve({ value: event, done: false });
          if (over) return Promise.resolve({ value: undefined, done: true });
          return new Promise((resolve) => readers.push(resolve));
        },
        return() {
          left = true; // stops watching, not the run
          return Promise.resolve({ value: undefined, done: true });
        },
      };
    },
  };
}

async function work(run, given, emit) {
  const options = { ...given, credentials: new Credentials() };
  const { signal } = options;
  const stop = new AbortController();
  const cancel = () => {
    stop.abort(signal?.reason);
    // A disposed run rejects, and has nothing to cancel.
    run.cancel().catch(() => {});
  };
  if (signal?.aborted) cancel();
  else signal?.addEventListener('abort', cancel, { once: true });

  registerHeaders(options);
  const started = new Map();
  const tools = limiter(Math.max(1, options.toolConcurrency ?? Infinity));
  try {
    // An earlier `drive` may have taken effects and left them open, so start from all open effects.
    run.takeEffects();
    let changes = { opened: run.effects(), closed: [] };
    for (;;) {
      const changed = run.changed();
      changed.catch(() => {}); // the loop may end before it is awaited
      emit();
      if (ENDED.has(run.status)) break;
      for (const effect of changes.opened) {
        const own = new AbortController();
        started.set(effect.id, own);
        perform(run, effect, options, AbortSignal.any([stop.signal, own.signal]), tools);
      }
      // Abort effects that the run has closed: the rest of a stream, a tool of a cancelled run.
      for (const id of changes.closed) {
        started.get(id)?.abort();
        started.delete(id);
      }
      await changed;
      // Only the changes: a round may have thousands of calls, and each changes twice.
      changes = run.takeEffects();
    }
  } finally {
    stop.abort();
    signal?.removeEventListener('abort', cancel);
  }
  return run.result();
}

/** Executes one effect and answers it. Never rejects: a failure is an answer. */
async function perform(run, effect, options, signal, tools) {
  try {
    if (effect.type === 'call_model') await callModel(run, effect, options, signal);
    else if (effect.type === 'run_tool') await tools(() => runTool(run, effect, options, signal));
    else await wait(run, effect, signal);
  } catch (error) {
    await run.answer(effect.id, { type: 'failed', error: errorOf(error, options) }).catch(() => {});
  }
}

async function wait(run, effect, signal) {
  await sleep(effect.ms, signal);
  if (!signal.aborted) await run.answer(effect.id, { type: 'waited' });
}

async function callModel(run, effect, options, signal) {
  const { request, dialect } = effect;
  if (signal.aborted) return;
  const headers = await hostHeaders(effect, options);
  if (signal.aborted) return;
  const idle = watchdog(options.idleTimeoutMs, signal);
  const call = options.fetch ?? globalThis.fetch;
  let response;
  try {
    response = await idle.race(call(request.url, {
      method: request.method, headers: { ...request.headers, ...headers }, body: request.body, signal: idle.signal, redirect: redirectMode(),
    }));
    rejectRedirect(response);
  } catch (error) {
    if (signal.aborted) return;
    await run.answer(effect.id, { type: 'failed', error: fetchError(error, options) });
    return;
  } finally {
    idle.rest();
  }
  await run.answer(effect.id, { type: 'response_started', status: response.status, headers: options.credentials.redactEach(Object.fromEntries(response.headers)) });
  const filter = responseFilter(run, effect, response, options.credentials);
  let received = 0;
  let reader;
  try {
    if (response.body) {
      reader = response.body.getReader();
      for (;;) {
        const { value, done } = await idle.race(reader.read());
        if (done) break;
        received += value?.length ?? 0;
        await feed(run, effect, filter.push(value));
        // Held bytes count too: pass them on, so that the run reports `too_large`.
        if (received > run.maxResponseBytes) await feed(run, effect, filter.end());
        if (signal.aborted) return;
      }
    }
  } catch (error) {
    if (signal.aborted) return;
    if (error instanceof RethreadError) throw error; // not a stream error: the run rejected the bytes
    // A broken stream is a truncated answer, which the run handles; a timeout is reported here.
    if (memberOf(error, 'name') === 'TimeoutError') {
      await run.answer(effect.id, { type: 'failed', error: errorOf(error, options) });
      return;
    }
  } finally {
    idle.end();
    // A custom `fetch` may ignore the signal.
    if (signal.aborted) reader?.cancel().catch(() => {});
  }
  await feed(run, effect, filter.end());
  await run.answer(effect.id, { type: 'response_end' });
}

async function feed(run, effect, bytes) {
  if (bytes?.length !== 0) await run.feed(effect.id, bytes);
}

/** The application's headers with names in lower case, registered as credentials. */
async function hostHeaders({ request, dialect }, { headers, credentials }) {
  let given = headers;
  if (typeof headers === 'function') {
    try {
      given = await headers({ url: request.url, dialect, model: modelOf(request.body) });
    } catch (error) {
      // The error may quote a credential that is not registered yet: repeat only plain words.
      const { code, message } = errorWords(error);
      throw headersError(`\`headers\` of \`drive\` threw: ${plainWords(credentials.redact(message))}`, code);
    }
  }
  try {
    credentials.add(given);
    return Object.fromEntries(headerPairs(given));
  } catch (error) {
    throw headersError('`headers` of `drive` is an object of strings, or a function that returns one', memberOf(error, 'name'));
  }
}

/** Registers static headers before the first model call: a tool of a resumed run may run first and quote one. */
function registerHeaders({ headers, credentials }) {
  try {
    if (typeof headers !== 'function') credentials.add(headers);
  } catch {
    // The model call reports invalid headers.
  }
}

/** An error of `headers`. Only a plain word is kept as its code, since a code may quote a credential. */
function headersError(message, code) {
  return Object.assign(new Error(message), /^[A-Za-z_]{1,40}$/.test(code ?? '') ? { code } : {});
}

/** Removes credentials from errors of the server; answers of the model pass unchanged. */
function responseFilter(run, effect, { status }, credentials) {
  const isRefused = status < 200 || status > 299;
  return new ResponseFilter({
    credentials, isOne: isRefused || !effect.stream, isError: (bytes) => isRefused || (run.isErrorResponse?.(bytes) ?? true),
  });
}

let supported;
/** The mode "error", because a redirect could send the credentials to another host. Without that mode (workerd), "manual" returns the
 *  redirect as the response. */
function redirectMode() {
  try {
    supported ??= new Request('http://localhost/', { redirect: 'error' }).redirect;
  } catch {
    supported = 'manual';
  }
  return supported;
}

const REDIRECT_CODE = 'redirect';
const NO_REDIRECT = 'no redirect is followed, since the request carries credentials; set `provider.url` to the address that it leads to';

function rejectRedirect({ type, status }) {
  if (type !== 'opaqueredirect' && ![301, 302, 303, 307, 308].includes(status)) return;
  throw Object.assign(new Error(`the server answered with a redirect: ${NO_REDIRECT}`), { code: REDIRECT_CODE });
}

/** The messages of browsers for any failed fetch, including redirects. */
const NO_REASON = /^(?:Failed to fetch|NetworkError when attempting to fetch resource\.?|Load failed)$/;

function fetchError(error, options) {
  const reported = errorOf(error, options);
  // Node's message, from the cause.
  if (/\bunexpected redirect\b/.test(reported.message)) return { code: REDIRECT_CODE, message: `the server answered with a redirect: ${NO_REDIRECT}` };
  return NO_REASON.test(reported.message) ? { ...reported, message: `${reported.message} (if the server redirects: ${NO_REDIRECT})` } : reported;
}

async function runTool(run, effect, options, signal) {
  if (signal.aborted) return;
  const tool = run.tools?.[effect.name];
  const idle = watchdog(options.toolTimeoutMs, signal);
  const { value: args, problem } = await validArguments(tool, effect, idle, options);
  if (signal.aborted) return;
  if (problem) {
    await run.answer(effect.id, { type: 'tool_result', content: `Error: ${options.credentials.redact(problem)}`, isError: true });
    return;
  }
  if (typeof tool?.execute !== 'function') return; // the application answers this call itself
  try {
    // The start is stored before the tool runs: from here on it counts as possibly run.
    await run.answer(effect.id, { type: 'started' });
  } catch {
    return; // the start could not be stored, so the tool must not run; the run reports the reason
  }
  let answer;
  try {
    const context = {
      callId: effect.callId, invocationId: effect.invocationId, attempt: effect.attempt, argumentsText: effect.argumentsText, signal: idle.signal,
    };
    const content = await idle.race(Promise.resolve().then(() => tool.execute(args, context)));
    answer = { type: 'tool_result', content };
  } catch (error) {
    if (signal.aborted) return;
    const text = memberOf(error, 'name') === 'TimeoutError' ? `the tool did not return within ${options.toolTimeoutMs} ms` : errorOf(error, options).message;
    answer = { type: 'tool_result', content: `Error: ${text}`, isError: true };
  } finally {
    idle.end();
  }
  try {
    await run.answer(effect.id, answer);
  } catch (error) {
    // A result without a JSON representation (a cycle, a BigInt) is a failure of the tool.
    if (memberOf(error, 'code') !== 'invalid_input') throw error;
    await run.answer(effect.id, { type: 'tool_result', content: `Error: ${errorOf(error, options).message}`, isError: true });
  }
}

/** The validated arguments, or the reason why the tool does not run. Also for tools that the application answers itself. */
async function validArguments(tool, effect, idle, { toolTimeoutMs }) {
  if (!validates(tool)) return { value: effect.arguments };
  try {
    return await idle.race(validateArguments(tool, effect.arguments));
  } catch {
    return { problem: `the arguments were not validated within ${toolTimeoutMs} ms, so the tool was not run` };
  } finally {
    idle.rest();
  }
}

/** The model of a body. Parameters come first, so that only the beginning is searched. */
function modelOf(body) {
  const head = new TextDecoder().decode(body.subarray(0, 2048));
  const found = /"model"\s*:\s*("(?:[^"\\]|\\.)*")/.exec(head);
  return found ? JSON.parse(found[1]) : null;
}

/** Code and message of an error, without the credentials of this drive. */
function errorOf(error, { credentials }) {
  return credentials.redactEach(errorWords(error));
}

function sleep(ms, signal) {
  return /** @type {Promise<void>} */ (new Promise((resolve) => {
    if (signal.aborted || !(ms > 0)) return resolve();
    // A timer with a larger value fires immediately.
    const timer = setTimeout(resolve, Math.min(ms, 2 ** 31 - 1));
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      resolve();
    }, { once: true });
  }));
}

/** Aborts work that takes longer than `ms` without progress. `race` starts the time, `rest` stops it. */
function watchdog(ms, outer) {
  const own = new AbortController();
  const signal = AbortSignal.any([outer, own.signal]);
  let timer;
  const rest = () => clearTimeout(timer);
  return {
    signal,
    rest,
    end: rest,
    race(work) {
      rest();
      return new Promise((resolve, reject) => {
        const fail = () => reject(signal.reason ?? new DOMException('aborted', 'AbortError'));
        if (signal.aborted) {
          Promise.resolve(work).catch(() => {}); // it fails as well, and nothing awaits it
          return fail();
        }
        signal.addEventListener('abort', fail, { once: true });
        if (ms > 0) timer = setTimeout(() => own.abort(new DOMException(`nothing was received for ${ms} ms`, 'TimeoutError')), ms);
        Promise.resolve(work).then(resolve, reject).finally(() => {
          rest();
          signal.removeEventListener('abort', fail);
        });
      });
    },
  };
}

/** A FIFO queue. `Array.prototype.shift` moves all remaining elements. */
function queue() {
  let items = [];
  let next = 0;
  return {
    push: (item) => items.push(item),
    take() {
      if (next === items.length) return undefined;
      const item = items[next];
      items[next] = undefined;
      next += 1;
      if (next * 2 > items.length) {
        items = items.slice(next);
        next = 0;
      }
      return item;
    },
  };
}

/** Returns a function that runs at most `most` works at once. */
function limiter(most) {
  let free = most;
  const waiting = queue();
  return async (work) => {
    // A free place is handed to the first that waits: otherwise a newcomer could take it as well.
    if (free > 0) free -= 1;
    else await new Promise((resolve) => waiting.push(resolve));
    try {
      return await work();
    } finally {
      const next = waiting.take();
      if (next) next();
      else free += 1;
    }
  };
}
