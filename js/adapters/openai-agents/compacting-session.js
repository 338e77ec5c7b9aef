// Compaction of the stored items after a turn, by a function of the application.

import { withoutSecondResults } from './pairs.js';
import { ItemCount } from './run-items.js';
import { AgentsSession } from './session.js';

/** True if the model's last exchange had every item, in order: an item that a callback left out must not be lost. */
function covers(exchange, items) {
  let at = 0;
  return items.every((item) => {
    const wanted = new ItemCount([item]);
    while (at < exchange.length && !wanted.take(exchange[at])) at += 1;
    at += 1;
    return at <= exchange.length;
  });
}

export class CompactingSession extends AgentsSession {
  #compact;
  /** The revision that the holder of a receipt has read, or has written itself. @type {WeakMap<object, number>} */
  #receipts = new WeakMap();

  constructor(session, compact) {
    super(session);
    this.#compact = compact;
  }

  async getItemsWithCompactionOwnership(runContext) {
    const ownership = {};
    const items = await this.getItems(undefined, runContext);
    await this.store.queued(async () => {
      const history = await this.store.read();
      const all = withoutSecondResults(history.itemsOfRun);
      if (covers(items, all) && items.length === all.length) {
        this.#receipts.set(ownership, history.revision);
      }
    });
    return { items, ownership };
  }

  async addItemsWithCompactionOwnership(items, ownership, runContext) {
    const owned = ownership ? this.#receipts.get(ownership) : undefined;
    await this.store.queued(async () => {
      const { before, after } = await this.append(items, runContext);
      if (ownership && owned === before) this.#receipts.set(ownership, after);
    });
  }

  async runCompaction(args = {}, runContext, ownership, modelExchange) {
    const history = await this.store.queued(() => this.store.read());
    if (ownership !== undefined && !this.#owns(ownership, history, modelExchange)) return null;
    const { responseId = modelExchange?.responseId } = args;
    // No turn: the application may read the session, and others write.
    const done = await this.#compact(structuredClone(withoutSecondResults(history.itemsOfRun)), {
      ...args,
      responseId,
    });
    if (!done) return null;
    await this.store.queued(async () => {
      const { made, after } = await this.store.change((now) =>
        // Who wrote meanwhile keeps what they wrote: the compaction is of another history.
        now.revision === history.revision ? now.compacted(done.items) : { messages: [] },
      );
      if (ownership && made.messages.length) this.#receipts.set(ownership, after);
    });
    return { usage: done.usage };
  }

  #owns(ownership, history, modelExchange) {
    if (ownership === null || this.#receipts.get(ownership) !== history.revision) return false;
    return modelExchange !== undefined && covers(modelExchange.items, withoutSecondResults(history.items));
  }
}
