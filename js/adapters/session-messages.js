// The messages of a session: all pages of a branch, what an append has changed in them, and a change that begins again
// if another writer was first.

/** The messages of a branch, by default the one that is shown, oldest first. */
export async function readPages(session, branch) {
  const pages = [];
  let cursor;
  do {
    const page = await session.messages({ limit: 1000, cursor, branch });
    pages.unshift(page.items);
    cursor = page.cursor ?? undefined;
  } while (cursor !== undefined);
  return pages.flat();
}

/** Reads the session anew, and returns its messages, oldest first. */
export async function readMessages(session) {
  await session.refresh();
  for (;;) {
    const { revision, branch } = session;
    const messages = await readPages(session);
    // Another append in between would have moved the pages.
    if (session.revision === revision && session.branch === branch) return { revision, messages };
  }
}

/** `callIds`: ids of calls, or of their invocations. */
const hasCall = (message, callIds) =>
  message.parts.some(
    ({ type, callId, invocation }) => type === 'tool_call' && (callIds.has(callId) || callIds.has(invocation)),
  );

/** The messages with the newest ones of a page; null if messages before that may have changed: the results of these
 *  calls. */
export function withNewest(messages, items, callIds) {
  const start = messages.findLastIndex(({ id }) => id === items[0]?.id);
  const earlier = messages.slice(0, Math.max(start, 0));
  return start < 0 || earlier.some((message) => hasCall(message, callIds)) ? null : [...earlier, ...items];
}

/** The messages of a session as they were read last. */
export class KnownMessages {
  #session;
  /** @type {{ revision: number, branch: string, messages: any[] } | null} */
  #known = null;

  constructor(session) {
    this.#session = session;
  }

  /** As they were read last, or `null` if they must be read again. */
  get known() {
    return this.#known;
  }

  async read() {
    await this.#session.refresh();
    const { revision, branch } = this.#session;
    const known = this.#known;
    if (known && known.revision === revision && known.branch === branch) return known;
    const read = { ...(await readMessages(this.#session)), branch: this.#session.branch };
    this.#known = read;
    return read;
  }

  /** Appends messages if the session has this revision, and returns their ids. */
  async append(messages, revision) {
    const { messageIds } = await this.#session.append(messages, { expectedRevision: revision });
    const answers = messages.flatMap(({ role, parts }) => (role === 'tool' ? parts : []));
    await this.readAppended(revision, new Set(answers.map(({ callId }) => callId)), messageIds.length);
    return messageIds;
  }

  /** After an append of this object's owner to the revision `before`, of `added` messages: reads only the end. Messages
   *  that precede it are the same, unless the append has answered their calls. */
  async readAppended(before, callIds, added) {
    const known = this.#known;
    const { revision, branch } = this.#session;
    this.#known = null;
    if (!known || known.revision !== before || revision !== before + 1 || branch !== known.branch) return;
    const answered = callIds.size ? known.messages.findIndex((message) => hasCall(message, callIds)) : -1;
    // One of them is known.
    const limit = added + (answered < 0 ? 1 : known.messages.length - answered);
    // The append is stored: what cannot be read now is the next read's to report.
    const items = await this.#session.messages({ limit: Math.min(limit, 1000) }).then(
      (page) => page.items,
      () => [],
    );
    const messages = withNewest(known.messages, items, callIds);
    if (messages && this.#session.revision === revision) this.#known = { revision, branch, messages };
  }
}

/** Times that a change begins again because another writer was first. */
export const ATTEMPTS = 20;

/** Performs a change for what the session has; anew for what it has then if another writer was first.
 *  @template R, C @param {any} session @param {() => Promise<R & { revision: number }>} read
 *  @param {(read: R & { revision: number }) => Promise<C>} change @returns {Promise<C>} */
export async function changeSession(session, read, change) {
  for (let attempt = 1; ; attempt += 1) {
    const known = await read();
    try {
      return await change(known);
    } catch (error) {
      // A result whose call was answered meanwhile is `invalid_input`.
      const isLate = error?.code === 'invalid_input' && (await session.refresh()).revision !== known.revision;
      if (attempt === ATTEMPTS || (error?.code !== 'conflict' && !isLate)) throw error;
    }
  }
}
