// Written by shape, so that one declaration holds for every version of `ai`.

import type {
  PlatformAbortSignal,
  PlatformReadableStream,
  PlatformRequest,
  PlatformResponse,
} from "../types/platform.js";
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

/** A `ModelMessage` of any version of `ai`. */
export interface ModelMessageShape {
  role: "system" | "user" | "assistant" | "tool";
  content: any;
}

/** Model messages, the history of a server with `streamText`, as messages for `Session.append`. A result, a request for
 *  an approval and the answer to it are kept with their call, those of calls with one id in one answer by their names
 *  and in their order; a call without a result stays open. An image without a media type gets that of its bytes; the
 *  parts of a result of type "content" are a list, as JSON; a file that only its provider has is kept by name, and
 *  `providerOptions` of whole messages, but for system messages, are left out. An `invalid_input` names the message
 *  that is none, has a part of a type that is not known, or answers a call that no message before it has. */
export declare function fromModelMessages(messages: readonly ModelMessageShape[]): NewMessage[];

/** Tools of any version of `ai`. */
export interface ToolsShape {
  [name: string]: any;
}

/** What happens to a call that had started when its process ended, and has no result, by the name of its tool. "report"
 *  (default): its result is "interrupted, may have run". "rerun": the tool runs again. A call of which nothing proves
 *  that it had not started, as one that was imported, counts as started. The words are those of `Tool.onInterrupted`. */
export type OnInterrupted<Tools> = { [Name in keyof Tools]?: "report" | "rerun" };

/** A middleware for `wrapLanguageModel` of `ai` 6 and 7: a loop of `streamText` or `generateText` over the session is
 *  journaled. What is new in a prompt (questions at its end, results of calls that the session has without one) is
 *  stored before it is sent, of an empty session the whole prompt; if that fails, nothing is sent. An answer is stored
 *  before its end is passed on, at which its tools begin; if that fails, none begins, and the loop has the store's
 *  error. One that was aborted is kept with the status "stopped", one that broke with "failed".
 *
 *  A request that has no answer of the stored ones, as that of `prompt` over an older session, is sent and stored as it
 *  is, and its `warnings` say so; `ai` logs them.
 *
 *  The prompt that is sent is repaired: each call has its one result, right behind it, no result is without its call,
 *  and no message is empty. What is stored is not changed by that. All requests of the model are stored: wrap another
 *  one for titles. Within `answer` of a `sessionTransport` or `chatHandler`, which store the answer themselves, prompts
 *  are repaired only. */
export declare function historyMiddleware(session: Session): {
  /** Any version: the functions are the same. */
  readonly specificationVersion: any;
  transformParams: (options: any) => Promise<any>;
  wrapGenerate: (options: any) => PromiseLike<any>;
  wrapStream: (options: any) => PromiseLike<any>;
};

/** Copies of the tools whose `execute` stores that it begins before it does, and its result when it is there. A call
 *  whose tool has a result gets that one, one that runs in this process waits for it, and one that had started before
 *  gets the error "interrupted, may have run", unless `onInterrupted` says "rerun". The session must have the call: wrap
 *  the model with `historyMiddleware`. Of a tool that yields preliminary results, the last one is its result, and the
 *  others are not shown. None begins once its signal was aborted. A result that cannot be stored is stored before the
 *  next request to the model, or that rejects. The newest call with the id is meant; if its tool runs with another
 *  input, the answer has several of that id: `conflict`, and the tool is not run. What runs in another opening of the
 *  store runs elsewhere. Tools without `execute` are the same objects. */
export declare function durableTools<Tools extends ToolsShape>(
  tools: Tools,
  session: Session,
  options?: { onInterrupted?: OnInterrupted<Tools> },
): Tools;

/** The messages of `loadUIMessages` for a loop that goes on after its process ended: `convertToModelMessages` takes them.
 *  Calls of the last answer without a result get one first, stored: "not run" if a durable tool of a journaled loop, or
 *  of a `chatHandler`, had not started, and "interrupted, may have run" otherwise. One whose tool runs in this process is
 *  waited for. With `tools`, those of `durableTools`, one that may run again does, and one without `execute` stays open:
 *  it is the application's to answer. Requests for approvals stay open. */
export declare function resumeUIMessages<Message extends UIMessageShape = UIMessageShape>(
  session: Session,
  options?: UIMessageOptions & { tools?: ToolsShape },
): Promise<Message[]>;

/** True if the model is to be asked: the last message is a question, an answer that was cut off or stopped, or one that
 *  ends with a call, whose result the model has not answered yet. False after the result of a tool of the provider,
 *  while this process or another one makes the answer for a `chatHandler`, and while a call waits for its approval or,
 *  with `tools`, for the application: its tool has no `execute`. Ask after `resumeUIMessages`, or before
 *  `sendMessage()` without a message. */
export declare function awaitsAnswer(session: Session, options?: { tools?: ToolsShape }): Promise<boolean>;

/** What `answer` gets. */
export interface AnswerRequest<Message extends UIMessageShape = UIMessageShape, Tools = any> {
  /** The conversation as it is stored, up to the question or the answer that goes on: for `convertToModelMessages`. The
   *  page may have sent the end of it alone. */
  messages: Message[];
  /** The tools of the options, durable in this session. */
  tools: Tools;
  session: Session;
  /** Is aborted when the answer is stopped. A page that leaves aborts nothing. */
  abortSignal: PlatformAbortSignal;
  /** True if another process makes the answer whose place this one takes, and has not confirmed within 2 seconds that
   *  it stops: unless it is dead, that answer and its tools may go on until it sees that its place is taken. */
  mayOverlap: boolean;
  /** The members of the request's body that are not the chat's own. */
  body?: any;
  /** Of `chatHandler`: the request, whose body was read. */
  request?: PlatformRequest;
}

export interface ServedChatOptions<Message extends UIMessageShape = any, Tools extends ToolsShape = any> {
  tools?: Tools;
  onInterrupted?: OnInterrupted<Tools>;
  /** Returns the result of `streamText`, or a stream of chunks of UI messages. */
  answer: (request: AnswerRequest<Message, Tools>) => any;
}

/** A transport for `useChat` whose loop runs here, in the process that has the session: a server (see `chatHandler`), a
 *  worker, a test. The question, outputs and answers to approvals are stored before the model is asked. The answer is
 *  stored at the end of each step, with its calls before their tools begin, and in between as by `withSession`. It goes
 *  on when the page leaves: `reconnectToStream` gives the whole message again, from its beginning. Edits and other
 *  answers are branches. A new request ends the answer that is under way, as `stop` does. An answer that another process
 *  makes, or another tab, is followed and stopped, too: by what the store has of it. Its holder counts as alive for
 *  `OpenOptions.leaseMs` after its last write, by default 10 seconds; what a dead one has left is continued.
 *  For that long a stream of `reconnectToStream` is silent if the store cannot be read; then it rejects with its error. */
export declare function sessionTransport<Message extends UIMessageShape = any, Tools extends ToolsShape = any>(
  session: Session,
  options: ServedChatOptions<Message, Tools>,
): {
  readonly resumeStreamIsReplay: true;
  sendMessages: (options: any) => Promise<PlatformReadableStream>;
  reconnectToStream: (options: any) => Promise<PlatformReadableStream | null>;
  /** Ends the answer that is under way or asked for: its signal is aborted, and what has come is kept, with the status
   *  "stopped". Resolves when that is stored, to false if there is none; one that is only asked for ends later. One of
   *  another process is waited for, 2 seconds at most; then this resolves to "asked": that process may be dead, or
   *  busy, and has not confirmed that it stops. */
  stop: () => Promise<boolean | "asked">;
};

/** The server of `DefaultChatTransport`: returns a function that answers `POST …` (an answer), `GET …/[id]/stream`
 *  (who reconnects; 204 if nothing is under way) and `POST …/[id]/stop` (204; 202 for "asked"). It does what
 *  `sessionTransport` does, for the session that `session` opens, which may also return a response, such as 401. Any
 *  process with the same store may get the request. An error of the store is answered with its code and text and the
 *  status 500, a body that is none of `useChat` with 400; other errors reject. A request of node:http or Express is
 *  `config_invalid`: make a `Request` of it. */
export declare function chatHandler<Message extends UIMessageShape = any, Tools extends ToolsShape = any>(
  options: ServedChatOptions<Message, Tools> & {
    /** `id`: that of the chat. Check here that the request may have it. */
    session: (id: string, request: PlatformRequest) => Session | PlatformResponse | Promise<Session | PlatformResponse>;
  },
): (request: PlatformRequest) => Promise<PlatformResponse>;

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
 *  conversation. If a `chatHandler` of another process has begun a branch since this one looked, the session shows it. */
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
