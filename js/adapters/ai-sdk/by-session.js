// Values that belong to a session, whichever of its objects is asked.

import { Session } from '../../session.js';

/** @template V */
export class BySession {
  /** @type {WeakMap<object, Map<string, V>>} */
  #stores = new WeakMap();

  /** @param {any} session @param {string} [key] @returns {V | undefined} */
  get(session, key = '') {
    return this.#stores.get(Session.storeOf(session))?.get(JSON.stringify([session.id, key]));
  }

  /** @param {any} session @param {string} key @param {V} value */
  set(session, key, value) {
    const store = Session.storeOf(session);
    const values = this.#stores.get(store) ?? new Map();
    this.#stores.set(store, values);
    values.set(JSON.stringify([session.id, key]), value);
  }

  /** @param {any} session @param {string} [key] */
  delete(session, key = '') {
    this.#stores.get(Session.storeOf(session))?.delete(JSON.stringify([session.id, key]));
  }
}
