// A WebAssembly program: its glue and its compiled module. The entries set where the module comes from.

import { RethreadError } from './error.js';
import { memberOf, reasonOf } from './untrusted-value.js';

/** What to do if the file is not where the package expects it. */
const ADVICE =
  'A bundler may have moved the module away from its file: with Vite set `optimizeDeps: { exclude: ["rethread"] }`,' +
  ' with others import `rethread/base64`, which needs no file, or pass the address of `rethread/rethread.wasm` (of `rethread/formats.wasm` for the formats alone) to init(),' +
  ' and that of `rethread/stores.wasm` as `stores` in its second argument';

const NO_SOURCE =
  'rethread/slim contains no wasm: call init(source) first, with the bytes, a WebAssembly.Module or a URL';

/** What to do on a platform that runs no wasm at all. */
const NO_WEBASSEMBLY =
  'this platform has no WebAssembly, which rethread needs. Hermes, the engine of React Native, has none: keep the' +
  ' sessions on a server or in a WebView (docs/bundlers.md). Safari has none in Lockdown Mode, and Node with `--jitless`:' +
  ' turn that off here';

/** What to do if the package is a link to a folder outside of a project that Vite serves. */
const OUTSIDE =
  'Vite serves no file outside of the project: install the package with `npm install --install-links`, or add its folder to `server.fs.allow`';

export class Program {
  createGlue;
  #noSource;
  /** The source that the entry sets, and how to find its other address.
   *  @type {{ source: URL | (() => Promise<ArrayBuffer>), findMoved: () => Promise<URL | null> } | null} */
  #preset = null;
  /** @type {WebAssembly.Module | null} */
  #compiled = null;
  /** @type {Promise<WebAssembly.Module> | null} */
  #loading = null;

  /** `createGlue` is exported by the generated glue (.ci/glue.mjs). `noSource` says what to do where nothing sets a
   *  source. */
  constructor(createGlue, noSource = NO_SOURCE) {
    this.createGlue = createGlue;
    this.#noSource = noSource;
  }

  /** Sets the default source of `load()`, an address or a function that returns the bytes. If an address answers with no
   *  wasm, `findMoved` is asked for another one (or null).
   *  @param {URL | (() => Promise<ArrayBuffer>)} source
   *  @param {() => Promise<URL | null>} findMoved */
  setSource(source, findMoved = async () => null) {
    this.#preset = { source, findMoved };
  }

  /** Sets the module synchronously, on platforms where the entry has the wasm. Throws `not_initialized`. */
  initNow(module) {
    wantWebAssembly();
    this.#compiled ??= module instanceof WebAssembly.Module ? module : new WebAssembly.Module(module);
  }

  /** Loads the module. Safe to call any number of times; the first call that succeeds decides the source. Throws
   *  `not_initialized`. */
  async load(source) {
    if (this.#compiled) return;
    wantWebAssembly();
    this.#loading ??= this.#compile(source);
    try {
      this.#compiled = await this.#loading;
    } catch (error) {
      this.#loading = null; // a page that was offline may try again
      throw notLoaded(error, source ?? this.#preset?.source);
    }
  }

  async #compile(source) {
    if (source) return compile(source);
    if (this.#preset) return compilePreset(this.#preset);
    throw new RethreadError('not_initialized', this.#noSource);
  }

  /** The compiled module. Throws `not_initialized` before it is loaded. */
  get module() {
    if (!this.#compiled) {
      throw new RethreadError(
        'not_initialized',
        'the wasm is not loaded yet: `await init()` first, or `await open()`, which does it',
      );
    }
    return this.#compiled;
  }
}

function wantWebAssembly() {
  if (typeof WebAssembly !== 'object') throw new RethreadError('not_initialized', NO_WEBASSEMBLY);
}

const isRequest = (source) => typeof Request === 'function' && source instanceof Request;
const isAddress = (source) => typeof source === 'string' || source instanceof URL || isRequest(source);

/** The error of a wasm that could not be loaded. One that says what to do stays as it is. */
export function notLoaded(error, source) {
  if (error instanceof RethreadError) return error;
  const from = isAddress(source) ? ` from ${isRequest(source) ? source.url : source}` : '';
  // Of a request that fails, Node has the reason in the cause.
  const cause = memberOf(error, 'cause');
  const reason = cause ? `${reasonOf(error)}: ${reasonOf(cause)}` : reasonOf(error);
  return new RethreadError(
    'not_initialized',
    `the wasm could not be loaded${from}: ${reason}. Check the connection and the file, and try again. ${ADVICE}`,
    {},
    { cause: error },
  );
}

async function compile(source) {
  const loaded = await (isAddress(source) ? fetch(source) : source);
  if (loaded instanceof WebAssembly.Module) return loaded;
  if (typeof Response === 'function' && loaded instanceof Response) return compileResponse(loaded);
  return WebAssembly.compile(loaded);
}

/** Compiles the file of the package, wherever a bundler has put it. */
async function compilePreset({ source, findMoved }) {
  try {
    return await compile(typeof source === 'function' ? source() : source);
  } catch (error) {
    const moved = error.details?.noWasm ? await findMoved() : null;
    if (!moved) throw error;
    return compile(moved);
  }
}

async function compileResponse(response) {
  const { ok, status, statusText, url } = response;
  if (!ok) {
    const advice = status === 403 && url.includes('/@fs/') ? OUTSIDE : ADVICE;
    throw new RethreadError(
      'not_initialized',
      `the wasm could not be fetched: ${status} ${statusText} for ${url}. ${advice}`,
      { status, url, noWasm: true },
    );
  }
  const type = response.headers.get('content-type')?.split(';')[0].trim();
  // With another content type the file is compiled after the download instead of during it.
  if (type === 'application/wasm' && WebAssembly.compileStreaming) return WebAssembly.compileStreaming(response);
  const bytes = await response.arrayBuffer();
  if (!isWasm(bytes)) {
    throw new RethreadError(
      'not_initialized',
      `the wasm could not be loaded: ${url} is no wasm but ${type ?? 'something else'}. ${ADVICE}`,
      { url, noWasm: true },
    );
  }
  return WebAssembly.compile(bytes);
}

const isWasm = (bytes) => String.fromCharCode(...new Uint8Array(bytes, 0, Math.min(4, bytes.byteLength))) === '\0asm';
