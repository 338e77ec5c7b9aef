// Steps an engine by hand: for tests that need no network and no tools.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { FileStore } from './hosts/file-store.mjs';

export const SETTINGS = { exclusive: true, store: { maxValueBytes: 1n << 20n, durable: true } };

let now = 1_800_000_000_000n;
export const moment = () => {
  now += 1n;
  return { now, random: crypto.getRandomValues(new Uint8Array(32)) };
};

const folder = mkdtempSync(path.join(tmpdir(), 'rethread-stepping-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
let stores = 0;

/** A new store, until the process ends. */
export const newStore = () => {
  stores += 1;
  return new FileStore(path.join(folder, `${stores}.jsonl`));
};

/** The commands of an engine: `command(tag, val)` returns the outcome or throws the error `{code, message}`. Effects of
 *  the store are performed, others are kept in `opened`. */
export function stepper(engine, store) {
  const opened = [];
  const step = () => {
    const progress = engine.step(moment());
    for (const { id, kind } of progress.opened) {
      if (kind.tag === 'store') engine.answer(id, { tag: 'store', val: store.perform(kind.val) });
      else opened.push({ id, kind });
    }
    return progress;
  };
  const command = (tag, val) => {
    const operation = engine.begin({ tag, val });
    for (let steps = 0; steps < 10_000; steps += 1) {
      const ended = step().ended.find((one) => one.operation === operation);
      if (ended?.outcome.tag === 'err') throw ended.outcome.val;
      if (ended) return ended.outcome.val.val;
    }
    throw new Error(`${tag} never ends`);
  };
  return { command, step, opened };
}
