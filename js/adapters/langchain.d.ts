// The types of `rethread/langchain`.

import type { BaseListChatMessageHistory } from "@langchain/core/chat_history";
import type { BaseMessage } from "@langchain/core/messages";
import type { Session } from "../types.js";

export interface ChatMessageHistoryOptions {
  /** What `getMessages` does with calls of the newest answer that have no result yet. "answer" (default) gives them
   *  an error result that says so, as it gives to those of older answers: a provider rejects a request without.
   *  "keep" leaves them, if your next input has their results. */
  openCalls?: "answer" | "keep";
}

export interface SessionChatMessageHistory extends BaseListChatMessageHistory {
  /** Adds, in one append, those of the messages whose `id` no stored message has: the messages of a LangGraph state,
   *  which come whole at each step, also a second time after a kill. A message that was erased here and is still in
   *  the state comes back; one whose content has changed is not replaced. One without an id is `invalid_input`; LangGraph
   *  gives one to each message of its state. */
  addMissing(messages: BaseMessage[]): Promise<void>;
}

/** A session as LangChain's history, for `RunnableWithMessageHistory` and everything that takes one. Messages come
 *  back with their calls, results, ids and metadata, as JSON keeps them; each result follows its call, and one
 *  without a call is left out. Calls that were not parsed count where the provider's package sends them. `addMessages`
 *  is one append. A message of the type "remove" is `invalid_input`. */
export declare function chatMessageHistory(
  session: Session,
  options?: ChatMessageHistoryOptions,
): SessionChatMessageHistory;
