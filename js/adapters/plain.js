// Plain data: copies as JSON has them, and comparison.

/** A copy as JSON has it, which is what a store keeps: without members that are undefined. */
export const plain = (value) => (value === undefined ? undefined : JSON.parse(JSON.stringify(value)));

export const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);

/** True if two plain values are the same; the order of members does not count. */
export function isSame(a, b) {
  if (a === b) return true;
  if (Array.isArray(a)) return Array.isArray(b) && a.length === b.length && a.every((item, at) => isSame(item, b[at]));
  if (!isObject(a) || !isObject(b)) return false;
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => Object.hasOwn(b, key) && isSame(a[key], b[key]));
}

/** A copy without some members. */
export function without(object, ...keys) {
  return Object.fromEntries(Object.entries(object).filter(([key]) => !keys.includes(key)));
}

/** True if both have the same JSON text, whatever the order of members. Unlike for `isSame`, they need not be plain: a
 *  member that is undefined is none. */
export function isSameJson(left, right) {
  return canonicalJson(left) === canonicalJson(right);
}

/** Returns the JSON text with members sorted by name. */
export function canonicalJson(value) {
  return JSON.stringify(value, (_, member) =>
    typeof member === 'object' && member !== null && !Array.isArray(member)
      ? Object.fromEntries(Object.entries(member).sort(([a], [b]) => (a < b ? -1 : 1)))
      : member,
  );
}
