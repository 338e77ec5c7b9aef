// Written by shape: the declarations of assistant-ui need those of React, which not every program has.

import type { Rethread, Session } from "../types.js";

export { RethreadError } from "../types.js";

/** A `ThreadHistoryAdapter` of `@assistant-ui/core`. */
export interface SessionThreadHistory {
  scopeId: string;
  load(): Promise<any>;
  append(item: any): Promise<void>;
  update(item: any): Promise<void>;
  delete(items: any[]): Promise<void>;
  withFormat(format: any): any;
}

/** A `RemoteThreadListAdapter` of `@assistant-ui/core`. */
export interface SessionThreadList {
  list(page?: { after?: string | undefined }): Promise<any>;
  fetch(threadId: string): Promise<any>;
  initialize(
    threadId: string,
    options?: { custom?: Record<string, unknown> | undefined },
  ): Promise<{ remoteId: string; externalId: string | undefined }>;
  rename(remoteId: string, title: string): Promise<void>;
  updateCustom(remoteId: string, custom: Record<string, unknown> | undefined): Promise<void>;
  archive(remoteId: string): Promise<void>;
  unarchive(remoteId: string): Promise<void>;
  delete(remoteId: string): Promise<void>;
  generateTitle(remoteId: string, messages: readonly any[]): Promise<any>;
  unstable_useAdapters?: () => any;
}

/** A session as the history of a thread, for `useLocalRuntime(model, { adapters: { history } })`. `load` returns every
 *  branch, with the one that the session shows as the head; `append` continues the branch that ends with the parent, or
 *  forks after it, and shows that branch. `update` stores results, decisions, statuses and new parts of a stored
 *  message, or the whole message if it is not stored; if a text that was sent is another one, the message and those
 *  after it become a branch. `delete` erases messages with their calls and results, as `Session.deleteMessages` does:
 *  from every branch; what is not stored is erased already.
 *
 *  Messages come back as they were, with their dates, which are texts in arguments, results and `data`; an undefined
 *  member is a missing one, and `file` of an attachment is left out. Text, reasoning, images, files, calls and results
 *  are parts of the session, which requests contain; what else a message has is kept in data parts
 *  (`rethread/assistant-ui`), which are never sent.
 *
 *  `withFormat` keeps the messages of the runtimes of AI SDK ("ai-sdk/v5" or later) as `rethread/ai-sdk` does, and those
 *  of any other format as they are, of which nothing is sent.
 *
 *  A write that fails rejects, and is made again before the next one, unless its message is `invalid_input` or
 *  `too_large`. */
export declare function threadHistory(session: Session): SessionThreadHistory;

export interface ThreadListOptions {
  /** The hook of `@assistant-ui/react`, or of another binding of assistant-ui. With it, `useRemoteThreadListRuntime` gives
   *  each thread the history of its session, as `threadHistory` makes it; without, your `runtimeHook` does. */
  useAui?: () => any;
  /** Lists the sessions of this channel (`SessionOptions.channel`), and creates threads in it. Default: all. */
  channel?: string;
  /** The most threads in a page, 1 to 10,000. Default 100. */
  limit?: number;
  /** Makes the title of a thread, which is stored, from its first messages; without one, or with none, a thread has no
   *  title until it is renamed. */
  title?: (messages: readonly any[]) => string | null | undefined | Promise<string | null | undefined>;
}

/** The sessions of a store as threads, for `useRemoteThreadListRuntime({ adapter, runtimeHook })`. The `remoteId` is the
 *  session's id, `custom` its metadata, and `list({ after })` pages by the cursor of `Rethread.sessions`. Changes of a
 *  thread that is not stored reject with `not_found`; `delete` of one resolves. */
export declare function threadList(store: Rethread, options?: ThreadListOptions): SessionThreadList;
