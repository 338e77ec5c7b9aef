// The bytes of a response on their way to the run. An error that quotes a credential loses it; an answer stays as it came.

import { REDACTED } from './credentials.js';
import { isBytes } from './foreign.js';

const LF = 10;
const CR = 13;
const OPENING_BRACES = [0x7b, 0x5b];
/** White space, and the bytes of a byte order mark. */
const NO_CONTENT = new Set([LF, CR, 9, 32, 0xef, 0xbb, 0xbf]);
const MARK = new TextEncoder().encode(REDACTED);
const NOTHING = new Uint8Array(0);

/**
 * Passes bytes on at once, as long as they hold no credential. From a credential on they wait until the event of the stream, or
 * the body, is whole; then `isError` says what it is. It is asked with the credential removed already.
 */
export class ResponseFilter {
  #credentials;
  #isError;
  /** The body is one value, not a stream of events: it is no success, no stream, or begins as JSON. */
  #isOne;
  #hasBegun = false;
  /** The event (or the body) that is coming in, from its first byte. */
  #held = new Uint8Array(1024);
  #length = 0;
  /** How much of it the run has, and how much was searched. */
  #passed = 0;
  #searched = 0;
  /** Where credentials stand in it. */
  #found = [];
  #lineIsEmpty = true;
  #isAfterCr = false;

  constructor({ credentials, isError, isOne }) {
    this.#credentials = credentials;
    this.#isError = isError;
    this.#isOne = isOne;
  }

  /** Takes the next bytes; returns those that the run may have now. */
  push(bytes) {
    // What is no bytes is for the run to refuse.
    if (this.#credentials.isEmpty || !isBytes(bytes) || bytes.length === 0) return bytes;
    this.#look(bytes);
    return this.#isClean(bytes) ? this.#passWhole(bytes) : this.#passParts(bytes);
  }

  /** The body has ended; returns what waited until then. */
  end() {
    return this.#close();
  }

  /** What begins as JSON is one value, or a list of them. */
  #look(bytes) {
    if (this.#hasBegun) return;
    const first = bytes.find((byte) => !NO_CONTENT.has(byte));
    this.#hasBegun = first !== undefined;
    this.#isOne ||= OPENING_BRACES.includes(first);
  }

  #isClean(bytes) {
    return this.#searched === this.#length && this.#found.length === 0 && this.#credentials.find(bytes, bytes.length, 0, false) === null;
  }

  /** Bytes without a credential: what of them belongs to an event that goes on is kept for `isError`. */
  #passWhole(bytes) {
    let from = 0;
    for (let end = this.#eventEnd(bytes, 0); end > 0; end = this.#eventEnd(bytes, end)) {
      from = end;
      this.#reset();
    }
    this.#hold(bytes.subarray(from));
    this.#passed = this.#length;
    this.#searched = this.#length;
    return bytes;
  }

  #passParts(bytes) {
    const out = [];
    let from = 0;
    for (let end = this.#eventEnd(bytes, 0); end > 0; end = this.#eventEnd(bytes, end)) {
      this.#hold(bytes.subarray(from, end));
      out.push(this.#close());
      from = end;
    }
    this.#hold(bytes.subarray(from));
    const cut = this.#search(false);
    const safe = this.#found[0]?.at ?? cut;
    out.push(this.#held.slice(this.#passed, safe));
    this.#passed = safe;
    return joined(out);
  }

  /** Where the event ends, behind its blank line; 0 if these bytes do not end it. */
  #eventEnd(bytes, from) {
    for (let at = from; !this.#isOne && at < bytes.length; at += 1) {
      const byte = bytes[at];
      const isLineEnd = byte === CR || (byte === LF && !this.#isAfterCr);
      const isBlank = isLineEnd && this.#lineIsEmpty;
      if (byte !== LF || !this.#isAfterCr) this.#lineIsEmpty = isLineEnd;
      this.#isAfterCr = byte === CR;
      if (isBlank) return at + 1;
    }
    return 0;
  }

  #hold(bytes) {
    const length = this.#length + bytes.length;
    if (length > this.#held.length) {
      const larger = new Uint8Array(Math.max(length, this.#held.length * 2));
      larger.set(this.#held.subarray(0, this.#length));
      this.#held = larger;
    }
    this.#held.set(bytes, this.#length);
    this.#length = length;
  }

  /** Searches what was not searched yet; returns how far no credential can begin any more. */
  #search(isWhole) {
    for (;;) {
      const hit = this.#credentials.find(this.#held, this.#length, this.#searched, isWhole);
      if (!hit || hit.end < 0) {
        this.#searched = hit?.at ?? this.#length;
        return this.#searched;
      }
      this.#found.push(hit);
      this.#searched = hit.end;
    }
  }

  /** The event is whole: returns the rest of it, as it came or without credentials. */
  #close() {
    this.#search(true);
    let rest = this.#held.slice(this.#passed, this.#length);
    if (this.#found.length > 0) {
      const redacted = this.#redacted();
      if (this.#isError(redacted)) rest = redacted.subarray(this.#passed);
    }
    this.#reset();
    return rest;
  }

  #redacted() {
    const pieces = [];
    let from = 0;
    for (const { at, end } of this.#found) {
      pieces.push(this.#held.subarray(from, at), MARK);
      from = end;
    }
    pieces.push(this.#held.subarray(from, this.#length));
    return joined(pieces);
  }

  #reset() {
    this.#length = 0;
    this.#passed = 0;
    this.#searched = 0;
    this.#found = [];
  }
}

function joined(pieces) {
  const filled = pieces.filter((piece) => piece.length > 0);
  if (filled.length === 0) return NOTHING;
  const out = new Uint8Array(filled.reduce((sum, piece) => sum + piece.length, 0));
  let at = 0;
  for (const piece of filled) {
    out.set(piece, at);
    at += piece.length;
  }
  return out;
}
