// `threadList`: the sessions of a store as assistant-ui's `RemoteThreadListAdapter`.

import { RethreadError } from '../../error.js';
import { isObject } from '../plain.js';
import { adapterOf } from './thread-history.js';

/** The most sessions that `sessions` lists in a page. */
const MOST = 10_000;

const threadOf = ({ id, title, archived, messageCount, updatedAt, metadata }) => ({
  remoteId: id,
  status: archived ? 'archived' : 'regular',
  ...(title === null ? {} : { title }),
  ...(messageCount ? { lastMessageAt: new Date(updatedAt) } : {}),
  ...(isObject(metadata) ? { custom: metadata } : {}),
});

/** A stream of assistant-ui that has one text, or nothing. */
function titleStream(title) {
  const chunks = [
    { type: 'part-start', part: { type: 'text' }, path: [] },
    { type: 'text-delta', textDelta: title, path: [0] },
    { type: 'part-finish', path: [0] },
  ];
  return new ReadableStream({
    start(controller) {
      if (title) for (const chunk of chunks) controller.enqueue(chunk);
      controller.close();
    },
  });
}

class SessionThreads {
  #store;
  #options;
  /** @type {Map<string, Promise<any>>} */
  #opened = new Map();

  constructor(store, options) {
    this.#store = store;
    this.#options = options;
  }

  get #selection() {
    const { channel } = this.#options;
    return { archived: 'all', ...(channel === undefined ? {} : { channel }) };
  }

  /** @param {{ after?: string }} [page] */
  async list({ after } = {}) {
    const { limit } = this.#options;
    const { items, cursor } = await this.#store.sessions({ ...this.#selection, limit, cursor: after });
    return { threads: items.map(threadOf), ...(cursor === null ? {} : { nextCursor: cursor }) };
  }

  async #find(id) {
    let cursor;
    do {
      const page = await this.#store.sessions({ ...this.#selection, limit: MOST, cursor });
      const found = page.items.find((session) => session.id === id);
      if (found) return found;
      cursor = page.cursor ?? undefined;
    } while (cursor !== undefined);
    return undefined;
  }

  async fetch(id) {
    const found = await this.#find(id);
    if (!found) throw new RethreadError('not_found', `there is no thread ${JSON.stringify(id)}`);
    return threadOf(found);
  }

  /** The session of a thread: one object for all writers of this page, which therefore write one after the other. One
   *  that another tab deletes stays, so that it is not created again. */
  session(id) {
    const { channel } = this.#options;
    const opened = this.#opened.get(id) ?? this.#store.session(id, channel === undefined ? {} : { channel });
    this.#opened.set(id, opened);
    opened.catch(() => this.#opened.delete(id));
    return opened;
  }

  /** Changes a thread that is stored. */
  async change(id, fields) {
    await this.fetch(id);
    await (await this.session(id)).update(fields);
  }

  /** @param {string} id @param {{ custom?: Record<string, unknown> }} [draft] */
  async initialize(id, { custom } = {}) {
    // A thread that is stored keeps what it has.
    if (!(await this.#find(id))) {
      this.#opened.delete(id);
      const { channel } = this.#options;
      const fields = { ...(channel === undefined ? {} : { channel }), metadata: custom ?? null };
      await (await this.session(id)).update(fields);
    }
    return { remoteId: id, externalId: undefined };
  }

  async delete(id) {
    await this.#store.deleteSession(id);
    this.#opened.delete(id);
  }

  async generateTitle(id, messages) {
    const title = await this.#options.title?.(messages);
    if (title) await this.change(id, { title });
    return titleStream(title);
  }
}

/** The thread of a page, which may become another one. */
function sourceOf(threads, item) {
  return {
    async stored() {
      const { remoteId } = item().getState();
      return remoteId === undefined ? null : threads.session(remoteId);
    },
    created: async () => threads.session((await item().initialize()).remoteId),
    pin() {
      const pinned = item();
      return sourceOf(threads, () => pinned);
    },
  };
}

/** The item that stays that of its thread when another thread is shown. */
function keyedItem(aui) {
  const shown = aui.threadListItem;
  const id = shown.source ? shown.getState().id : undefined;
  const isListed = id !== undefined && aui.threads.getState().threadItems.some((item) => item.id === id);
  return isListed ? aui.threads.item({ id }) : shown;
}

/** The hook that gives a thread on a page the history of its session. */
function hookOf(threads, useAui) {
  // One object for each, as hooks want it.
  const adapters = new WeakMap();
  return function useSessionAdapters() {
    const aui = useAui();
    const known = adapters.get(aui) ?? { history: adapterOf(sourceOf(threads, () => keyedItem(aui))) };
    adapters.set(aui, known);
    return known;
  };
}

/** @param {import('../assistant-ui.d.ts').ThreadListOptions} options */
function checkedOptions({ useAui, channel, limit = 100, title, ...unknown }) {
  if (Object.keys(unknown).length)
    throw new RethreadError(
      'config_invalid',
      'the options of `threadList` are `useAui`, `channel`, `limit` and `title`',
    );
  for (const [name, option] of Object.entries({ useAui, title }))
    if (option !== undefined && typeof option !== 'function')
      throw new RethreadError('config_invalid', `\`${name}\` is a function`);
  return { useAui, channel, limit, title };
}

/** @type {typeof import('../assistant-ui.d.ts').threadList} */
export function threadList(store, options = {}) {
  if (typeof store?.sessions !== 'function')
    throw new RethreadError('config_invalid', '`threadList` takes a store: `await open()`');
  const { useAui, ...checked } = checkedOptions(options);
  const threads = new SessionThreads(store, checked);
  return {
    list: (page) => threads.list(page),
    fetch: (id) => threads.fetch(id),
    initialize: (id, draft) => threads.initialize(id, draft),
    rename: (id, title) => threads.change(id, { title }),
    updateCustom: (id, custom) => threads.change(id, { metadata: custom ?? null }),
    archive: (id) => threads.change(id, { archived: true }),
    unarchive: (id) => threads.change(id, { archived: false }),
    delete: (id) => threads.delete(id),
    generateTitle: (id, messages) => threads.generateTitle(id, messages),
    ...(useAui ? { unstable_useAdapters: hookOf(threads, useAui) } : {}),
  };
}
