// `withSession`: a chat transport that keeps a session.

import { RethreadError } from '../../error.js';
import { MessageAssembler } from './assembler.js';
import { isRepeated, replayed } from './changes.js';
import { newAnswer, newId } from './ids.js';
import { checkedMessages } from './write.js';
import { closedPart, isWithoutResult } from './tools.js';
import { checkSession } from './session-argument.js';
import { StoredChat } from './stored-chat.js';

/** While text arrives, it is kept once in so many milliseconds. */
const KEEP_MS = 1000;

/** The message that a request continues; a new one if it asks for another. `useChat` chooses in the same way. */
export function continuedMessage({ trigger, messageId, messages }) {
  if (trigger === 'regenerate-message') return undefined;
  const named = messages.find(({ id }) => id !== undefined && id === messageId) ?? messages.at(-1);
  return named?.role === 'assistant' ? named : undefined;
}

/** The messages with results for calls that can get none: the model's answer to them was asked for otherwise. */
export function withClosedCalls(messages) {
  const lastAsked = messages.findLastIndex(({ role }) => role === 'user');
  return messages.map((message, at) => {
    if (message.role !== 'assistant' || at > lastAsked) return message;
    if (!message.parts.some(isWithoutResult)) return message;
    return { ...message, parts: message.parts.map((part) => (isWithoutResult(part) ? closedPart(part) : part)) };
  });
}

/** Chunks that end a part, or a step: what the message has then tells it from others. */
const ENDS_PART = /-(end|available|error|request|denied)$/;
const ENDS_STEP = ['finish-step', 'finish', 'error', 'abort'];

/** An answer on its way through: what it has is stored as it passes. */
export class PassingAnswer {
  #chat;
  #unstored;
  #durable;
  #assembler;
  #isReplay;
  /** The stored answer that the stream may repeat, until that is known. */
  #repeats;
  /** The chunks that came before that is known. @type {any[]} */
  #held = [];
  #keptAt = Date.now();
  /** @type {any} */
  #timer;
  #ending;
  /** True once a chunk came. */
  #hasBegun = false;
  /** True once a chunk was passed on. */
  #hasPassed = false;
  #isFinished = false;
  #status;
  #failure;

  /**
   * @param {{ chat: StoredChat, unstored: Map<PassingAnswer, any>, durable?: Set<string> }} owner `unstored`: answers
   *   that have ended, and are not stored yet. `durable`: the names of the tools that store that they start.
   * @param {any} message The beginning of the message.
   * @param {{ isReplay: boolean, repeats?: any }} options `isReplay`: the stream may begin with what is stored.
   *   `repeats`: a complete answer that it may be; if the server gives no id, that is found by what the stream has.
   */
  constructor({ chat, unstored, durable = new Set() }, message, { isReplay, repeats }) {
    this.#chat = chat;
    this.#unstored = unstored;
    this.#durable = durable;
    this.#assembler = new MessageAssembler(message);
    this.#isReplay = isReplay;
    this.#repeats = repeats;
  }

  /** The chunks for the page, for one that came: the first one names the message, so that both call it the same. */
  async pass(chunk) {
    this.#hasBegun = true;
    if (this.#ending) return this.#named(chunk);
    if (chunk.type === 'error') this.#status = 'failed';
    if (chunk.type === 'abort' || chunk.finishReason === 'interrupted') this.#status = 'stopped';
    if (chunk.type === 'finish') this.#isFinished = true;
    this.#assembler.add(chunk);
    this.#held.push(chunk);
    this.#compare(chunk);
    if (this.#repeats) return [];
    const passed = this.held();
    if (chunk.type === 'finish-step') await this.#store({ isEnd: false });
    else if (ENDS_PART.test(chunk.type) || Date.now() - this.#keptAt >= KEEP_MS) await this.#keep();
    else this.#keepSoon();
    return passed;
  }

  /** Keeps what has come also if no more comes for a while. */
  #keepSoon() {
    if (this.#timer !== undefined) return;
    const timer = /** @type {any} */ (
      setTimeout(() => {
        if (this.#timer === timer) void this.#keep();
      }, KEEP_MS)
    );
    timer.unref?.();
    this.#timer = timer;
  }

  #isKept() {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#keptAt = Date.now();
  }

  /** The chunks that were held back. */
  held() {
    return this.#held.splice(0).flatMap((chunk) => this.#named(chunk));
  }

  #named(chunk) {
    const isFirst = !this.#hasPassed;
    this.#hasPassed = true;
    if (chunk.type === 'start') {
      if (chunk.messageId !== undefined) this.#assembler.id = chunk.messageId;
      return [{ ...chunk, messageId: this.#assembler.message.id }];
    }
    return isFirst && !this.#isReplay ? [{ type: 'start', messageId: this.#assembler.message.id }, chunk] : [chunk];
  }

  /** Compares what has come with the answer that the stream may repeat. */
  #compare({ type, messageId }) {
    if (!this.#repeats) return;
    const isOther = messageId !== undefined || !isRepeated(this.#repeats, this.#assembler.message);
    if (isOther) this.#repeats = undefined;
    else if (ENDS_STEP.includes(type) || ENDS_PART.test(type)) this.#repeat();
  }

  #repeat() {
    if (this.#repeats) this.#assembler.id = this.#repeats.id;
    this.#repeats = undefined;
  }

  async #message() {
    const { message } = this.#assembler;
    if (!this.#isReplay) return message;
    const stored = await this.#chat.find(message.id);
    return stored ? replayed(stored, message) : message;
  }

  async #store(options) {
    this.#isKept();
    try {
      await this.#chat.storeAnswer(await this.#message(), { ...options, durable: this.#durable });
      this.#failure = undefined;
    } catch (error) {
      // The answer goes on; the end of the stream reports it, unless a later write has stored all.
      this.#failure = { error };
    }
    this.#keptAt = Date.now();
  }

  async #keep() {
    this.#isKept();
    try {
      await this.#chat.keepArriving(await this.#message(), this.#durable);
    } catch (error) {
      this.#failure = { error };
    }
  }

  /** The id of the message. */
  get id() {
    return this.#assembler.id;
  }

  get isFinished() {
    return this.#isFinished;
  }

  /** True if the model has given the call. */
  hasCall(callId) {
    return this.#assembler.hasCall(callId);
  }

  /** Stores what has come. Rejects if that fails. */
  async storeNow() {
    await this.#store({ isEnd: false });
    if (this.#failure) throw this.#failure.error;
  }

  /** Stores the answer at its end. `status`: it was cut off. Returns what failed. */
  end(status) {
    this.#ending ??= this.#end(this.#status ?? status);
    return this.#ending;
  }

  async #end(status) {
    this.#isKept();
    this.#repeat();
    // A connection may also break without an error, and be continued.
    const options = { status, isEnd: this.#isFinished || status !== undefined };
    if (!this.#hasBegun) return undefined;
    this.#unstored.set(this, options);
    await this.#store(options);
    if (!this.#failure) this.#unstored.delete(this);
    return this.#failure;
  }

  /** Stores the rest of an answer that has ended, if that failed. Rejects if it still does. */
  async settle() {
    await this.#ending;
    const options = this.#unstored.get(this);
    if (options) await this.#store(options);
    if (this.#failure) throw this.#failure.error;
    this.#unstored.delete(this);
  }
}

/** A stream of the same chunks, which are stored as they pass. */
function passing(stream, answer, signal) {
  const reader = stream.getReader();
  const cut = () => answer.end('stopped');
  signal?.addEventListener('abort', cut, { once: true });
  return new ReadableStream({
    async pull(controller) {
      const enqueue = (chunks) => {
        for (const chunk of chunks) controller.enqueue(chunk);
        return chunks.length > 0;
      };
      try {
        for (let next = await reader.read(); !next.done; next = await reader.read())
          if (enqueue(await answer.pass(next.value))) return;
      } catch (error) {
        await answer.end('stopped');
        controller.error(error);
        return;
      }
      const failure = await answer.end(signal?.aborted ? 'stopped' : undefined);
      enqueue(answer.held());
      if (failure) controller.error(failure.error);
      else controller.close();
    },
    async cancel(reason) {
      await Promise.all([cut(), reader.cancel(reason)]);
    },
  });
}

function checkTransport(transport) {
  if (typeof transport?.sendMessages === 'function') return;
  throw new RethreadError(
    'config_invalid',
    'the first argument of `withSession` is a transport of `useChat`: `new DefaultChatTransport({ api: "/api/chat" })`; the second one is the session',
  );
}

/** @type {typeof import('../ai-sdk.d.ts').withSession} */
export function withSession(transport, session) {
  checkTransport(transport);
  checkSession(session, 'withSession');
  /** Of `ai` 6 or 7. @type {any} */
  const inner = transport;
  const chat = new StoredChat(session);
  /** @type {Map<PassingAnswer, any>} */
  const unstored = new Map();
  const owner = { chat, unstored };
  /** @type {any} */
  const kept = {
    get resumeStreamIsReplay() {
      return inner.resumeStreamIsReplay;
    },
    close: () => inner.close?.(),
    async sendMessages(options) {
      const messages = withClosedCalls(checkedMessages(options.messages));
      for (const answer of unstored.keys()) await answer.settle();
      await chat.storePage(messages);
      const stream = await inner.sendMessages({ ...options, messages: withClosedCalls(options.messages) });
      const message = continuedMessage({ ...options, messages }) ?? newAnswer(newId());
      return passing(stream, new PassingAnswer(owner, message, { isReplay: false }), options.abortSignal);
    },
    async reconnectToStream(options) {
      const stream = await inner.reconnectToStream(options);
      if (!stream) return null;
      const last = await chat.lastAnswer();
      const message = newAnswer(last?.isCut ? last.message.id : newId());
      const repeats = last && !last.isCut ? last.message : undefined;
      return passing(stream, new PassingAnswer(owner, message, { isReplay: true, repeats }), options.abortSignal);
    },
  };
  return kept;
}
