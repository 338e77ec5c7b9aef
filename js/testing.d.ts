// The types of `rethread/testing`: the conformance suite, for whoever writes a store.
import type { OpenOptions } from "./types.js";
import type { WasmSource } from "./types/platform.js";

type Store = Exclude<OpenOptions["store"], string | undefined>;

/** A case of the suite, for any test runner: `for (const { name, run } of conformance(openStore)) test(name, run)`. */
export interface ConformanceCase {
  name: string;
  /** Rejects with an error whose message says what the store did wrong. */
  run(): Promise<void>;
}

/** The cases that every store must pass. `openStore` returns what `open` takes as `store`, or a promise of it. It is
 *  called twice in each case of a durable store, and both must show the same data; return the same object if a second
 *  handle is not possible. Every case uses its own sessions, whose ids differ from run to run. */
export function conformance(openStore: () => Store | Promise<Store>): ConformanceCase[];

/** Loads the wasm. Needed in browsers only, before `conformance`. */
export function init(source?: WasmSource): Promise<void>;
