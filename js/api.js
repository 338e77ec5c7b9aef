// What every entry exports: the wasm's classes, with what only JavaScript can say added to them.

import {
  Rethread, Run, Session, SessionView, StateBag, StreamAssembler as WasmAssembler,
  convert as wasmConvert, openRethread, repair as wasmRepair, setErrorClass, validate as wasmValidate,
} from '../dist/rethread.js';
import { RethreadError } from './error.js';
import { bytes, guardAll, openOptions, options as optionsGiven, text } from './guard.js';
import { plainInput, plainMessages } from './input.js';
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
  openOptions(options);
  return openRethread(options);
}

export function validate(body, dialect) {
  ready();
  text('the dialect')(dialect);
  return wasmValidate(body, dialect);
}

export function repair(body, dialect, options = {}) {
  ready();
  text('the dialect')(dialect);
  optionsGiven(options);
  return wasmRepair(body, dialect, options);
}

export function convert(body, from, to, options = {}) {
  ready();
  text('the dialect that the body has')(from);
  text('the dialect that it gets')(to);
  optionsGiven(options);
  return wasmConvert(body, from, to, options);
}

/** A class of its own, so that making one before the wasm is there fails with our error. */
export class StreamAssembler {
  #inner;

  constructor(dialect) {
    ready();
    text('the dialect')(dialect);
    this.#inner = new WasmAssembler(dialect);
  }

  push(piece) {
    bytes('what is pushed')(piece);
    return this.#alive().push(piece);
  }

  finish() {
    return this.#alive().finish();
  }

  #alive() {
    if (!this.#inner) throw new RethreadError('closed', 'this assembler was disposed; make a new one');
    return this.#inner;
  }

  [Symbol.dispose ?? Symbol.for('Symbol.dispose')]() {
    this.#inner?.free();
    this.#inner = null;
  }
}

// Writes of one session wait for each other: they are stored in the order of the calls, each joined to what the one before left.
const tails = new WeakMap();
const { session } = Rethread.prototype;
Rethread.prototype.session = async function (id, options) {
  const opened = await session.call(this, id, options);
  if (!tails.has(this)) tails.set(this, new Map());
  const own = tails.get(this);
  if (!own.has(id)) own.set(id, { tail: Promise.resolve() });
  tails.set(opened, own.get(id));
  return opened;
};

/** A body as it is now: who changes it while its turn has not come changes nothing. */
function still(body) {
  if (body instanceof Uint8Array) return body.slice();
  try {
    return typeof body === 'object' && body !== null && !Array.isArray(body) ? JSON.stringify(body) : body;
  } catch {
    return body; // what JSON cannot say is refused where it is read
  }
}

for (const method of ['append', 'update', 'save']) {
  const plain = Session.prototype[method];
  Session.prototype[method] = function (...given) {
    const neutral = method === 'append' && typeof given[1] !== 'string';
    if (method === 'append') given[0] = neutral ? plainMessages(given[0]) : still(given[0]);
    const own = tails.get(this);
    const done = own.tail.then(async () => plain.call(this, await given[0], ...given.slice(1)));
    // Refused input is the caller's to see, when its turn comes.
    if (neutral) given[0].catch(() => {});
    own.tail = done.catch(() => {});
    return done;
  };
}

for (const method of ['run', 'render']) {
  const plain = Session.prototype[method];
  Session.prototype[method] = async function (request) {
    return plain.call(this, await plainInput(request));
  };
}

guardAll({ Rethread, Run, Session, SessionView, StateBag });

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
