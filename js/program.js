// A WebAssembly program: its glue and its compiled module. The entries set where the module comes from.

import { RethreadError } from './error.js';

export class Program {
  createGlue;
  #fallback = null;
  /** @type {WebAssembly.Module | null} */
  #compiled = null;
  /** @type {Promise<WebAssembly.Module> | null} */
  #loading = null;

  /** `createGlue` is exported by the generated glue (.ci/glue.mjs). */
  constructor(createGlue) {
    this.createGlue = createGlue;
  }

  /** Sets the default source of `load()`. */
  setSource(source) {
    this.#fallback = source;
  }

  /** Sets the module synchronously, on platforms where the entry has the wasm. */
  initNow(module) {
    this.#compiled ??= module instanceof WebAssembly.Module ? module : new WebAssembly.Module(module);
  }

  /** Loads the module. Safe to call any number of times; the first call decides the source. */
  async load(source) {
    if (this.#compiled) return;
    this.#loading ??= compile(source ?? this.#fallback);
    try {
      this.#compiled = await this.#loading;
    } catch (error) {
      this.#loading = null; // a page that was offline may try again
      throw error;
    }
  }

  /** The compiled module. Throws `not_initialized` before it is loaded. */
  get module() {
    if (!this.#compiled) {
      throw new RethreadError('not_initialized', 'the wasm is not loaded yet: `await init()` first, or `await open()`, which does it');
    }
    return this.#compiled;
  }
}

async function compile(source) {
  if (!source) {
    throw new RethreadError('not_initialized', 'rethread/slim contains no wasm: call init(source) first, with the bytes, a WebAssembly.Module or a URL');
  }
  const isUrl = typeof source === 'string' || source instanceof URL || (typeof Request === 'function' && source instanceof Request);
  const loaded = await (isUrl ? fetch(source) : source);
  if (loaded instanceof WebAssembly.Module) return loaded;
  if (typeof Response === 'function' && loaded instanceof Response) return compileResponse(loaded);
  return WebAssembly.compile(loaded);
}

async function compileResponse(response) {
  if (!response.ok) {
    throw new RethreadError('not_initialized', `the wasm could not be fetched: ${response.status} ${response.statusText} for ${response.url}`, { status: response.status });
  }
  // With another content type the file is compiled after the download instead of during it.
  const isWasm = response.headers.get('content-type')?.split(';')[0].trim() === 'application/wasm';
  if (isWasm && WebAssembly.compileStreaming) return WebAssembly.compileStreaming(response);
  return WebAssembly.compile(await response.arrayBuffer());
}
