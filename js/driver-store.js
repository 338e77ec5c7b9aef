// A store over a driver, in an instance of the program of stores. The complete program calls it
// (src/web/store/program_link.rs).

import { InstancePool } from './instance-pool.js';
import { program } from './stores-program.js';

const instances = new InstancePool(program, 'open the store again and get its sessions from it');

class DriverStore {
  #instance;
  #object;
  #isClosed = false;

  constructor(instance, object) {
    this.#instance = instance;
    this.#object = object;
  }

  facts() {
    return this.#instance.call(() => this.#object.facts());
  }

  /** `call` is copied before this returns. */
  call(call, responder) {
    return this.#instance.promise(() => this.#object.call(call, responder));
  }

  async close() {
    try {
      await this.#instance.promise(() => this.#object.close());
    } finally {
      if (!this.#isClosed) instances.leave(this.#instance);
      this.#isClosed = true;
    }
  }

  /** Called when the instance of the complete program has stopped. */
  release() {
    this.close().catch(() => {}); // nobody waits for it
  }
}

/** Opens the store of a driver. The program must be loaded. */
export async function openDriverStore(driver, isStrict, timeoutMs) {
  const instance = await instances.enter();
  try {
    return new DriverStore(
      instance,
      await instance.promise(() => instance.exports.openDriverStore(driver, isStrict, timeoutMs)),
    );
  } catch (error) {
    instances.leave(instance);
    throw error;
  }
}

export { program };
