// What a run has stored before the SDK's runner stores it: the question, answers with calls, and their results.

import { canonicalJson } from '../plain.js';
import { isResult } from './pairs.js';

/** The item as the runner stores it. */
export function storedItem(item) {
  if ((item.type !== 'function_call' && item.type !== 'function_call_result') || !('id' in item)) return item;
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

  constructor(items) {
    for (const item of items) this.#counts.set(keyOf(item), (this.#counts.get(keyOf(item)) ?? 0) + 1);
  }

  /** Takes the item out; false if it has none. */
  take(item) {
    const key = keyOf(item);
    const count = this.#counts.get(key) ?? 0;
    if (count) this.#counts.set(key, count - 1);
    return count > 0;
  }

  get isEmpty() {
    return [...this.#counts.values()].every((count) => count === 0);
  }
}

function hasSameItems(left, right) {
  const count = new ItemCount(left);
  return right.every((item) => count.take(item)) && count.isEmpty;
}

/** One run of the SDK, which a `RunContext` identifies. */
export class RunItems {
  /** What the run read from the session last. @type {any[] | null} */
  #read = null;
  /** The ids of messages with marks of `once` that the session had then. @type {Set<string> | null} */
  #marked = null;
  /** What was stored since then. @type {any[]} */
  #stored = [];
  /** Of that, what the runner has not stored itself, at the end of the history. @type {any[]} */
  #early = [];
  /** True if the model was asked: what is new then are results. */
  #hasAsked = false;

  /** @param {any[]} items @param {import('./history.js').Block[]} blocks those of the whole history */
  hasRead(items, blocks) {
    this.#read = items;
    this.#marked = new Set(blocks.flatMap(({ id, mark }) => (mark ? [id] : [])));
    this.#stored = [];
    this.#hasAsked = false;
  }

  /** True if a message of `once` was stored since the run read the session. */
  #isSince = ({ id }) => this.#marked !== null && !this.#marked.has(id);

  addEarly(items) {
    this.#stored.push(...items);
    this.#early.push(...items);
  }

  /** Returns the change of the history for items that the runner stores, and `end`, to be called when it is stored.
   *  They take the place of what was stored early, which a filter or a guardrail may have changed since.
   *  @param {import('./history.js').History} history @param {import('./history.js').Entry[]} entries
   *  @param {{ id: string, digest: string }} [operation] */
  change(history, entries, operation) {
    const record = operation && { operations: [operation] };
    const start = history.entries.length - this.#early.length;
    const early = start < 0 ? [] : history.items.slice(start);
    const ended = (rest) => () => {
      this.#stored.push(...entries.map(({ item }) => item));
      this.#early = rest;
    };
    if (!hasSameItems(early, this.#early)) {
      // Somebody else has written meanwhile.
      const known = new ItemCount(this.#early);
      const missing = entries.filter(({ item }) => !known.take(item));
      return { ...history.appended(missing, record, this.#isSince), end: ended([]) };
    }
    const differs = early.findIndex((item, at) => canonicalJson(item) !== canonicalJson(entries[at]?.item ?? null));
    if (differs < 0) return { ...history.appended(entries.slice(early.length), record, this.#isSince), end: ended([]) };
    if (differs === entries.length) {
      return { messages: [], ...(record && history.appended([], record)), end: ended(early.slice(differs)) };
    }
    return { ...history.replaced(start + differs, entries.slice(differs), operation), end: ended([]) };
  }

  /** Returns the items of a model's input that are newer than what the session has: the question of the run, then
   *  results. Everything else may be a filter's. */
  unstored(input, known) {
    const stored = new ItemCount(this.#read ? [...this.#read, ...this.#stored] : known);
    const lastStored = input.reduce((last, item, at) => (stored.take(item) ? at : last), -1);
    const newer = input.slice(lastStored + 1).map(storedItem);
    const items = this.#hasAsked ? newer.filter(isResult) : newer;
    this.#hasAsked = true;
    return items;
  }
}
