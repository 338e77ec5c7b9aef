// "rethread/langchain": a session as a chat message history of LangChain.

import { BaseListChatMessageHistory } from '@langchain/core/chat_history';
import { RethreadError } from '../error.js';
import { appendedMessages, pairedMessages, readConversation } from './langchain/messages.js';
import { changeSession, readMessages } from './session-messages.js';

class SessionChatMessageHistory extends BaseListChatMessageHistory {
  lc_namespace = ['rethread', 'langchain'];
  #session;
  #keepOpen;

  constructor(session, keepOpen) {
    super();
    this.#session = session;
    this.#keepOpen = keepOpen;
  }

  static lc_name() {
    return 'SessionChatMessageHistory';
  }

  async getMessages() {
    const { messages } = await readMessages(this.#session);
    return pairedMessages(readConversation(messages).stored, this.#keepOpen);
  }

  addMessage(message) {
    return this.addMessages([message]);
  }

  async addMessages(added) {
    if (!added.length) return;
    if (!added.some((message) => message?.getType?.() === 'tool')) {
      await this.#session.append(appendedMessages(added, new Set()));
      return;
    }
    // A result may be that of a stored call.
    await changeSession(
      this.#session,
      () => readMessages(this.#session),
      ({ revision, messages }) => {
        const appended = appendedMessages(added, readConversation(messages).open);
        return this.#session.append(appended, { expectedRevision: revision });
      },
    );
  }

  clear() {
    return this.#session.clear();
  }
}

/** @type {typeof import('./langchain.js').chatMessageHistory} */
export function chatMessageHistory(session, options = {}) {
  const { openCalls = 'answer', ...unknown } = options;
  if (typeof session?.append !== 'function') {
    throw new RethreadError('config_invalid', '`chatMessageHistory` takes a session: `await store.session(id)`');
  }
  if (Object.keys(unknown).length || (openCalls !== 'answer' && openCalls !== 'keep')) {
    throw new RethreadError('config_invalid', 'the only option is `openCalls`, which is "answer" or "keep"');
  }
  return new SessionChatMessageHistory(session, openCalls === 'keep');
}
