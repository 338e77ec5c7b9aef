// The worker of tests, in workerd.

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { Miniflare } from 'miniflare';

/** Starts worker.js on databases of its own. */
export function startWorker() {
  const folder = mkdtempSync(path.join(tmpdir(), 'rethread-workers-'));
  const worker = new Miniflare({
    cf: false,
    compatibilityDate: '2026-04-01',
    compatibilityFlags: ['nodejs_compat'],
    modules: true,
    modulesRoot: fileURLToPath(new URL('../..', import.meta.url)),
    scriptPath: fileURLToPath(new URL('worker.js', import.meta.url)),
    modulesRules: [
      { type: 'ESModule', include: ['**/*.js', '**/*.mjs'] },
      { type: 'CompiledWasm', include: ['**/*.wasm'] },
    ],
    d1Databases: { DB: 'chats', FOREIGN: 'foreign', FROZEN: 'frozen' },
    d1Persist: path.join(folder, 'd1'),
    kvNamespaces: { KV: 'chats' },
    kvPersist: path.join(folder, 'kv'),
    durableObjects: { CHATS: { className: 'Chats', useSQLite: true } },
    durableObjectsPersist: path.join(folder, 'objects'),
  });
  return {
    /** What the worker answers, as JSON. */
    async ask(address, body) {
      const response = await worker.dispatchFetch(`http://worker/${address}`, body ? { method: 'POST', body: JSON.stringify(body) } : {});
      const text = await response.text();
      assert.equal(response.status, 200, text);
      return JSON.parse(text);
    },
    async end() {
      await worker.dispose();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
