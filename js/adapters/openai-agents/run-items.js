// What a run has stored before the SDK's runner stores it: an answer with calls, their results.

import { canonicalJson } from '../message-record.js';

/** Members that the runner leaves out when it stores an item. */
const UNSTORED_ID = new Set(['function_call', 'function_call_result']);

/** The item as the runner stores it. */
export function storedItem(item) {
  if (!UNSTORED_ID.has(item.type) || !('id' in item)) return item;
  const { id, ...rest } = item;
  return rest;
}

/** The SDK sends some items without their ids. */
function keyOf({ id, ...rest }) {
  return canonicalJson(rest);
}

/** A multiset of items. */
export class ItemCount {
  #counts = new Map();

  constructor(items = []) {
    for (const item of items) this.add(item);
  }

  add(item) {
    const key = keyOf(item);
    this.#counts.set(key, (this.#counts.get(key) ?? 0) + 1);
  }

  /** Takes the item out; false if it has none. */
  take(item) {
    const key = keyOf(item);
    const count = this.#counts.get(key) ?? 0;
    if (count) this.#counts.set(key, count - 1);
    return count > 0;
  }
}

/** One run of the SDK, which a `RunContext` identifies. */
export class RunItems {
  /** What the run read from the session. @type {any[] | null} */
  read = null;
  /** What was stored since then, in order. @type {any[]} */
  stored = [];
  /** Of that, what the runner has not stored itself. */
  #early = new ItemCount();

  addEarly(items) {
    for (const item of items) {
      this.stored.push(item);
      this.#early.add(item);
    }
  }

  /** Returns the items that are not stored yet, of those that the runner stores now. */
  missing(items) {
    return items.filter((item) => !this.#early.take(item));
  }

  /** Returns the items of a model's input that are newer than what the session has. */
  unstored(input, known) {
    const stored = new ItemCount(this.read ? [...this.read, ...this.stored] : known);
    const lastStored = input.reduce((last, item, at) => (stored.take(item) ? at : last), -1);
    return input.slice(lastStored + 1).map(storedItem);
  }
}
