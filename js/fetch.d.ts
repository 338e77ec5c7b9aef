import type { PlatformFetch } from "./types/platform.js";
import type { Dialect, Finding, RepairOptions, WireBody } from "./types.js";

export { RethreadError } from "./types.js";

/** The repair of one request. */
export interface RepairInfo {
  /** The request's URL without keys in the query, user name and password. */
  url: string;
  dialect: Dialect;
  /** The problems of the body, with the action taken on each. */
  report: Finding[];
}

export interface RepairingOptions extends RepairOptions {
  /** Sends the requests. Default: `globalThis.fetch` when `repairing` is called. */
  fetch?: PlatformFetch;
  /** The wire format, if the URL does not show it (a gateway), or a function that returns it: null sends the request as
   *  it is, undefined uses the dialect of the URL. URLs of other services (token counts, embeddings, batches, files)
   *  are never inspected. */
  dialect?: Dialect | ((request: { url: string; body: WireBody }) => Dialect | null | undefined);
  /** Called for each request that is repaired (in mode "report": would be), before it is sent; again at each retry of
   *  the SDK. Also for one that cannot be repaired: it is in the format of another library or dialect (each finding has
   *  the action "kept"), nothing would remain of it, or it lacks reasoning that its model demands
   *  (`missing_reasoning`), which no repair can add. It is sent as it is, except in mode "reject". */
  onRepair?: (info: RepairInfo) => void;
  /** "repair" (default) sends the repaired body. "report" sends the body as it is and calls `onRepair` with what a
   *  repair would do. "reject" sends nothing and rejects with `invalid_input`; `details` is the `RepairInfo`. The SDKs
   *  of OpenAI and Anthropic take a rejection for a failed connection, repeat it, and throw an `APIConnectionError`
   *  with it as `cause`: pass them `maxRetries: 0`. */
  mode?: "repair" | "report" | "reject";
  /** True (default): if the provider answers 400 with an error that is known, exactly that is repaired and the request
   *  is sent once more; `onRepair` gets a report that begins with the finding `healed`. What was refused, such as a
   *  signature, is remembered in memory (the newest 1,000) and not sent to that origin again. Any other answer is
   *  returned unchanged. In mode "repair" only. */
  heal?: boolean;
}

/** A `fetch`. The second form takes the requests, and gives the responses, of other implementations than the
 *  platform's: the types of some SDKs (openai 4) name those of node-fetch, although the SDK takes any. */
export type RepairingFetch = PlatformFetch & ((input: any, init?: any) => Promise<any>);

/** Returns a `fetch` that repairs conversations before it sends them, for any SDK that takes one: `new OpenAI({ fetch:
 *  repairing() })`. It inspects POST requests with a JSON body to a provider's chat URL; all others, and valid bodies,
 *  pass byte for byte. Bodies that are signed (AWS) or larger than 32 MB are sent as they are, and so is one with more
 *  errors than 2,000 plus one per 96 bytes (at most 20,000): it is reported to `onRepair` as `too_many_edits` alone. So
 *  are requests that it cannot read: it fails no request, except in mode "reject". Throws `config_invalid` for wrong or
 *  unknown options. */
export declare function repairing(options?: RepairingOptions): RepairingFetch;

/** A middleware of the AWS SDK (`BuildMiddleware`). */
export type RepairingMiddleware = (next: (args: any) => Promise<any>, context?: any) => (args: any) => Promise<any>;

/** Returns a middleware that repairs conversations in a client of the AWS SDK, as `repairing()` does in a `fetch`, but
 *  before the request is signed: `client.middlewareStack.add(repairingMiddleware(), { step: "build" })`. A request that
 *  the service answers with a known error (status 400) is repaired and sent once more. The option `fetch` has no
 *  effect. Throws `config_invalid` for wrong or unknown options. */
export declare function repairingMiddleware(options?: Omit<RepairingOptions, "fetch">): RepairingMiddleware;
