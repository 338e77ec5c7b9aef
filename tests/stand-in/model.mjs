// One model request: judge it, take a step from the script or the brain, and answer as the step says.

import { setTimeout as sleep } from 'node:timers/promises';
import { answerFor } from './answer.mjs';
import { follow } from './background-state.mjs';
import { bind, sealed } from './binding.mjs';
import { think } from './brain.mjs';
import { DIALECTS } from './dialects.mjs';
import { refusalOf } from './rules-openai-responses.mjs';
import { sign } from './signature.mjs';
import { viewOf } from './view.mjs';

const SECRET = new Set(['authorization', 'x-api-key', 'api-key', 'x-goog-api-key', 'cookie', 'proxy-authorization']);
const EVENT_STREAM = 'text/event-stream; charset=utf-8';
const NONSENSE = {
  html: [
    'text/html; charset=utf-8',
    '<!doctype html><html><body><h1>It works!</h1><p>200, but no model here.</p></body></html>',
  ],
  sse: [
    'text/event-stream; charset=utf-8',
    'event: ???\ndata: {"not": json\n\ndata: 42\n\ngibberish without a colon\n\n',
  ],
  json: ['application/json', '{"choices":[{"message":'],
};

function headersOf(req) {
  const out = {};
  for (const [k, v] of Object.entries(req.headers)) out[k] = SECRET.has(k) ? 'present' : v;
  for (const k of ['authorization', 'x-api-key', 'x-goog-api-key']) out[k] ??= 'absent';
  return out;
}

async function pause(ms, signal) {
  if (ms > 0 && !signal.aborted) await sleep(ms, undefined, { signal }).catch(() => {});
}

/** Resolves when the bytes are out, or when nobody is there to take them. */
const write = (res, bytes) =>
  new Promise((resolve) => {
    const done = () => {
      res.off('close', done);
      resolve();
    };
    res.once('close', done);
    res.write(bytes, done);
  });

function sendJson(res, status, body, headers = {}) {
  if (res.destroyed) return;
  const raw = typeof body === 'string';
  res.writeHead(status, { 'content-type': raw ? 'text/plain; charset=utf-8' : 'application/json', ...headers });
  res.end(raw ? body : JSON.stringify(body));
}

async function writeFrame(res, bytes, size) {
  if (!size) return write(res, bytes);
  // Network chunks need not end where frames or characters end.
  for (let at = 0; at < bytes.length; at += size) await write(res, bytes.subarray(at, at + size));
}

async function sendStream({ res, lane, record, step, answer, wire, target, delayMs, signal, whenDone }) {
  res.writeHead(200, {
    'content-type': wire.contentType?.(target) ?? EVENT_STREAM,
    'cache-control': 'no-cache, no-transform',
    'x-accel-buffering': 'no',
  });
  res.flushHeaders();
  const chunkBytes = step.chunkBytes ?? lane.options.chunkBytes;
  const limit = step.cut ?? step.cutClean ?? Infinity;
  let bytesLeft = step.cutBytes ?? Infinity;
  let framesSent = 0;
  let pieces = 0;
  for (const { bytes, piece, done } of wire.frames(answer, {
    terminal: step.inBandError === undefined,
    sse: target.sse,
  })) {
    if (signal.aborted) return 'client-closed';
    if (framesSent >= limit || bytesLeft <= 0) break;
    if (step.gate && piece && pieces === (step.atPiece ?? 0))
      await lane.gate(step.gate, { n: record.n, piece: pieces }, signal);
    if (piece && pieces > 0) await pause(delayMs, signal);
    if (signal.aborted) return 'client-closed';
    const part = bytes.length > bytesLeft ? bytes.subarray(0, bytesLeft) : bytes;
    await writeFrame(res, part, chunkBytes);
    bytesLeft -= part.length;
    framesSent += 1;
    record.framesSent = framesSent;
    if (piece) pieces += 1;
    if (done) whenDone?.(done);
  }
  if (step.gate && pieces <= (step.atPiece ?? 0)) await lane.gate(step.gate, { n: record.n, piece: pieces }, signal);
  if (signal.aborted) return 'client-closed';
  if (step.inBandError !== undefined) {
    await write(res, wire.inBandError(step.inBandError === true ? {} : step.inBandError, target).bytes);
  } else if (step.cut !== undefined || step.cutBytes !== undefined) {
    res.socket?.destroy();
    return 'cut';
  }
  res.end();
  return step.cutClean === undefined ? 'complete' : 'cut-clean';
}

async function perform({ req, res, lane, record, step, target, transformations, body, bodyText, query, signal }) {
  const { dialect } = target;
  const { wire } = DIALECTS[dialect];
  if (step.lost === 'request') {
    res.socket?.destroy();
    return 'cut';
  }
  const answer = answerFor({ dialect, model: target.model, step, body, bodyText, seed: `${lane.name}:${record.n}` });
  answer.transformations = transformations;
  /** `done`: the items of a stream that went out, if that broke off. */
  const keep = (isWhole, done = []) =>
    lane.stateOf(target)?.keep(body, {
      id: answer.id,
      items: wire.itemsOf(answer),
      done,
      isWhole,
      step,
      finish: answer.finish,
      headers: req.headers,
    });
  // Nothing of the answer goes out, and the service has it.
  if (step.isKept && (step.hang || step.status !== undefined || step.garbage)) keep(false);
  await pause(step.holdMs ?? 0, signal);
  if (signal.aborted) return 'client-closed';
  if (step.hang) {
    await lane.wait({ kind: 'hang', n: record.n }, signal);
    if (!signal.aborted) req.socket.destroy();
    return signal.aborted ? 'client-closed' : 'cut';
  }
  if (step.status !== undefined) {
    record.status = step.status;
    record.error = step.body ?? wire.statusBody(step.status, step.message);
    sendJson(res, step.status, record.error, step.headers);
    return 'complete';
  }
  if (step.garbage) {
    const [type, text] = NONSENSE[step.garbage] ?? NONSENSE.html;
    record.status = 200;
    res.writeHead(200, { 'content-type': type, ...step.headers });
    res.end(text);
    return 'complete';
  }
  if (step.lost === 'answer') {
    keep(true);
    res.socket?.destroy();
    return 'cut';
  }
  record.status = 200;
  const asked = Number(query.get('delayMs') ?? NaN);
  const delayMs = step.delayMs ?? (Number.isFinite(asked) ? asked : lane.options.delayMs);
  if (dialect === 'openai-responses' && body.background === true) {
    const isStreamed = record.stream;
    const frames = wire.frames(answer);
    const work = lane.background.begin({ answer, frames, isStreamed, delayMs, whenDone: () => keep(true) });
    if (isStreamed) return follow({ res, work, after: -1, cut: step.cut, signal });
    sendJson(res, 200, work.response, step.headers);
    return 'complete';
  }
  if (!record.stream || step.json) {
    if (step.inBandError === undefined) keep(true);
    if (step.inBandError !== undefined) {
      record.status = 500;
      record.error = wire.statusBody(500, step.inBandError?.message);
      sendJson(res, 500, record.error);
    } else if (step.cut !== undefined || step.cutBytes !== undefined) {
      const text = JSON.stringify(wire.whole(answer));
      res.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) });
      await write(res, Buffer.from(text).subarray(0, step.cutBytes ?? text.length >> 1));
      res.socket?.destroy();
      return 'cut';
    } else {
      if (step.gate) await lane.gate(step.gate, { n: record.n, piece: 0 }, signal);
      if (signal.aborted) return 'client-closed';
      sendJson(res, 200, wire.whole(answer), step.headers);
    }
    return 'complete';
  }
  const output = [];
  const ended = await sendStream({
    res,
    lane,
    record,
    step,
    answer,
    wire,
    target,
    delayMs,
    signal,
    whenDone: (item) => output.push(item),
  });
  // What was whole when the stream broke off.
  keep(ended === 'complete' && step.inBandError === undefined, output);
  return ended;
}

/** `target`: what the address says, as `addressOf` has it. */
export async function answerModel({ req, res, lane, target, path, query, bodyText, signal }) {
  const { dialect } = target;
  const { check, wire, requestId } = DIALECTS[dialect];
  const record = {
    n: lane.requests.length + 1,
    dialect,
    path,
    status: null,
    error: null,
    stream: false,
    headers: headersOf(req),
    body: null,
    bodyText,
    at: Date.now(),
    step: null,
    ended: null,
    framesSent: 0,
  };
  lane.requests.push(record);
  res.setHeader(requestId, `req_${lane.name}_${record.n}`);
  let refused;
  try {
    record.body = JSON.parse(bodyText);
  } catch {
    refused = { status: 400, error: wire.notJson() };
  }
  const state = lane.stateOf(target);
  // Threads judge a request themselves, together with what they have before it.
  if (state !== lane.threads)
    refused ??= check(record.body, { ...target, held: lane.service.held, later: lane.service.later });
  if (state === lane.service) refused ??= refusalOf(() => lane.background.check(record.body));
  refused ??= state?.refusal(record.body, req.headers) ?? null;
  const bound =
    !refused && lane.options.binding
      ? bind({ dialect, body: state?.wholeBody(record.body) ?? record.body, model: target.model, headers: req.headers })
      : {};
  refused ??= bound.refused;
  record.stream = target.stream ?? Boolean(record.body?.stream);
  if (refused) {
    Object.assign(record, refused, { ended: 'refused' });
    return sendJson(res, refused.status, wire.refusal?.(refused.error, target) ?? refused.error);
  }
  lane.accepted += 1;
  // Taken before any wait: the order of arrival is the order of the script.
  const scripted = lane.nextStep();
  record.step = scripted ? 'script' : 'brain';
  const { body } = record;
  const unlock = state?.lock(body);
  try {
    await lane.holdPoint({ kind: 'model', phase: 'model', ordinal: lane.accepted, n: record.n }, signal);
    const thought = () => think(viewOf(dialect, state?.wholeBody(body) ?? body));
    const planned = scripted && !scripted.brain ? scripted : { ...thought(), ...scripted };
    const step = sealed(planned, bound, sign);
    const transformations = bound.listed;
    record.dropped = bound.dropped;
    record.ended = signal.aborted
      ? 'client-closed'
      : await perform({ req, res, lane, record, step, target, transformations, body, bodyText, query, signal });
  } finally {
    unlock?.(scripted);
  }
  if (record.ended === 'complete' && signal.aborted) record.ended = 'client-closed';
}
