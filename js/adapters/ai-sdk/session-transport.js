// `sessionTransport` and `chatHandler`: a chat whose loop runs here, in the process that has the session.

import { RethreadError } from '../../error.js';
import { AnswerHold, followBranch, heldAnswer, isUnderWay, stopElsewhere } from './answer-hold.js';
import { BySession } from './by-session.js';
import { durableTools, leaveCalls, settleCalls } from './durable-tools.js';
import { followedAnswer } from './followed-answer.js';
import { newAnswer, newId } from './ids.js';
import { LiveAnswer, errorText } from './live-answer.js';
import { isObject } from '../plain.js';
import { storedChat } from './stored-chat.js';
import { continuedMessage, PassingAnswer, withClosedCalls } from './transport.js';
import { liveAnswers } from './under-way.js';
import { checkedMessages } from './write.js';
import { checkSession } from './session-argument.js';

/** Answers that have ended and are not stored yet. @type {BySession<Map<any, any>>} */
const unstored = new BySession();

/** The newest request of a chat: they take their turn. @type {BySession<Promise<void>>} */
const turns = new BySession();

/** The newest request of a chat that is not answered yet. @type {BySession<AbortController>} */
const asked = new BySession();

/** Runs the task of a request after those of earlier ones, which end: it has a signal that says so.
 *  @template T @param {any} session @param {(signal: AbortSignal) => Promise<T>} task @returns {Promise<T>} */
function inTurn(session, task) {
  asked.get(session)?.abort();
  const own = new AbortController();
  asked.set(session, '', own);
  const done = (turns.get(session) ?? Promise.resolve()).then(() => task(own.signal));
  const turn = done.then(
    () => {},
    () => {},
  );
  turns.set(session, '', turn);
  void turn.then(() => {
    if (turns.get(session) === turn) turns.delete(session);
    if (asked.get(session) === own) asked.delete(session);
  });
  return done;
}

/** Ends the answer that is under way. @returns {Promise<boolean>} */
async function endAnswer(session) {
  const live = liveAnswers.get(session);
  await live?.stop();
  return live !== undefined;
}

/** Ends the answer that is under way, or asked for, in this process. @returns {Promise<boolean>} */
async function stopHere(session) {
  const request = asked.get(session);
  request?.abort();
  return (await endAnswer(session)) || request !== undefined;
}

/** Ends the answer that is under way, or asked for. @returns {Promise<boolean | 'asked'>} */
const stopAnswer = async (session) => (await stopHere(session)) || stopElsewhere(session);

/** A stream of the answer that is under way, in this process or in another one. @returns {Promise<any>} */
async function resumedAnswer(session) {
  const live = liveAnswers.get(session);
  if (live) return live.stream();
  await session.refresh();
  const hold = heldAnswer(session);
  return hold && isUnderWay(hold) ? followedAnswer(session, hold) : null;
}

/** Answers of earlier requests that could not be stored. */
async function settleAnswers(session) {
  const answers = unstored.get(session) ?? new Map();
  for (const answer of [...answers.keys()]) await answer.settle();
  if (!answers.size) unstored.delete(session);
}

function answersOf(session) {
  const answers = unstored.get(session) ?? new Map();
  unstored.set(session, '', answers);
  return answers;
}

/** The stream of what the application returns. */
function streamOf(answer) {
  const stream = typeof answer?.toUIMessageStream === 'function' ? answer.toUIMessageStream() : answer;
  if (typeof stream?.getReader === 'function') return stream;
  throw new RethreadError(
    'config_invalid',
    '`answer` returns a result of `streamText`, or a stream of chunks of UI messages',
  );
}

/** Stores what a page sends. Returns its messages as they are stored, and the one that goes on. */
async function storedPage(session, tools, { page, base, hold, signal }) {
  const chat = storedChat(session);
  await leaveCalls(session, tools, page.at(-1));
  await chat.storePage(page);
  await hold.begin();
  if (base && base === page.at(-1)) await settleCalls(session, tools, signal);
  const messages = withClosedCalls(await chat.pageMessages(page));
  return { messages, continued: base && messages.find(({ id }) => id === base.id) };
}

/** Ends other answers, stores what a page sends, and begins the answer. */
async function beginAnswer(session, options, { page, trigger, messageId, signal, ...request }) {
  await endAnswer(session);
  const mayOverlap = (await stopElsewhere(session)) === 'asked';
  await followBranch(session);
  await settleAnswers(session);
  const base = continuedMessage({ trigger, messageId, messages: page });
  const id = base?.id ?? newId();
  const hold = new AnswerHold(session, id);
  try {
    return await beginHeld(hold, session, options, {
      ...request,
      mayOverlap,
      page,
      base,
      id,
      signal: AbortSignal.any([signal, hold.signal]),
    });
  } catch (error) {
    await hold.release();
    throw error;
  }
}

/** @param {AnswerHold} hold */
async function beginHeld(hold, session, options, { page, base, id, signal, ...request }) {
  const tools = durableTools(options.tools ?? {}, session, options.durable);
  const { messages, continued } = await storedPage(session, tools, { page, base, hold, signal });
  hold.update(id);
  const durable = new Set(Object.keys(tools).filter((name) => typeof tools[name]?.execute === 'function'));
  const owner = { chat: storedChat(session), unstored: answersOf(session), durable };
  const passing = new PassingAnswer(owner, continued ?? newAnswer(id), { isReplay: false });
  const live = new LiveAnswer(passing, continued, hold);
  liveAnswers.set(session, '', live);
  if (signal.aborted) void live.stop();
  else signal.addEventListener('abort', () => void live.stop(), { once: true });
  const make = () => options.answer({ ...request, session, tools, messages, abortSignal: live.signal });
  const made = (async () => (signal.aborted ? new ReadableStream() : streamOf(await make())))();
  const done = live.start(made).then(() => {
    if (liveAnswers.get(session) !== live) return;
    liveAnswers.delete(session);
    if (!owner.unstored.size) unstored.delete(session);
  });
  return { live, shown: base, made, done };
}

/** Returns the stream of the answer when the application has begun it, or it was stopped before.
 *  @param {any} session @param {any} options @param {any} request */
async function answered(session, options, { messages, ...request }) {
  const page = withClosedCalls(checkedMessages(messages));
  const { live, shown, made, done } = await inTurn(session, (signal) =>
    beginAnswer(session, options, { ...request, page, signal }),
  );
  try {
    await Promise.race([made, done]);
  } catch (error) {
    await done;
    throw error;
  }
  return live.stream({ shown });
}

function checkedOptions(options, what) {
  const { answer, tools, onInterrupted, ...unknown } = isObject(options) ? options : {};
  const [name] = Object.keys(unknown);
  if (name !== undefined) {
    const known = [...(what === 'chatHandler' ? ['session'] : []), 'answer', 'tools', 'onInterrupted'];
    throw new RethreadError(
      'config_invalid',
      `\`${name}\` is not one of the options of \`${what}\`: ${known.join(', ')}`,
    );
  }
  if (typeof answer !== 'function')
    throw new RethreadError('config_invalid', `\`${what}\` needs \`answer\`, a function`);
  if (tools !== undefined && !isObject(tools))
    throw new RethreadError('config_invalid', '`tools` are an object, by name');
  return { answer, tools, durable: onInterrupted === undefined ? {} : { onInterrupted } };
}

/** @param {any} session @param {any} given @returns {any} */
export function sessionTransport(session, given) {
  checkSession(session, 'sessionTransport');
  const options = checkedOptions(given, 'sessionTransport');
  return {
    resumeStreamIsReplay: true,
    async sendMessages({ abortSignal, messages, trigger, messageId, body }) {
      return untilAborted(await answered(session, options, { messages, trigger, messageId, body }), abortSignal);
    },
    async reconnectToStream(/** @type {any} */ { abortSignal } = {}) {
      const stream = await resumedAnswer(session);
      return stream && untilAborted(stream, abortSignal);
    },
    stop: () => stopAnswer(session),
  };
}

/** A stream that ends for one page: the answer goes on. */
function untilAborted(stream, signal) {
  if (!signal) return stream;
  const reader = stream.getReader();
  return new ReadableStream({
    start(controller) {
      const abort = () => {
        controller.error(signal.reason);
        void reader.cancel().catch(() => {});
      };
      if (signal.aborted) abort();
      else signal.addEventListener('abort', abort, { once: true });
    },
    async pull(controller) {
      const { done, value } = await reader.read();
      if (signal.aborted) return;
      if (done) controller.close();
      else controller.enqueue(value);
    },
    cancel: (reason) => reader.cancel(reason),
  });
}

const HEADERS = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-cache',
  'x-vercel-ai-ui-message-stream': 'v1',
  'x-accel-buffering': 'no',
};

/** The same stream, which ends with a chunk in place of an error. */
function withErrorChunk(stream) {
  const reader = stream.getReader();
  return new ReadableStream({
    async pull(controller) {
      try {
        const { done, value } = await reader.read();
        if (done) controller.close();
        else controller.enqueue(value);
      } catch (error) {
        const code = error instanceof RethreadError ? `${error.code}: ` : '';
        controller.enqueue({ type: 'error', errorText: `${code}${errorText(error)}` });
        controller.close();
      }
    },
    cancel: (reason) => reader.cancel(reason),
  });
}

function responseOf(stream) {
  const encoder = new TextEncoder();
  const events = new TransformStream({
    transform: (chunk, controller) => controller.enqueue(encoder.encode(`data: ${JSON.stringify(chunk)}\n\n`)),
    flush: (controller) => controller.enqueue(encoder.encode('data: [DONE]\n\n')),
  });
  return new Response(withErrorChunk(stream).pipeThrough(events), { headers: HEADERS });
}

const textResponse = (status, text) => new Response(text, { status, headers: { 'content-type': 'text/plain' } });

const UNCONFIRMED = 'Another process makes the answer. It was asked to stop, and has not confirmed that it did.';

function idOf(text) {
  try {
    return decodeURIComponent(text);
  } catch (cause) {
    throw new RethreadError('invalid_input', 'the address names no chat', {}, { cause });
  }
}

/** What the address of a request asks for: `…/[id]/stream`, `…/[id]/stop`, or an answer. */
function targetOf({ method, url }) {
  const [, id, what] = /\/([^/]+)\/(stream|stop)\/?$/.exec(new URL(url).pathname) ?? [];
  if (method === 'GET' && what === 'stream') return { what, id: idOf(id) };
  if (method !== 'POST') return null;
  return what === 'stop' ? { what, id: idOf(id) } : { what: 'answer' };
}

/** The body of a request for an answer. Rejects with `invalid_input`. */
async function bodyOf(request) {
  const body = await request.json().catch(() => undefined);
  if (isObject(body) && typeof body.id === 'string' && body.id !== '' && Array.isArray(body.messages)) return body;
  throw new RethreadError(
    'invalid_input',
    'the body of the request has no `id` and `messages`, as `useChat` sends them',
  );
}

async function respond(options, open, request) {
  const target = targetOf(request);
  if (!target) return textResponse(405, 'Method not allowed');
  const body = target.what === 'answer' ? await bodyOf(request) : undefined;
  const session = await open(body?.id ?? target.id, request);
  if (session instanceof Response) return session;
  checkSession(session, 'chatHandler');
  if (target.what === 'stop') {
    const isUnconfirmed = (await stopAnswer(session)) === 'asked';
    return isUnconfirmed ? textResponse(202, UNCONFIRMED) : new Response(null, { status: 204 });
  }
  if (target.what === 'stream') {
    const stream = await resumedAnswer(session);
    return stream ? responseOf(stream) : new Response(null, { status: 204 });
  }
  const { id, messages, trigger, messageId, ...more } = body;
  return responseOf(await answered(session, options, { messages, trigger, messageId, request, body: more }));
}

/** Rejects for what is no `Request`: a server that calls it so expects no `Response` either. */
function checkRequest(request) {
  const { url, method, json } = Object(request);
  if (typeof url === 'string' && typeof method === 'string' && typeof json === 'function') return;
  throw new RethreadError(
    'config_invalid',
    'what `chatHandler` returns takes a `Request` of the web platform, and resolves to a `Response`: for node:http and ' +
      'Express see "In node:http and Express" in docs/ai-sdk.md; of the context of a framework pass the request, such as `c.req.raw` of Hono',
  );
}

/** @param {any} given @returns {(request: Request) => Promise<Response>} */
export function chatHandler(given) {
  const { session: open, ...rest } = isObject(given) ? given : {};
  if (typeof open !== 'function')
    throw new RethreadError('config_invalid', '`chatHandler` needs `session`, a function that opens a session by id');
  const options = checkedOptions(rest, 'chatHandler');
  return async (request) => {
    checkRequest(request);
    try {
      return await respond(options, open, request);
    } catch (error) {
      if (!(error instanceof RethreadError)) throw error;
      return textResponse(error.code === 'invalid_input' ? 400 : 500, `${error.code}: ${error.message}`);
    }
  };
}
