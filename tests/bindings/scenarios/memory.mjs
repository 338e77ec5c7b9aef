// A wasm with less memory, so that a test sees what happens when there is none left.

const PAGE = 65_536;

function readNumber(bytes, from) {
  let value = 0;
  for (let at = from, shift = 0; ; at += 1, shift += 7) {
    value |= (bytes[at] & 0x7f) << shift;
    if (bytes[at] < 0x80) return [value, at + 1];
  }
}

function number(value) {
  const out = [];
  for (let rest = value; ; rest >>>= 7) {
    out.push(rest > 0x7f ? (rest & 0x7f) | 0x80 : rest);
    if (rest <= 0x7f) return out;
  }
}

/** The module with at most so many bytes of memory beside those that it starts with. */
export function withLittleMemory(bytes, more) {
  const out = [...bytes.subarray(0, 8)];
  const parts = [Uint8Array.from(out)];
  for (let at = 8; at < bytes.length; ) {
    const [size, start] = readNumber(bytes, at + 1);
    if (bytes[at] === 5) {
      // the section of memories: one, with flags, its first size and perhaps its largest
      const [first] = readNumber(bytes, start + 2);
      const body = [1, 1, ...number(first), ...number(first + Math.ceil(more / PAGE))];
      parts.push(Uint8Array.from([5, ...number(body.length), ...body]));
    } else {
      parts.push(bytes.subarray(at, start + size));
    }
    at = start + size;
  }
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
