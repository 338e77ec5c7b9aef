// Reads headers in any of the forms that `fetch` accepts.

/** The [name, value] pairs of an object, a `Headers` or a list of pairs, with names in lower case. Omits headers
 *  without a value. */
export function headerPairs(headers) {
  if (headers === undefined || headers === null) return [];
  if (typeof headers !== 'object') throw new TypeError('headers must be an object of strings');
  const entries = typeof headers[Symbol.iterator] === 'function' ? headers : Object.entries(headers);
  const pairs = [];
  // One by one: a list that claims 2^32 items fails at its first, before it is copied.
  for (const [name, value] of entries) {
    if (value !== undefined && value !== null) pairs.push([String(name).toLowerCase(), String(value)]);
  }
  return pairs;
}
