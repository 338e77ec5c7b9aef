// Reads headers in any of the forms that `fetch` accepts.

/** The [name, value] pairs of an object, a `Headers` or a list of pairs, with names in lower case. Omits headers without a value. */
export function headerPairs(headers) {
  if (headers === undefined || headers === null) return [];
  if (typeof headers !== 'object') throw new TypeError('headers must be an object of strings');
  const pairs = typeof headers[Symbol.iterator] === 'function' ? [...headers] : Object.entries(headers);
  return pairs.filter(([, value]) => value !== undefined && value !== null).map(([name, value]) => [String(name).toLowerCase(), String(value)]);
}
