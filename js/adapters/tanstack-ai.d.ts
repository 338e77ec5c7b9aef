// The types of `rethread/tanstack-ai`.

import type { ChatClientPersistence, ChatPersistedState } from "@tanstack/ai-client";
import type { Rethread, RethreadError } from "../types.js";

export { RethreadError } from "../types.js";

export interface ChatPersistenceOptions {
  /** Called with each error of the store, because `ChatClient` ignores what its persistence rejects with. Default: it is
   *  printed with `console.error`. What could not be written is tried again, and with the next change. */
  onError?: (
    error: RethreadError | Error,
    context: { id: string; operation: "getItem" | "setItem" | "removeItem" },
  ) => void;
}

/** A `ChatClientPersistence` whose chats are sessions of a store. */
export interface ChatPersistence extends ChatClientPersistence {
  /** The chat with the answer that was arriving when its page was closed, as far as it was kept, and the snapshot of a
   *  run that is not over. Null if the session has neither. What other parts of rethread have stored is shown as
   *  messages, except for blocks of one dialect, data and files that only their provider can read. */
  getItem(id: string): Promise<ChatPersistedState | null>;
  /** Appends what the session does not have yet. A message that was edited and an answer that was asked for again are a
   *  branch, which is then shown. An answer that arrives is kept in `session.state`, about once a second, and is
   *  appended when it is over; resolves at once while it only grows. Rejects with the store's error, or with
   *  `invalid_input` once it has stored the messages that JSON can have. */
  setItem(id: string, state: ChatPersistedState): Promise<void>;
  /** Erases the messages of all branches, as `Session.clear` does: title and metadata of the session stay. */
  removeItem(id: string): Promise<void>;
  /** Stores what is still waiting, of one chat or of all, and the last answer as it is unless its run can be joined
   *  again. Rejects with the store's error. */
  flush(id?: string): Promise<void>;
}

/** The sessions of a store as the persistence of `ChatClient` and `useChat` of TanStack AI: `threadId` is the id of the
 *  session. Each client has one of its own. Messages come back as they were, as JSON has them, with their times as
 *  `Date`. Texts, thinking, images, files, calls and results are neutral parts, which `render` sends; what these have no
 *  member for is kept in data parts (`rethread/tanstack-ai`), which are never sent. */
export declare function chatPersistence(store: Rethread, options?: ChatPersistenceOptions): ChatPersistence;
