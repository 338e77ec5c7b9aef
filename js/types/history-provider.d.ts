// History providers: messages from elsewhere, and stores beside the session's log.

import type { RethreadError } from "./error.js";
import type { Message, MessageWithCalls, NewMessage } from "./message.js";
import type { Session } from "./session.js";

/** Adds messages to the requests of a session, and gets what is stored. Providers are not stored: pass them whenever
 *  the session is opened. One provider can serve many sessions: what it keeps for one is in `session.state`, by its
 *  `stateKey`. */
export interface HistoryProvider {
  /** Stamped on the messages that it provides, as `source.id`. */
  name: string;
  /** Its key of `session.state`. Default: the name. Two providers with one key are `state_key_conflict`. */
  stateKey?: string;
  /** True if it loads the history of the conversation. With the owner "caller" `provide` returns it: it comes first
   *  in requests, with the source `{ type: "history", id: name }`, and the input of a run is only what is new. What
   *  `store` got can be returned as it is. Where a service owns the conversation, the service has the history:
   *  `provide` is not called, `store` is. With the owner "session" (the log has the history), beside another
   *  provider that loads, and with an input that contains answers, it is `two_loaders`. Default false: the provided
   *  messages are context. */
  loadMessages?: boolean;
  /** Whether `store` gets the input. Default true. */
  storeInputs?: boolean;
  /** Whether `store` gets the answers. Default true. */
  storeOutputs?: boolean;
  /** Whether `store` gets context of other providers, before the input. Loaded history is never stored again.
   *  Default false. */
  storeContextMessages?: boolean;
  /** Names of the providers whose context `store` gets, which may be its own. Default: all others. */
  storeContextFrom?: string[];
  /** Called once, before the first request of a run and before a `render`. What it returns stands between history
   *  and input, in the order of the providers, and is never stored in history. Calls have their results; one without
   *  is closed as interrupted. If it throws, the run or the render rejects with `callback_failed`, and nothing is
   *  sent or stored. The run has its place in the session already: another run of the session that is awaited here
   *  or in `store` is `busy`, and with `whenBusy: "queue"` both wait for each other until the store is closed. */
  provide?(context: {
    session: Session;
    input: MessageWithCalls[];
  }): NewMessage[] | Message[] | undefined | null | Promise<NewMessage[] | Message[] | undefined | null>;
  /** Called after the session's log has stored something, and awaited by what stored it. Of a run it gets the turn,
   *  once, when the run is over, as history has it (`persist` of a tool applies). After a run that failed or was
   *  cancelled, `error` is set; `input` and `output` are then empty, unless history keeps the turn
   *  (`onStop: "keep"`, or a conversation that had begun to answer). If the run is resumed, the whole turn follows.
   *  Of `append`, `answer`, a checkpoint or the end of an `external` loop, and `discard` the providers of the
   *  session get what was stored. A message whose call got its result later comes again, under its id, with the
   *  result. Nothing is passed twice, and a kill between log and `store` loses the call: `Session.messages` then has
   *  messages that the provider has not. Compare by `id`. If it throws, or the run is cancelled or disposed before
   *  it returns, the warning is `callback_failed`; the session has the messages. */
  store?(context: {
    session: Session;
    input: MessageWithCalls[];
    output: MessageWithCalls[];
    error?: RethreadError;
  }): void | Promise<void>;
  filterProvided?(messages: (NewMessage | Message)[]): (NewMessage | Message)[];
  /** Called for the input and for the output. */
  filterStored?(messages: MessageWithCalls[]): MessageWithCalls[];
}
