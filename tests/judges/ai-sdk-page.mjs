// A page with `useChat` of the `ai` package, without React, and the server that answers it.

/** The chat of a page: what `useChat` is made of. */
export function pageOf(ai, { id = 'chat', messages = [], ...options }) {
  const state = {
    status: 'ready',
    error: undefined,
    messages,
    pushMessage: (message) => {
      state.messages = [...state.messages, message];
    },
    popMessage: () => {
      state.messages = state.messages.slice(0, -1);
    },
    replaceMessage: (at, message) => {
      state.messages = state.messages.with(at, structuredClone(message));
    },
    snapshot: (value) => structuredClone(value),
  };
  class Page extends ai.AbstractChat {}
  return new Page({ id, state, ...options });
}

const encoder = new TextEncoder();

/** A server whose answers are lists of chunks. Each POST takes the next one of `answers`; a function gets the request
 *  and returns a `Response`. */
export class Server {
  /** The bodies of the POST requests. */
  requests = [];
  answers = [];
  /** The chunks for who reconnects; none if nothing is under way. */
  resumed = undefined;

  constructor(ai) {
    this.transport = new ai.DefaultChatTransport({
      api: 'https://server.test/chat',
      fetch: (...call) => this.#fetch(...call),
    });
  }

  async #fetch(_url, { method, body, signal } = {}) {
    if (method !== 'POST') return this.resumed ? answerOf(this.resumed, signal) : new Response(null, { status: 204 });
    const request = JSON.parse(body);
    this.requests.push(request);
    const answer = this.answers.shift();
    return typeof answer === 'function'
      ? answer(request)
      : answerOf(answer ?? [{ type: 'error', errorText: 'no answer' }], signal);
  }
}

/** Stands for a place in an answer where it stays open until the page aborts, or where its connection breaks. */
export const STALLS = Symbol('stalls');
export const BREAKS = Symbol('breaks');

function answerOf(chunks, signal) {
  const rest = [...chunks];
  const body = new ReadableStream({
    async pull(controller) {
      const chunk = rest.shift();
      if (chunk === undefined) {
        controller.enqueue(encoder.encode('data: [DONE]\n\n'));
        controller.close();
      } else if (chunk === BREAKS) controller.error(new TypeError('network error'));
      else if (chunk === STALLS)
        await new Promise((resolve) => {
          signal?.addEventListener('abort', () => {
            controller.error(signal.reason ?? new DOMException('aborted', 'AbortError'));
            resolve();
          });
        });
      else controller.enqueue(encoder.encode(`data: ${JSON.stringify(chunk)}\n\n`));
    },
  });
  return new Response(body, { headers: { 'content-type': 'text/event-stream' } });
}

export const text = (words, id = 't') => [
  { type: 'text-start', id },
  ...words.map((delta) => ({ type: 'text-delta', id, delta })),
  { type: 'text-end', id },
];
export const step = (...chunks) => [{ type: 'start-step' }, ...chunks.flat(), { type: 'finish-step' }];
export const whole = (messageId, ...steps) => [{ type: 'start', messageId }, ...steps.flat(), { type: 'finish' }];
export const call = (toolCallId, more = {}) => [
  { type: 'tool-input-start', toolCallId, toolName: 'look' },
  { type: 'tool-input-delta', toolCallId, inputTextDelta: '{"of":' },
  { type: 'tool-input-delta', toolCallId, inputTextDelta: '1}' },
  { type: 'tool-input-available', toolCallId, toolName: 'look', input: { of: 1 }, ...more },
];
