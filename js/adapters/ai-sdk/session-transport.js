// `sessionTransport` and `chatHandler`: a chat whose loop runs here, in the process that has the session.

import { RethreadError } from '../../error.js';
import { BySession } from './by-session.js';
import { checkSession, durableTools, settleCalls } from './durable-tools.js';
import { newAnswer, newId } from './ids.js';
import { LiveAnswer } from './live-answer.js';
import { isObject } from './plain.js';
import { storedChat } from './stored-chat.js';
import { continuedMessage, PassingAnswer, withClosedCalls } from './transport.js';
import { liveAnswers } from './under-way.js';
import { checkedMessages } from './write.js';

/** Answers that have ended and are not stored yet. @type {BySession<Map<any, any>>} */
const unstored = new BySession();

/** The newest request of a chat: they take their turn. @type {BySession<Promise<void>>} */
const turns = new BySession();

/** @template T @param {any} session @param {() => Promise<T>} task @returns {Promise<T>} */
function inTurn(session, task) {
  const done = (turns.get(session) ?? Promise.resolve()).then(task);
  const turn = done.then(
    () => {},
    () => {},
  );
  turns.set(session, '', turn);
  void turn.then(() => {
    if (turns.get(session) === turn) turns.delete(session);
  });
  return done;
}

/** Ends the answer that is under way. @returns {Promise<boolean>} */
async function stopAnswer(session) {
  const live = liveAnswers.get(session);
  await live?.stop();
  return live !== undefined;
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

/** The messages of a page as they are stored: the page may have fewer parts. */
async function storedMessages(chat, messages) {
  const stored = [];
  for (const message of messages) stored.push((await chat.find(message.id)) ?? message);
  return withClosedCalls(stored);
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

/** Stores what a page sends, and begins the answer. */
async function beginAnswer(session, options, { messages, trigger, messageId, ...request }) {
  const page = withClosedCalls(checkedMessages(messages));
  await stopAnswer(session);
  await settleAnswers(session);
  const chat = storedChat(session);
  await chat.storePage(page);
  const tools = durableTools(options.tools ?? {}, session, options.durable);
  const base = continuedMessage({ trigger, messageId, messages: page });
  if (base && base === page.at(-1)) await settleCalls(session, tools);
  const stored = await storedMessages(chat, page);
  const continued = base && stored.find(({ id }) => id === base.id);
  const owner = { chat, unstored: answersOf(session) };
  const passing = new PassingAnswer(owner, continued ?? newAnswer(newId()), { isReplay: false });
  const live = new LiveAnswer(passing, continued);
  liveAnswers.set(session, '', live);
  const end = () => {
    if (liveAnswers.get(session) === live) liveAnswers.delete(session);
  };
  try {
    const made = await options.answer({ ...request, session, tools, messages: stored, abortSignal: live.signal });
    void live.start(streamOf(made)).then(end);
  } catch (error) {
    end();
    throw error;
  }
  return live;
}

function checkedOptions(options, what) {
  const { answer, tools, onInterrupted, ...unknown } = isObject(options) ? options : {};
  const [name] = Object.keys(unknown);
  if (name !== undefined) throw new RethreadError('config_invalid', `\`${what}\` has no option ${name}`);
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
    async sendMessages({ abortSignal, chatId, ...asked }) {
      const { messages, trigger, messageId, body } = asked;
      const live = await inTurn(session, () => beginAnswer(session, options, { messages, trigger, messageId, body }));
      return untilAborted(live.stream({ isReplay: false }), abortSignal);
    },
    async reconnectToStream(/** @type {any} */ { abortSignal } = {}) {
      const live = liveAnswers.get(session);
      return live ? untilAborted(live.stream({ isReplay: true }), abortSignal) : null;
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

function responseOf(stream) {
  const encoder = new TextEncoder();
  const events = new TransformStream({
    transform: (chunk, controller) => controller.enqueue(encoder.encode(`data: ${JSON.stringify(chunk)}\n\n`)),
    flush: (controller) => controller.enqueue(encoder.encode('data: [DONE]\n\n')),
  });
  return new Response(stream.pipeThrough(events), { headers: HEADERS });
}

const textResponse = (status, text) => new Response(text, { status, headers: { 'content-type': 'text/plain' } });

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
    await stopAnswer(session);
    return new Response(null, { status: 204 });
  }
  if (target.what === 'stream') {
    const live = liveAnswers.get(session);
    return live ? responseOf(live.stream({ isReplay: true })) : new Response(null, { status: 204 });
  }
  const { id, messages, trigger, messageId, ...more } = body;
  const asked = { messages, trigger, messageId, request, body: more };
  const live = await inTurn(session, () => beginAnswer(session, options, asked));
  return responseOf(live.stream({ isReplay: false }));
}

/** @param {any} given @returns {(request: Request) => Promise<Response>} */
export function chatHandler(given) {
  const { session: open, ...rest } = isObject(given) ? given : {};
  if (typeof open !== 'function')
    throw new RethreadError('config_invalid', '`chatHandler` needs `session`, a function that opens a session by id');
  const options = checkedOptions(rest, 'chatHandler');
  return async (request) => {
    try {
      return await respond(options, open, request);
    } catch (error) {
      if (!(error instanceof RethreadError)) throw error;
      return textResponse(error.code === 'invalid_input' ? 400 : 500, `${error.code}: ${error.message}`);
    }
  };
}
