import type { Dialect, Finding, RepairOptions, WireBody } from "./types.js";

export { RethreadError } from "./types.js";

/** What was found wrong with a request, and done about it. */
export interface RepairInfo {
  /** The address, without keys in its query and without user and password. */
  url: string;
  dialect: Dialect;
  report: Finding[];
}

export interface RepairingOptions extends RepairOptions {
  /** What sends the requests. Default: the global `fetch` at the time of the call. */
  fetch?: typeof globalThis.fetch;
  /** The dialect where the address does not say it (a gateway), or a function that answers it: null leaves that request alone, undefined
   *  leaves it to the address. Addresses of other services (token counts, embeddings, batches, files) are left alone whatever this says. */
  dialect?: Dialect | ((request: { url: string; body: WireBody }) => Dialect | null | undefined);
  /** Called when something was repaired, before the request is sent: at each attempt, if the SDK tries again. */
  onRepair?: (info: RepairInfo) => void;
  /** "repair" (default), "report": sends the body as it is and calls `onRepair` with what a repair would do, "reject": rejects with
   *  `invalid_input` whose `details` are the `RepairInfo`. */
  mode?: "repair" | "report" | "reject";
}

/** A `fetch` that repairs what it sends, for any SDK that takes one: `new OpenAI({ fetch: repairing() })`. It looks at POST requests
 *  with a JSON body to a provider's chat address; everything else, and every valid body, passes byte for byte. Bodies whose bytes are
 *  signed (AWS) or above 32 MB are sent as they are. Never the reason that a request fails: what it cannot read it sends as it is.
 *  Wrong options throw `config_invalid` at once. */
export declare function repairing(options?: RepairingOptions): typeof globalThis.fetch;
