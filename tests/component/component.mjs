// The component as a module of Node: transpiled by jco into an empty folder.

import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { transpileBytes } from '@bytecodealliance/jco-transpile';

export const file = fileURLToPath(new URL('../../dist/component/rethread.wasm', import.meta.url));

/** {exports, imports, remove} */
export async function loadComponent() {
  const folder = mkdtempSync(path.join(tmpdir(), 'rethread-component-'));
  const { files, imports } = await transpileBytes(readFileSync(file), { name: 'rethread', wasiShim: false });
  for (const [name, bytes] of Object.entries(files)) {
    mkdirSync(path.dirname(path.join(folder, name)), { recursive: true });
    writeFileSync(path.join(folder, name), bytes);
  }
  writeFileSync(path.join(folder, 'package.json'), '{"type":"module"}');
  const exports = await import(pathToFileURL(path.join(folder, 'rethread.js')).href);
  return { exports, imports, remove: () => rmSync(folder, { recursive: true, force: true }) };
}
