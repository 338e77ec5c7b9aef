// Types of the platform, as the project declares them: the library "dom", @types/node or @cloudflare/workers-types.
// Where nothing declares one, the least that is used of it, so that these declarations compile in each project.

/** The type of the instances of a global class, or `Else`. */
type InstanceOf<Name extends string, Else> = typeof globalThis extends Record<Name, { prototype: infer T }> ? T : Else;

export type PlatformAbortSignal = InstanceOf<"AbortSignal", { readonly aborted: boolean; readonly reason: unknown }>;
export type PlatformBlob = InstanceOf<
  "Blob",
  { readonly size: number; readonly type: string; arrayBuffer(): Promise<ArrayBuffer> }
>;
export type PlatformURL = InstanceOf<"URL", { readonly href: string }>;
export type PlatformReadableStream = InstanceOf<"ReadableStream", { getReader(): any }>;
export type PlatformRequest = InstanceOf<"Request", { readonly url: string; readonly method: string }>;
export type PlatformResponse = InstanceOf<"Response", { readonly status: number; json(): Promise<any> }>;
export type PlatformFetch = typeof globalThis extends { fetch: infer T } ? T : (input: any, init?: any) => Promise<any>;
export type PlatformCryptoKey = InstanceOf<
  "CryptoKey",
  { readonly type: string; readonly extractable: boolean; readonly algorithm: object; readonly usages: string[] }
>;
/** A compiled `WebAssembly.Module`. */
export type WasmModule = typeof globalThis extends { WebAssembly: { Module: { prototype: infer T } } } ? T : object;
/** The wasm, or where it is. */
export type WasmSource = ArrayBuffer | ArrayBufferView<ArrayBuffer> | WasmModule | PlatformURL | string;
