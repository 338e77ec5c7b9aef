// `withSession`: a chat transport that keeps a session.

import { MessageAssembler } from './assembler.js';
import { replayed } from './changes.js';
import { checkedMessages } from './write.js';
import { closedPart, isWithoutResult } from './tools.js';
import { StoredChat } from './stored-chat.js';

/** While text arrives, it is kept once in so many milliseconds. */
const KEEP_MS = 1000;

/** `crypto.randomUUID` is missing on pages that were not loaded by HTTPS. */
const newId = () => Array.from(crypto.getRandomValues(new Uint8Array(12)), (byte) => byte.toString(36)).join('');
const newAnswer = (id) => ({ id, role: 'assistant', parts: [] });

/** The message that a request continues; a new one if it asks for another. `useChat` chooses in the same way. */
function continuedMessage({ trigger, messageId, messages }) {
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

/** An answer on its way through: what it has is stored as it passes. */
class PassingAnswer {
  #chat;
  #assembler;
  #isReplay;
  #keptAt = Date.now();
  #ending;
  /** True once a chunk came. */
  #hasBegun = false;
  #status;
  #failure;

  constructor(chat, message, isReplay) {
    this.#chat = chat;
    this.#assembler = new MessageAssembler(message);
    this.#isReplay = isReplay;
  }

  /** The chunks for the page, for one that came: the first one names the message, so that both call it the same. */
  async pass(chunk) {
    const passed = this.#named(chunk);
    if (this.#ending) return passed;
    if (chunk.type === 'error') this.#status = 'failed';
    if (chunk.type === 'abort' || chunk.finishReason === 'interrupted') this.#status = 'stopped';
    this.#assembler.add(chunk);
    if (chunk.type === 'finish-step') await this.#store();
    else if (/-(end|available|error|request|denied)$/.test(chunk.type) || Date.now() - this.#keptAt >= KEEP_MS)
      await this.#keep();
    return passed;
  }

  #named(chunk) {
    const isFirst = !this.#hasBegun;
    this.#hasBegun = true;
    if (chunk.type === 'start') {
      if (chunk.messageId !== undefined) this.#assembler.id = chunk.messageId;
      return [{ ...chunk, messageId: this.#assembler.message.id }];
    }
    return isFirst && !this.#isReplay ? [{ type: 'start', messageId: this.#assembler.message.id }, chunk] : [chunk];
  }

  async #message() {
    const { message } = this.#assembler;
    if (!this.#isReplay) return message;
    const stored = await this.#chat.find(message.id);
    return stored ? replayed(stored, message) : message;
  }

  async #store(status) {
    try {
      await this.#chat.storeAnswer(await this.#message(), status);
      this.#failure = undefined;
    } catch (error) {
      // The answer goes on; the end of the stream reports it, unless a later write has stored all.
      this.#failure = { error };
    }
    this.#keptAt = Date.now();
  }

  async #keep() {
    this.#keptAt = Date.now();
    try {
      await this.#chat.keepArriving(await this.#message());
    } catch (error) {
      this.#failure = { error };
    }
  }

  /** Stores the answer at its end. `status`: it was cut off. Returns what failed. */
  end(status) {
    this.#ending ??= this.#end(this.#status ?? status);
    return this.#ending;
  }

  async #end(status) {
    if (this.#hasBegun) await this.#store(status);
    return this.#failure;
  }
}

/** A stream of the same chunks, which are stored as they pass. */
function passing(stream, answer, signal) {
  const reader = stream.getReader();
  const cut = () => answer.end('stopped');
  signal?.addEventListener('abort', cut, { once: true });
  return new ReadableStream({
    async pull(controller) {
      try {
        const { done, value } = await reader.read();
        if (!done) {
          for (const chunk of await answer.pass(value)) controller.enqueue(chunk);
          return;
        }
      } catch (error) {
        await answer.end('stopped');
        controller.error(error);
        return;
      }
      const failure = await answer.end(signal?.aborted ? 'stopped' : undefined);
      if (failure) controller.error(failure.error);
      else controller.close();
    },
    async cancel(reason) {
      await Promise.all([cut(), reader.cancel(reason)]);
    },
  });
}

/** @type {typeof import('../ai-sdk.d.ts').withSession} */
export function withSession(transport, session) {
  /** Of `ai` 6 or 7. @type {any} */
  const inner = transport;
  const chat = new StoredChat(session);
  /** @type {any} */
  const kept = {
    get resumeStreamIsReplay() {
      return inner.resumeStreamIsReplay;
    },
    close: () => inner.close?.(),
    async sendMessages(options) {
      const messages = withClosedCalls(checkedMessages(options.messages));
      await chat.storePage(messages);
      const stream = await inner.sendMessages({ ...options, messages: withClosedCalls(options.messages) });
      const message = continuedMessage({ ...options, messages }) ?? newAnswer(newId());
      return passing(stream, new PassingAnswer(chat, message, false), options.abortSignal);
    },
    async reconnectToStream(options) {
      const stream = await inner.reconnectToStream(options);
      if (!stream) return null;
      const message = newAnswer((await chat.cutAnswer()) ?? newId());
      return passing(stream, new PassingAnswer(chat, message, true), options.abortSignal);
    },
  };
  return kept;
}
