// The instances that stores live in.
//
// Up to 16 stores have an instance each, so that a failure of one store does not affect the others. A browser page has
// address space for about a hundred instances and frees that of an unused one late, so instances are reused, and shared
// by further stores.

import { Instance } from './instance.js';

/** Further stores share the instances. */
const MAX_INSTANCES = 16;

export class InstancePool {
  #program;
  #advice;
  /** The number of stores that are open in each instance. */
  #stores = new Map();
  /** Instances that are being started. */
  #starting = 0;

  constructor(program, advice) {
    this.#program = program;
    this.#advice = advice;
  }

  /** An instance for one more store. `leave` must be called when the store is closed. */
  async enter() {
    for (const instance of this.#stores.keys()) if (instance.stopped) this.#stores.delete(instance);
    const [leastUsed] = [...this.#stores].sort(([, one], [, other]) => one - other);
    if (leastUsed && (leastUsed[1] === 0 || this.#stores.size + this.#starting >= MAX_INSTANCES))
      return this.#entered(leastUsed[0]);
    this.#starting += 1;
    try {
      return this.#entered(await Instance.start(this.#program, this.#advice));
    } finally {
      this.#starting -= 1;
    }
  }

  #entered(instance) {
    this.#stores.set(instance, (this.#stores.get(instance) ?? 0) + 1);
    return instance;
  }

  /** Must be called when a store of the instance is closed. */
  leave(instance) {
    const count = this.#stores.get(instance);
    if (!count) return; // it has stopped
    if (count === 1 && instance.isLarge) this.#stores.delete(instance);
    else this.#stores.set(instance, count - 1);
  }
}
