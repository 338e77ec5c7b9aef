// What Anthropic keeps for its clients: message threads, each as a chain of responses. Shares no code with the engine.
//
// Sources: the documentation of message threads (beta of 2026-11) and @anthropic-ai/sdk 1.12.0, which has the codes,
// their meaning and `unsupported`. A response is kept whole or not at all, and continues once.

import { check, errorBody } from './rules-anthropic.mjs';

const BETA = 'message-threads-2026-08-12';
/** A thread expires after so many minutes without a request. */
const THREAD_MINUTES = 5;
/** The service has these from the request that created the thread. */
const CREATE_ONLY = ['system', 'tools'];
/** These have one value in all requests of a thread, as has the set of beta headers. */
const FIXED = ['model', 'thinking', 'tool_choice', 'cache_control', 'output_config'];
const UNSUPPORTED = ['context_management', 'fallbacks'];
/** An answer that ends so is continued without a message. */
const UNFINISHED = new Set(['pause_turn', 'compaction']);

const isObject = (v) => typeof v === 'object' && v !== null && !Array.isArray(v);

class Refusal extends Error {
  constructor(message, { status = 400, type = 'invalid_request_error', details } = {}) {
    super(message);
    Object.assign(this, { status, type, details });
  }
}
const refuse = (message, more) => {
  throw new Refusal(message, more);
};
/** A refusal with a code of its own. `more`: its other details. */
const refuseThread = (code, message, more = {}) =>
  refuse(message, {
    ...(code === 'thread_not_found' && { status: 404, type: 'not_found_error' }),
    details: { error_code: code, ...more },
  });

const TAGS = { create: ['type'], continue: ['type', 'previous_message_id'] };

function checkShape({ thread }, betas) {
  if (!betas.includes(BETA)) refuse('thread: Extra inputs are not permitted');
  if (!isObject(thread)) refuse('thread: Input should be a valid dictionary or object to extract fields from');
  if (thread.type === undefined) refuse("thread: Unable to extract tag using discriminator 'type'");
  if (!Object.hasOwn(TAGS, thread.type))
    refuse(
      `thread: Input tag '${thread.type}' found using 'type' does not match any of the expected tags: 'continue', 'create'`,
    );
  for (const key of Object.keys(thread))
    if (!TAGS[thread.type].includes(key)) refuse(`thread.${thread.type}.${key}: Extra inputs are not permitted`);
  if (thread.type === 'create') return;
  const id = thread.previous_message_id;
  if (id === undefined) refuse('thread.continue.previous_message_id: Field required');
  if (typeof id !== 'string') refuse('thread.continue.previous_message_id: Input should be a valid string');
}

/** The value as text, its members in one order. */
function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical)}]`;
  if (!isObject(value)) return JSON.stringify(value) ?? '';
  return `{${Object.keys(value)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${canonical(value[key])}`)}}`;
}

const betasOf = (headers) =>
  (headers['anthropic-beta'] ?? '')
    .split(',')
    .map((value) => value.trim())
    .filter(Boolean)
    .sort();

/** What must stay the same, by the names of the fields. */
const fingerprintOf = (body, betas) => ({
  ...Object.fromEntries(FIXED.map((field) => [field, canonical(body[field])])),
  'anthropic-beta': canonical(betas),
});

const isThreaded = ({ thread }) => thread !== undefined && thread !== null;
const previousOf = ({ thread }) => (thread?.type === 'continue' ? thread.previous_message_id : null);

/** The responses that one lane keeps. */
export class ThreadState {
  constructor() {
    /** id of a response -> {messages, head, fingerprint, minute, isContinued, isInFlight, refusals, isUnfinished};
     *  `messages`: the conversation up to it, with it. `refusals`: so many requests more find it in flight. */
    this.threads = new Map();
    /** The id and the messages of the newest answer, in a thread or not. */
    this.newest = null;
    this.minute = 0;
  }

  /** Advances the clock. Threads without a request for too long are removed. */
  advance(minutes) {
    this.minute += minutes;
    for (const [id, { minute }] of this.threads) if (this.minute - minute >= THREAD_MINUTES) this.threads.delete(id);
  }

  /** {status, error} for a request that the service refuses; null if it takes it. */
  refusal(body, headers) {
    try {
      if (!isObject(body) || !isThreaded(body)) return check(body);
      const betas = betasOf(headers);
      checkShape(body, betas);
      const unsupported = UNSUPPORTED.filter((field) => body[field] !== undefined);
      if (unsupported.length)
        refuseThread('thread_unsupported_request', `\`thread\` is not supported with: ${unsupported.join(', ')}`, {
          unsupported,
        });
      if (!previousOf(body)) return check(body);
      if (!Array.isArray(body.messages)) return check(body);
      this.#checkContinued(body, betas);
      return check(this.wholeBody(body));
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      const { status, type, message, details } = error;
      const shape = errorBody(message, { type });
      if (details) shape.error.details = details;
      return { status, error: shape };
    }
  }

  #checkContinued(body, betas) {
    const id = previousOf(body);
    const kept = this.threads.get(id);
    if (!kept) refuseThread('thread_not_found', `No usable thread was found for previous_message_id ${id}.`);
    for (const field of CREATE_ONLY)
      if (body[field] !== undefined) refuse(`${field}: not permitted with thread.type 'continue'`);
    if (kept.isInFlight || kept.refusals > 0) {
      kept.refusals -= kept.isInFlight ? 0 : 1;
      refuseThread('thread_continue_in_flight', `Another request is still continuing from ${id}.`);
    }
    if (kept.isContinued)
      refuseThread('thread_already_continued', `The response ${id} has already been continued by another request.`);
    const now = fingerprintOf(body, betas);
    const differing = Object.keys(now).filter((field) => now[field] !== kept.fingerprint[field]);
    if (differing.length)
      refuseThread(
        'thread_fingerprint_mismatch',
        `The request differs from the thread. Differing field(s): ${differing.join(', ')}`,
      );
    if (body.messages.length === 0 && !kept.isUnfinished) refuse('messages: at least one message is required');
  }

  /** A request with everything that the service has before it, as a model sees it. An answer without content is no
   *  message: the service does not judge its own. */
  wholeBody({ thread, ...body }) {
    const kept = this.threads.get(previousOf({ thread }));
    return kept
      ? {
          ...body,
          ...kept.head,
          messages: [...kept.messages.filter(({ content }) => content.length), ...body.messages],
        }
      : body;
  }

  /** Keeps the response in flight until the returned function is called, and for as many requests more as the step
   *  says. */
  lock(body) {
    const kept = this.threads.get(previousOf(body));
    if (!kept) return () => {};
    kept.isInFlight = true;
    return (step) => {
      Object.assign(kept, { isInFlight: false, refusals: step?.inFlight ?? 0 });
    };
  }

  /** Keeps a request and its answer, if that went out whole, or as `step.isKept` says. */
  keep(body, { id, items, isWhole, step, finish, headers }) {
    const previous = this.threads.get(previousOf(body));
    const { system, tools, messages } = this.wholeBody(body);
    const answered = [...messages, { role: 'assistant', content: items }];
    if (isWhole || step.isKept) this.newest = { id, messages: answered };
    if (!isThreaded(body) || !(step.isKept ?? isWhole)) return;
    if (previous) previous.isContinued = true;
    this.threads.set(id, {
      messages: answered,
      head: { ...(system !== undefined && { system }), ...(tools !== undefined && { tools }) },
      fingerprint: previous?.fingerprint ?? fingerprintOf(body, betasOf(headers)),
      minute: this.minute,
      isContinued: false,
      isInFlight: false,
      refusals: 0,
      isUnfinished: UNFINISHED.has(finish),
    });
  }

  toJSON() {
    const threads = Object.fromEntries([...this.threads].map(([id, { messages }]) => [id, messages]));
    return { threads, newest: this.newest };
  }
}
