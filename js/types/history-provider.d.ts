// History providers: messages from elsewhere, and stores beside the session's log.

import type { RethreadError } from "./error.js";
import type { Message, MessageWithCalls, NewMessage } from "./message.js";
import type { Session } from "./session.js";

/** Adds messages to the requests of a session, and gets each turn when its run is over. Providers are not stored: pass them whenever the
 *  session is opened. One provider can serve many sessions: what it keeps for one is in `session.state`, by its `stateKey`. */
export interface HistoryProvider {
  /** Stamped on the messages that it provides, as `source.id`. */
  name: string;
  /** Its key of `session.state`. Default: the name. Two providers with one key are `state_key_conflict`. */
  stateKey?: string;
  /** True if it loads the history of the conversation. `provide` is then never called: such a provider is accepted only where a service owns the
   *  conversation, and the service has the history. `store` is called. With the owner "session" (the log has the history) or "caller" (the input
   *  has it), and beside another provider that loads, it is `two_loaders`. Default false: the provided messages are context. */
  loadMessages?: boolean;
  /** Whether `store` gets the input. Default true. */
  storeInputs?: boolean;
  /** Whether `store` gets the answers. Default true. */
  storeOutputs?: boolean;
  /** Whether `store` gets context of other providers, before the input. Loaded history is never stored again. Default false. */
  storeContextMessages?: boolean;
  /** Names of the providers whose context `store` gets, which may be its own. Default: all others. */
  storeContextFrom?: string[];
  /** Called once, before the first request of a run and before a `render`. What it returns stands between history and input, in the order
   *  of the providers, and is never stored in history. Calls have their results; one without is closed as interrupted. If it throws, the run or the render rejects with
   *  `callback_failed`, and nothing is sent or stored. The run has its place in the session already: another run of the session that is awaited
   *  here or in `store` is `busy`, and with `whenBusy: "queue"` both wait for each other until the store is closed. */
  provide?(context: { session: Session; input: MessageWithCalls[] }): NewMessage[] | Message[] | undefined | null | Promise<NewMessage[] | Message[] | undefined | null>;
  /** Called once, when the run is over, with what history has of the turn (`persist` of a tool applies). After a run that failed or was
   *  cancelled, `error` is set; `input` and `output` are then empty, unless history keeps the turn (`onStop: "keep"`, or a conversation that had
   *  begun to answer). If the run is resumed, the whole turn follows. Messages of `append`, `answer`, `external` and `discard` are not passed.
   *  If it throws, or the run is cancelled or disposed before it returns, the warning is `callback_failed`. */
  store?(context: { session: Session; input: MessageWithCalls[]; output: MessageWithCalls[]; error?: RethreadError }): void | Promise<void>;
  filterProvided?(messages: (NewMessage | Message)[]): (NewMessage | Message)[];
  /** Called for the input and for the output. */
  filterStored?(messages: MessageWithCalls[]): MessageWithCalls[];
}
