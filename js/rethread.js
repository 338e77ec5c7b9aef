// `Rethread`: an open store.

import * as check from './arguments.js';
import { Handle, asyncDispose, dispose } from './handle.js';
import { InstancePool } from './instance-pool.js';
import { program } from './rethread-program.js';
import { Session } from './session.js';

const instances = new InstancePool(program, 'open the store again and get its sessions from it');

export class Rethread {
  #handle;
  #isClosed = false;

  constructor(handle) {
    this.#handle = handle;
  }

  session(id, options) {
    const checks = () => {
      check.sessionId(id);
      check.sessionOptions(options);
    };
    return this.#handle.promise((store) => store.session(id, options), checks)
      .then((object) => new Session(new Handle(this.#handle.instance, object)));
  }

  sessions(query) {
    return this.#handle.promise((store) => store.sessions(query), () => check.query(query));
  }

  deleteSession(id) {
    return this.#handle.promise((store) => store.deleteSession(id), () => check.sessionId(id));
  }

  invocations(query) {
    return this.#handle.promise((store) => store.invocations(query), () => check.query(query));
  }

  pendingRuns(query) {
    return this.#handle.promise((store) => store.pendingRuns(query), () => check.query(query));
  }

  subscribe(listener) {
    check.listener(listener);
    return this.#handle.subscribe(listener);
  }

  persist() {
    return this.#handle.promise((store) => store.persist());
  }

  status() {
    return this.#handle.promise((store) => store.status());
  }

  async close() {
    await this.#handle.promise((store) => store.close());
    if (!this.#isClosed) instances.leave(this.#handle.instance);
    this.#isClosed = true;
  }

  [dispose]() {
    this.#handle.dispose();
  }

  [asyncDispose]() {
    return this.close();
  }
}

export async function open(options = {}) {
  await program.load();
  check.openOptions(options);
  const instance = await instances.enter();
  try {
    return new Rethread(new Handle(instance, await instance.promise(() => instance.exports.openRethread(options))));
  } catch (error) {
    instances.leave(instance);
    throw error;
  }
}
