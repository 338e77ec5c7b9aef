// Written by shape, so that one declaration holds for every version of `ai`.

import type { MessageWithCalls, NewMessage, Session, ViewMessage } from "../types.js";

export { RethreadError } from "../types.js";

/** A `UIMessage` of any version of `ai`. */
export interface UIMessageShape {
  id: string;
  role: "system" | "user" | "assistant";
  metadata?: unknown;
  parts: any[];
}

/** A `ChatTransport` of any version of `ai`. */
export interface ChatTransportShape {
  sendMessages: (options: any) => Promise<any>;
  reconnectToStream: (options: any) => Promise<any>;
}
/** The members of a `ChatTransport`. */
export type WithSession<Transport extends ChatTransportShape> = Pick<
  Transport,
  Extract<keyof Transport, "sendMessages" | "reconnectToStream" | "resumeStreamIsReplay" | "close">
>;

export interface UIMessageOptions {
  /** The major version of `ai` that reads the messages. Parts that it does not know, and would reject, are carried by
   *  data parts (`data-rethread-part`), from which `fromUIMessages` takes them again. Default: all parts as they are
   *  stored. */
  ai?: 6 | 7;
}

/** UI messages as messages for `Session.append`. A UI message of several steps becomes several messages. What neutral
 *  messages have no member for is kept in data parts (`rethread/ai-sdk`), so that `toUIMessages` returns the same
 *  messages as JSON has them; these are never sent to a model. A call whose input was still streaming is among them. An
 *  `invalid_input` names the message that is none. */
export declare function fromUIMessages(messages: readonly UIMessageShape[]): NewMessage[];

/** Stored messages as UI messages, which `validateUIMessages` and `convertToModelMessages` of `ai` accept: those that
 *  `fromUIMessages` has written as they were, with the results and decisions that were stored since; others, such as
 *  those of a run, by their content. Takes the messages of a view or of `Session.messages`. A part of a type that no
 *  version of `ai` has yet comes back as it is unless `ai` is given. Blocks of one dialect (`opaque`) are left out. */
export declare function toUIMessages<Message extends UIMessageShape = UIMessageShape>(
  messages: readonly (ViewMessage | MessageWithCalls)[],
  options?: UIMessageOptions,
): Message[];

/** All messages of the branch that the session shows, for `useChat({ messages })`: those of `toUIMessages`, and the
 *  answer that was arriving when its page was closed, as far as it was kept. A call that can get no result any more,
 *  because a question follows it, has an error as its result, or its denial: without one `ai` rejects the
 *  conversation. */
export declare function loadUIMessages<Message extends UIMessageShape = UIMessageShape>(
  session: Session,
  options?: UIMessageOptions,
): Promise<Message[]>;

/** Wraps a transport of `useChat`. What the page has is stored before it is sent: questions, outputs of tools
 *  (`addToolOutput`), answers to approvals. `sendMessages` rejects with the store's error, and sends nothing, if that
 *  fails. The answer is stored as it passes, at the end of each step and at its end, and in between at the end of each
 *  part and about once a second in `session.state`; if that fails, the stream ends with the store's error. What could
 *  not be stored, also of an answer that was stopped, is stored before the next request, or that rejects.
 *
 *  An answer that is stopped, or whose connection breaks, is kept with the status "stopped", one that ends with an
 *  error as "failed". `reconnectToStream` continues it and stores nothing twice. An edited question and another answer
 *  begin a branch of the session, which is then shown. Chunks pass unchanged, except that `start` gets the id of the
 *  message if it has none. Calls without a result that are followed by a question are sent with an error result. */
export declare function withSession<Transport extends ChatTransportShape>(
  transport: Transport,
  session: Session,
): WithSession<Transport>;
