// `Rethread`: an open store.

import * as check from './arguments.js';
import { backupStream, restoreFrom } from './backup.js';
import { WasmHandle, asyncDispose, dispose } from './wasm-handle.js';
import { memberOf } from './untrusted-value.js';
import { cipherOf } from './encryption.js';
import { OwnRuns } from './own-runs.js';
import { resumeAll } from './resume-all.js';
import { InstancePool } from './instance-pool.js';
import { openDriverStore } from './load-stores.js';
import { program } from './rethread-program.js';
import { Session } from './session.js';
import { localStorageDriver } from './stores/local-storage.js';

const instances = new InstancePool(program, 'open the store again and get its sessions from it');

/** @typedef {import('./types.js').Rethread} PublicRethread */

/** @implements {PublicRethread} */
export class Rethread {
  #handle;
  #isClosed = false;
  #runs;

  constructor(handle, leaseMs) {
    this.#handle = handle;
    this.#runs = new OwnRuns(leaseMs);
  }

  /** @type {PublicRethread['session']} */
  session(id, options) {
    return this.#handle
      .promise(
        (store) => store.session(id, options),
        () => check.sessionId(id),
      )
      .then((object) => this.#session(object, memberOf(options, 'providers')));
  }

  /** @type {PublicRethread['sessions']} */
  sessions(query) {
    return this.#handle.promise((store) => store.sessions(query));
  }

  /** @type {PublicRethread['search']} */
  search(text, options) {
    return this.#handle.promise(
      (store) => store.search(text, options),
      () => check.searchedText(text),
    );
  }

  /** @type {PublicRethread['rotateKeys']} */
  rotateKeys() {
    return this.#handle.promise((store) => store.rotateKeys());
  }

  /** @type {PublicRethread['prune']} */
  prune(options) {
    return this.#handle.promise((store) => store.prune(options));
  }

  /** @type {PublicRethread['deleteSession']} */
  deleteSession(id) {
    return this.#handle.promise(
      (store) => store.deleteSession(id),
      () => check.sessionId(id),
    );
  }

  /** @type {PublicRethread['exportSession']} */
  exportSession(id) {
    return this.#handle.promise(
      (store) => store.exportSession(id),
      () => check.sessionId(id),
    );
  }

  /** @type {PublicRethread['importSession']} */
  importSession(lines, options) {
    const checks = () => {
      check.exportedSession(lines);
      check.restoredId(options);
    };
    return this.#handle
      .promise((store) => store.importSession(lines, options), checks)
      .then((object) => this.#session(object));
  }

  /** @type {PublicRethread['restore']} */
  restore(serialized, options) {
    const checks = () => {
      check.serializedSession(serialized);
      check.restoredId(options);
    };
    return this.#handle
      .promise((store) => store.restore(serialized, options), checks)
      .then((object) => this.#session(object));
  }

  /** @type {PublicRethread['copy']} */
  copy(session, options) {
    const checks = () => {
      check.sessionId(session);
      check.copyOptions(options);
    };
    return this.#handle
      .promise((store) => store.copy(session, options), checks)
      .then((object) => this.#session(object));
  }

  /** @type {PublicRethread['backup']} */
  backup(options) {
    const backup = this.#handle.call((store) => store.backup(options));
    return backupStream(new WasmHandle(this.#handle.instance, backup));
  }

  /** @type {PublicRethread['restoreBackup']} */
  async restoreBackup(backup, options) {
    check.backupText(backup);
    const restore = this.#handle.call((store) => store.restoreBackup(options));
    return restoreFrom(backup, new WasmHandle(this.#handle.instance, restore));
  }

  /** @type {PublicRethread['invocations']} */
  invocations(query) {
    return this.#handle.promise((store) => store.invocations(query));
  }

  /** @type {PublicRethread['pendingRuns']} */
  pendingRuns(query) {
    return this.#handle.promise((store) => store.pendingRuns(query));
  }

  /** @type {PublicRethread['resumeAll']} */
  async resumeAll(request, query) {
    check.resumeRequest(request);
    const pending = await this.pendingRuns(query);
    return resumeAll(this, this.#runs, { pending, request });
  }

  /** @type {PublicRethread['subscribe']} */
  subscribe(listener) {
    check.listener(listener);
    return this.#handle.subscribe(listener);
  }

  /** @type {PublicRethread['persist']} */
  persist() {
    return this.#handle.promise((store) => store.persist());
  }

  /** @type {PublicRethread['status']} */
  status() {
    return this.#handle.promise((store) => store.status());
  }

  async close() {
    try {
      await this.#handle.promise((store) => store.close());
    } finally {
      if (!this.#isClosed) instances.leave(this.#handle.instance);
      this.#isClosed = true;
    }
  }

  #session(object, providers) {
    return new Session(new WasmHandle(this.#handle.instance, object), this.#runs, providers);
  }

  [dispose]() {
    this.#handle.dispose();
  }

  [asyncDispose]() {
    return this.close();
  }
}

/** @type {typeof import('./types.js').open} */
export async function open(options = {}) {
  await program.load();
  const instance = await instances.enter();
  try {
    return new Rethread(
      new WasmHandle(
        instance,
        await instance.promise(() =>
          instance.exports.openRethread(options, localStorageDriver, openDriverStore, cipherOf),
        ),
      ),
      memberOf(options, 'leaseMs'),
    );
  } catch (error) {
    instances.leave(instance);
    throw error;
  }
}
