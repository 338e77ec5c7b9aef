// wasi:keyvalue in memory, as modules for a component of the world `stored`: buckets by name, which may fail.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

/** What the modules that are given to a component share with the test: jco imports modules, not objects. */
const shared = new Map();

/** The state of one wasi:keyvalue. `swaps`: its atomics work. `fault()` is asked at every call: "fails" for one that does
 *  nothing, "lost" for one whose reply is lost. */
export class Keyvalue {
  buckets = new Map();
  swaps = true;
  calls = 0;
  fault = () => undefined;

  /** The values of all buckets. */
  values() {
    return [...this.buckets.values()].flatMap((entries) => [...entries.values()].map(({ value }) => value));
  }

  /** Does the work of a call, as its fault has it. */
  call(name, work) {
    this.calls += 1;
    const fault = this.fault(name, this.calls);
    const other = { tag: 'other', val: `injected: it ${fault}` };
    const error = name === 'swap' ? { tag: 'store-error', val: other } : other;
    if (fault === 'fails') throw error;
    const value = work();
    if (fault === 'lost') throw error;
    return value;
  }
}

export const KEYS_IN_PAGE = 7;

/** The source of the modules. NAME is the state that they use. */
const SOURCE = `
const shared = globalThis[Symbol.for('rethread.test.keyvalue')];
const state = shared.get('NAME');
class Bucket {
  constructor(name) { this.entries = state.buckets.get(name) ?? new Map(); state.buckets.set(name, this.entries); }
  get(key) { return state.call('get', () => this.entries.get(key)?.value); }
  set(key, value) { return state.call('set', () => void this.entries.set(key, { value: value.slice() })); }
  delete(key) { return state.call('delete', () => void this.entries.delete(key)); }
  exists(key) { return state.call('exists', () => this.entries.has(key)); }
  listKeys(cursor) {
    return state.call('listKeys', () => {
      const keys = [...this.entries.keys()].sort();
      const first = Number(cursor ?? 0n);
      const end = first + PAGE;
      return { keys: keys.slice(first, end), cursor: keys.length > end ? BigInt(end) : undefined };
    });
  }
}
class Cas {
  static 'new'(bucket, key) {
    return state.call('cas', () => {
      if (!state.swaps) throw { tag: 'other', val: 'this host has no atomics' };
      return Object.assign(new Cas(), { bucket, key, entry: bucket.entries.get(key) });
    });
  }
  current() { return this.entry?.value; }
}
export const store = { Bucket, open: (name) => new Bucket(name) };
export const atomics = {
  Cas,
  increment() { throw { tag: 'other', val: 'not used' }; },
  swap(cas, value) {
    let failed = false;
    state.call('swap', () => {
      failed = cas.bucket.entries.get(cas.key) !== cas.entry;
      if (!failed) cas.bucket.entries.set(cas.key, { value: value.slice() });
    });
    if (failed) throw { tag: 'cas-failed', val: Object.assign(new Cas(), { bucket: cas.bucket, key: cas.key, entry: cas.bucket.entries.get(cas.key) }) };
  },
};
export const { open } = store;
export { Bucket, Cas };
export const { swap, increment } = atomics;
`;

/** The modules for `loadComponent`, over a state. */
export function memoryKeyvalue(state = new Keyvalue()) {
  globalThis[Symbol.for('rethread.test.keyvalue')] = shared;
  const name = `keyvalue-${shared.size}`;
  shared.set(name, state);
  const folder = mkdtempSync(path.join(tmpdir(), 'rethread-keyvalue-'));
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
  const file = path.join(folder, `${name}.mjs`);
  writeFileSync(file, SOURCE.replace('NAME', name).replace('PAGE', String(KEYS_IN_PAGE)));
  return { 'wasi:keyvalue/*': `${file}#*` };
}
