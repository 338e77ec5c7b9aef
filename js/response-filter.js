// Removes credentials from errors in the bytes of a response; answers pass unchanged.

import { REDACTED } from './credentials.js';
import { isBytes } from './untrusted-value.js';

const LF = 10;
const CR = 13;
const OPENING_BRACES = [0x7b, 0x5b];
/** White space, and the bytes of a byte order mark. */
const WHITE_SPACE = new Set([LF, CR, 9, 32, 0xef, 0xbb, 0xbf]);
const REDACTED_BYTES = new TextEncoder().encode(REDACTED);
const NOTHING = new Uint8Array(0);

/**
 * Passes bytes on immediately while they contain no credential. Bytes from a credential on are held until the stream
 * event or the body is complete; then `isError`, called with the credential removed, decides whether to pass the
 * redacted or the original bytes.
 */
export class ResponseFilter {
  #credentials;
  #isError;
  /** True if the body is one value, not an event stream: an error status, no streaming request, or JSON. */
  #isSingleValue;
  #hasContent = false;
  /** The current event (or body) from its first byte. */
  #held = new Uint8Array(1024);
  #length = 0;
  /** Numbers of bytes of `#held` that were passed to the run, and that were searched. */
  #passed = 0;
  #searched = 0;
  /** Positions of credentials in `#held`. */
  #found = [];
  #lineIsEmpty = true;
  #isAfterCr = false;

  constructor({ credentials, isError, isSingleValue }) {
    this.#credentials = credentials;
    this.#isError = isError;
    this.#isSingleValue = isSingleValue;
  }

  /** Takes the next bytes; returns the bytes to pass to the run now. */
  push(bytes) {
    // The run rejects values that are not bytes.
    if (this.#credentials.isEmpty || !isBytes(bytes) || bytes.length === 0) return bytes;
    this.#detectSingleValue(bytes);
    return this.#isClean(bytes) ? this.#passWhole(bytes) : this.#passParts(bytes);
  }

  /** Ends the body; returns the held bytes. */
  end() {
    return this.#close();
  }

  /** Detects a JSON body by its first byte that is no white space. */
  #detectSingleValue(bytes) {
    if (this.#hasContent) return;
    const first = bytes.find((byte) => !WHITE_SPACE.has(byte));
    this.#hasContent = first !== undefined;
    this.#isSingleValue ||= OPENING_BRACES.includes(first);
  }

  #isClean(bytes) {
    return (
      this.#searched === this.#length &&
      this.#found.length === 0 &&
      this.#credentials.find(bytes, bytes.length, 0, false) === null
    );
  }

  /** Passes bytes without a credential, and keeps the start of an unfinished event for `isError`. */
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
    return concatenated(out);
  }

  /** The end of the event, after its blank line; 0 if these bytes do not end it. */
  #eventEnd(bytes, from) {
    for (let at = from; !this.#isSingleValue && at < bytes.length; at += 1) {
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

  /** Searches the unsearched bytes; returns the position before which no further credential can start. */
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

  /** Completes the event: returns its unpassed bytes, redacted if it is an error. */
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
      pieces.push(this.#held.subarray(from, at), REDACTED_BYTES);
      from = end;
    }
    pieces.push(this.#held.subarray(from, this.#length));
    return concatenated(pieces);
  }

  #reset() {
    this.#length = 0;
    this.#passed = 0;
    this.#searched = 0;
    this.#found = [];
  }
}

function concatenated(pieces) {
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
