// Executes a model call: sends the request and feeds the response to the run.

import { RethreadError } from '../error.js';
import { memberOf } from '../untrusted-value.js';
import { ResponseFilter } from '../response-filter.js';
import { IdleTimeout, sleep } from './async.js';
import { mergedHeaders, requestHeaders } from './headers.js';
import { redactedError } from './redacted-error.js';
import { wasSent } from './request-evidence.js';
import { fetchError, redirectMode, rejectRedirect } from './redirect.js';

/** Executes a `call_model` effect. Returns without an answer if `signal` aborts: the run has closed the effect. */
export async function callModel(run, effect, options, signal) {
  if (signal.aborted) return;
  const timeout = new IdleTimeout(options.idleTimeoutMs, signal);
  let headers;
  try {
    await waitUntil(effect.notBefore, options, signal);
    if (signal.aborted) return;
    headers = await requestHeaders(effect, options, timeout);
  } catch (error) {
    if (!signal.aborted)
      await run.answer(effect.id, { type: 'failed', error: redactedError(error, options), sent: false });
    return;
  }
  if (signal.aborted) return;
  const fetch = options.fetch ?? globalThis.fetch;
  let response;
  try {
    response = await timeout.limit(send(fetch, effect.request, headers, timeout.signal));
    rejectRedirect(response);
  } catch (error) {
    if (!signal.aborted)
      await run.answer(effect.id, { type: 'failed', error: fetchError(error, options), sent: wasSent(error, fetch) });
    return;
  }
  const responseHeaders = options.credentials.redactEach(Object.fromEntries(response.headers));
  await run.answer(effect.id, { type: 'response_started', status: response.status, headers: responseHeaders });
  const error = await feedBody(run, effect, response, options, timeout);
  if (signal.aborted) return;
  await run.answer(effect.id, error ? { type: 'failed', error, sent: true } : { type: 'response_end' });
}

/** Waits until `time`, unless this `drive` has just waited for it: a run's clock may differ from this one. */
async function waitUntil(time, options, signal) {
  if (time !== undefined && !options.hasWaited) await sleep(time - Date.now(), signal);
  options.hasWaited = false;
}

function send(fetch, { url, method, headers, body }, hostHeaders, signal) {
  return fetch(url, { method, headers: mergedHeaders(headers, hostHeaders), body, signal, redirect: redirectMode() });
}

/** Feeds the body of the response to the run, without credentials. Returns the error of a timeout. */
async function feedBody(run, effect, response, options, timeout) {
  const filter = responseFilter(run, effect, response, options.credentials);
  let reader;
  try {
    reader = response.body?.getReader();
    await feedChunks(run, effect, reader, filter, timeout);
  } catch (error) {
    if (timeout.outerSignal.aborted) return undefined;
    if (error instanceof RethreadError) throw error; // not a stream error: the run rejected the bytes
    // A broken stream is a truncated answer, which the run handles; a timeout is reported here.
    if (memberOf(error, 'name') === 'TimeoutError') return redactedError(error, options);
  } finally {
    // A custom `fetch` may ignore the signal.
    if (timeout.outerSignal.aborted) reader?.cancel().catch(() => {});
  }
  if (!timeout.outerSignal.aborted) await feed(run, effect, filter.end());
  return undefined;
}

async function feedChunks(run, effect, reader, filter, timeout) {
  let received = 0;
  while (reader && !timeout.outerSignal.aborted) {
    const { value, done } = await timeout.limit(reader.read());
    if (done) return;
    received += value?.length ?? 0;
    await feed(run, effect, filter.push(value));
    // Held bytes count too: pass them on, so that the run reports `too_large`.
    if (received > run.maxResponseBytes) await feed(run, effect, filter.end());
  }
}

async function feed(run, effect, bytes) {
  if (bytes?.length !== 0) await run.feed(effect.id, bytes);
}

/** Removes credentials from errors of the server; answers of the model pass unchanged. */
function responseFilter(run, effect, { status }, credentials) {
  const isErrorStatus = status < 200 || status > 299;
  return new ResponseFilter({
    credentials,
    isSingleValue: isErrorStatus || !effect.stream,
    isError: (bytes) => isErrorStatus || (run.isErrorResponse?.(bytes) ?? true),
  });
}
