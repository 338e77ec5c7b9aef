// Which part of the stored history the model receives, and the request that is built from it.

import type { Bytes, Dialect, Finding, JsonObject, PrefixChange, WireBody, WireInput } from "./formats.js";
import type { InputPart, Message } from "./message.js";
import type { Tools } from "./tool.js";

/** Each member is taken from the first level that sets it: request, append (`freshness` only), tool, session, channel,
 *  store, built-in. Results of the running turn are never stale. */
export interface ReplayPolicy {
  /** Milliseconds that a tool result stays replayable after it finished; a result of exactly this age is replayed. 0:
   *  never. Infinity: always. `null` or absent: inherited. Built-in: 300000. A negative number or NaN is
   *  `config_invalid`. */
  freshness?: number | null;
  /** By tool name. Takes precedence over `freshness` of the same level. */
  toolFreshness?: Record<string, number | null>;
  errorFreshness?: number | null;
  /** What becomes of a stale result. "omit" (default): its call is left out, too. "placeholder": a note says that it
   *  expired. A late result of an asynchronous tool has the note always, since the model was told to wait for it. */
  onStale?: "omit" | "placeholder";
  /** What is omitted if one call is stale: that call, its round, or all rounds of the turn. */
  staleUnit?: "call" | "round" | "turn";
  /** For results that are lists of objects with a `source_number`. A source that the turn's answer does not cite as
   *  `[source3]` is omitted from replay ("replay"), or from storage too ("store", when a run or an `append` is stored).
   *  Default "off". */
  citations?: "off" | "replay" | "store";
  danglingCalls?: "synthesize" | "omit";
  /** Reasoning that a provider binds to what preceded it (Claude Opus 5.5, GPT-6.2), where that is not the same any
   *  more: "omit" (default) leaves it out, with the finding `reasoning_unbound`; "send" sends it. "drop_block" sends it
   *  and lets the service drop it, which Anthropic can for the models that bind it: the request has
   *  `thinking.block_binding` and the beta header, as all later requests of the session for which no level says
   *  otherwise: stored with the history of a run, and with the next append after a `render`. Where that is not
   *  possible, as "omit": other dialects and models, thinking that is turned off, and `params` with a
   *  `thinking.block_binding.prefix_mismatch_behavior` of their own, which stays. */
  unboundReasoning?: "omit" | "drop_block" | "send";
  /** Groups of hosts that serve the same models, such as `[["api.anthropic.com", "gateway.example.com"]]`. Reasoning,
   *  signatures and encrypted content that one of them made go back to each of them; to any other host they are left
   *  out, with the finding `reasoning_foreign` (in another dialect `unsupported_part`). OpenAI with Azure's OpenAI, and
   *  Anthropic with Bedrock, Vertex and Azure's Foundry, are groups of their own accord; a group that has one of them
   *  has all. A host is named as in the URL, with its port if that is not the scheme's own; without a port, each port
   *  of it counts. Anything else is `config_invalid`. */
  sameMakers?: string[][];
  /** When freshness, citations and reducers change what earlier requests of the session contained. "always" (default):
   *  with each run and each `render`. "at_cuts": at a `PrefixCut` only, so that each request extends the one before and
   *  the provider's cache of it is used. Until then **a result may be older than its window**, by as long as there is
   *  no cut; what was not sent yet is judged when it is sent first. Reducers wait for a cut, except that a
   *  `token_budget` makes one. */
  changes?: "always" | "at_cuts";
  /** Shorten a long history for a request, in this order, after all of the above. Stored history is not changed; a
   *  round (calls and results) is kept or omitted as a whole, the newest user message and all system messages are kept,
   *  and the report names every omission ("reduced"). The list of a level replaces that of the level above. If a
   *  callback throws, its reducer is skipped and the report has a finding ("callback_failed"). */
  reducers?: Reducer[];
}
export type Reducer =
  /** Keeps the newest `count` messages; a round with its results counts as one. `keepTools: false` omits the calls of
   *  earlier turns, `systems: "first"` all system messages but the first. */
  | { type: "message_count"; count: number; keepTools?: boolean; systems?: "all" | "first" }
  /** Cuts results longer than 1000 bytes to that length, oldest first; then omits the oldest turns; then the oldest
   *  rounds of the running turn. `count` receives the texts of one render in one batch (each message with the names and
   *  arguments of its calls, and each result). Its return values are cached by function, so pass the same function each
   *  time. Without `count` a token is four bytes. An image or a file counts 1000 tokens. Instructions and tool
   *  definitions of the request are not counted. */
  | { type: "token_budget"; tokens: number; count?: (texts: string[]) => number[] | Promise<number[]> }
  /** Keeps the newest turns, whole. */
  | { type: "sliding_turns"; turns: number }
  /** Cuts results of all but the newest turns to `maxBytes`, including a note that says so. */
  | { type: "tool_results"; keepNewestTurns: number; maxBytes: number }
  /** Once there are more than `target + threshold` messages after the last summary, replaces all but the newest
   *  `target`, together with the last summary, by a new summary. `summarize` receives a body of the same provider
   *  (without streaming) whose last message asks for the summary, and returns the summary's text. Each summary is
   *  requested once and kept while the session is open. */
  | { type: "summarize"; target: number; threshold?: number; summarize: (body: Bytes) => Promise<string> }
  /** Returns the messages to send: unchanged, with other parts, or new. The calls of a message are sent with it; a
   *  message that is returned without its `tool_call` parts is sent without its calls. */
  | { type: "custom"; reduce: (messages: Message[]) => Message[] | Promise<Message[]> };

export interface RenderRequest {
  dialect: Dialect;
  /** Merged into the body: model, tools, temperature, stream, ... Members that the session writes itself (`messages`,
   *  `input`, `contents`) are `config_invalid`. */
  params?: JsonObject;
  input?: string | InputPart[] | WireInput;
  instructions?: string;
  tools?: Tools;
  /** One of `branches()`, also the other side of a conflict: the next request of that branch, which is read first, and
   *  what is shown stays. Nothing is kept of the request, so `stablePrefix` is 0. Default the branch that is shown.
   *  `not_found` if there is none of this name. */
  branch?: string;
  replay?: ReplayPolicy;
}
export interface Rendered<Body extends object = WireBody> {
  /** The body as UTF-8 JSON: a copy that the caller owns, for `fetch`. */
  body: Bytes;
  /** The body as an object, for a provider's SDK or a loop of your own: parsed when it is read first, the same object
   *  each time, and the caller's own. Numbers are those of `JSON.parse`, which rounds integers above 2^53; `body` has
   *  them as they are. */
  readonly json: Body;
  report: Finding[];
  /** The highest source number in the tool results of the session, or -1; number new sources from the next one.
   *  Includes results that are too old to be replayed, were omitted from storage, or can no longer be read. */
  maxSourceNumber: number;
  /** The sources by number: each stored source with a string `content`. If a number occurs twice, the later source. */
  sources: Record<number, unknown>;
  /** The number of leading messages that are byte-identical to the last body of this dialect that this session object
   *  has rendered. */
  stablePrefix: number;
  prefix: PrefixReuse;
  /** Headers that the request needs, with your own values of the same list (`anthropic-beta`): with "drop_block", for a
   *  thread, and for a compaction that Anthropic made. */
  headers?: Record<string, string>;
}
/** The body of a render by its dialect. The items of the lists are the provider's, of types that its SDK has. */
export type RenderedBody<D extends Dialect> = WireBody & RenderedBodies[D];
interface RenderedBodies {
  "openai-chat": { messages: any[]; tools?: any[] };
  "openai-responses": { input: any[]; instructions?: string; tools?: any[] };
  anthropic: { messages: any[]; system?: any; tools?: any[] };
  gemini: { contents: any[]; systemInstruction?: any; tools?: any[] };
  mistral: { messages: any[]; tools?: any[] };
  bedrock: { messages: any[]; system?: any[]; toolConfig?: any };
  "mistral-conversations": { inputs: any[]; instructions?: string; tools?: any[]; completion_args?: any };
  "gemini-interactions": {
    input: any[];
    system_instruction?: string;
    tools?: any[];
    generation_config?: any;
  };
}
/** How much of the last body of this session object and dialect a request repeats, so that the provider may have it in
 *  its cache. What other tabs and processes sent does not count: the first body after opening repeats nothing
 *  (`reusedBytes` 0, `changedBy` null). In runs with `inputFilter`, and in runs of a session in which a provider
 *  refused something that is not sent again, both bodies are as they were composed: before the filter, with what is
 *  left out then. */
export interface PrefixReuse {
  /** The number of bytes of the leading messages that are those of the last body; 0 if the instructions, the tools or
   *  the model changed. */
  reusedBytes: number;
  /** What changed the rest of the last body; null if this one only adds to it, or is the first. */
  changedBy: PrefixChange | null;
  /** With `changes: "at_cuts"`, why freshness, citations and reducers could change what was sent before; null if they
   *  could not. Also null where there is nothing to repeat: for the first request, for the one after a request that was
   *  not sent with this option, or had a view of its own (a handoff), and for one of a run that another process has
   *  begun. */
  cut: PrefixCut | null;
}
/** Why what was sent before was decided anew: the last request is longer ago than the provider keeps its cache (five
 *  minutes; an hour or a day if the `params` of the last request had `cache_control.ttl` or `prompt_cache_retention`
 *  for that), another provider (dialect or host), other model, instructions or tools, a compaction, a `token_budget`
 *  that would be exceeded, or messages of the last request that are gone. "not_stored": what the last request contained
 *  is not known: another process has sent it and it takes over 32 KB (many results that are kept and omitted by turns),
 *  or a reducer's messages may have what `persist` keeps from the store. Idle time is measured between the clocks of
 *  the processes; which request was the last one is the order of their appends, whatever their clocks say. */
export type PrefixCut =
  | "idle"
  | "provider"
  | "model"
  | "instructions"
  | "tools"
  | "compaction"
  | "budget"
  | "not_stored"
  | "history";
