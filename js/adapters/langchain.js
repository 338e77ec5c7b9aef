// "rethread/langchain": a session as a chat message history of LangChain.

import { BaseListChatMessageHistory } from '@langchain/core/chat_history';
import { RethreadError } from '../error.js';
import { appendedMessages, pairedMessages, readConversation } from './langchain/messages.js';
import { changeSession, readMessages } from './session-messages.js';

function checkList(messages, method) {
  if (Array.isArray(messages)) return;
  throw new RethreadError(
    'invalid_input',
    `\`${method}\` takes a list of messages: \`[message]\`; for one there is \`addMessage\``,
  );
}

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
    checkList(added, 'addMessages');
    if (!added.length) return;
    if (!added.some((message) => message?.getType?.() === 'tool')) {
      await this.#session.append(appendedMessages(added, new Set()));
      return;
    }
    // A result may be that of a stored call.
    await this.#change(({ open }) => appendedMessages(added, open));
  }

  async addMissing(messages) {
    checkList(messages, 'addMissing');
    const unnamed = messages.findIndex((message) => typeof message?.id !== 'string' || !message.id);
    if (unnamed >= 0) {
      throw new RethreadError('invalid_input', `\`addMissing\` compares ids, and message ${unnamed} has none`);
    }
    await this.#change(({ stored, open }) => {
      const ids = new Set(stored.map(({ data }) => data.id));
      return appendedMessages(
        messages.filter(({ id }) => !ids.has(id) && ids.add(id)),
        open,
      );
    });
  }

  /** Appends what `appended` returns for the stored conversation, and begins again if another process was first. */
  async #change(appended) {
    await changeSession(
      this.#session,
      () => readMessages(this.#session),
      async ({ revision, messages }) => {
        const items = appended(readConversation(messages));
        if (items.length) await this.#session.append(items, { expectedRevision: revision });
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
