// What every entry exports: the wasm's classes, with what only JavaScript can say added to them.

import {
  Rethread, Run, Session, SessionView, StateBag, StreamAssembler as WasmAssembler,
  openRethread, repair as wasmRepair, setErrorClass, validate as wasmValidate,
} from '../dist/rethread.js';
import { RethreadError } from './error.js';
import { plainInput } from './input.js';
import { init as load, isReady } from './load.js';

export { RethreadError };

let told = false;

/** Errors are made of our class from the first call on. */
function ready() {
  if (!isReady()) {
    throw new RethreadError('not_initialized', 'the wasm is not loaded yet: `await init()` first, or `await open()`, which does it');
  }
  if (!told) setErrorClass(RethreadError);
  told = true;
}

export async function init(source) {
  await load(source);
  ready();
}

export async function open(options = {}) {
  await init();
  return openRethread(options);
}

export function validate(body, dialect) {
  ready();
  return wasmValidate(body, dialect);
}

export function repair(body, dialect, options = {}) {
  ready();
  return wasmRepair(body, dialect, options);
}

/** A class of its own, so that making one before the wasm is there fails with our error. */
export class StreamAssembler {
  #inner;

  constructor(dialect) {
    ready();
    this.#inner = new WasmAssembler(dialect);
  }

  push(bytes) {
    return this.#inner.push(bytes);
  }

  finish() {
    return this.#inner.finish();
  }

  [Symbol.dispose ?? Symbol.for('Symbol.dispose')]() {
    this.#inner.free();
  }
}

// Half of a surrogate pair has no UTF-8: two such ids would meet in one.
const { session } = Rethread.prototype;
Rethread.prototype.session = function (id, options = {}) {
  if (typeof id !== 'string' || id.isWellFormed?.() === false) {
    return Promise.reject(new RethreadError('invalid_input', 'a session id is a string of whole characters (no half of a surrogate pair)'));
  }
  return session.call(this, id, options);
};

for (const method of ['run', 'render']) {
  const plain = Session.prototype[method];
  Session.prototype[method] = async function (request) {
    return plain.call(this, await plainInput(request));
  };
}

const asyncDispose = Symbol.asyncDispose ?? Symbol.for('Symbol.asyncDispose');
Rethread.prototype[asyncDispose] = function () {
  return this.close();
};

// A view is handed to a UI store as bare functions, so its methods keep their object; and there is one a session.
const views = new WeakMap();
const { view } = Session.prototype;
Session.prototype.view = function () {
  if (!views.has(this)) {
    const own = view.call(this);
    for (const method of ['getSnapshot', 'subscribe', 'older']) own[method] = SessionView.prototype[method].bind(own);
    views.set(this, own);
  }
  return views.get(this);
};

export { Rethread, Run, Session, SessionView, StateBag };
