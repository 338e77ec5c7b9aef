// The worker of tests, in workerd.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { askWorkerd, startWorkerd } from '../workerd.mjs';

/** Starts worker.js with new databases. */
export function startWorker() {
  const folder = mkdtempSync(path.join(tmpdir(), 'rethread-workers-'));
  const worker = startWorkerd(
    fileURLToPath(new URL('../..', import.meta.url)),
    fileURLToPath(new URL('worker.js', import.meta.url)),
    {
      compatibilityFlags: ['nodejs_compat'],
      d1Databases: { DB: 'chats', FOREIGN: 'foreign', FROZEN: 'frozen' },
      d1Persist: path.join(folder, 'd1'),
      kvNamespaces: { KV: 'chats' },
      kvPersist: path.join(folder, 'kv'),
      durableObjects: { CHATS: { className: 'Chats', useSQLite: true } },
      durableObjectsPersist: path.join(folder, 'objects'),
    },
  );
  return {
    /** Returns the worker's response, as JSON. */
    ask: (address, body) => askWorkerd(worker, address, body ? { method: 'POST', body: JSON.stringify(body) } : {}),
    async end() {
      await worker.dispose();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
