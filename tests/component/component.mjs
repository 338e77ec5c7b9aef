// A component as a module of Node: transpiled by jco.

import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { transpileBytes } from '@bytecodealliance/jco-transpile';

export const fileOf = (world) => fileURLToPath(new URL(`../../dist/component/${world}.wasm`, import.meta.url));

/** Writes the module of a component into an empty folder: {file, imports, remove}. `provided` are the modules that its
 *  imports are taken from. */
export async function transpiled(world, provided = {}) {
  const folder = mkdtempSync(path.join(tmpdir(), 'rethread-component-'));
  const options = { name: 'rethread', wasiShim: false, map: provided };
  const { files, imports } = await transpileBytes(readFileSync(fileOf(world)), options);
  for (const [name, bytes] of Object.entries(files)) {
    mkdirSync(path.dirname(path.join(folder, name)), { recursive: true });
    writeFileSync(path.join(folder, name), bytes);
  }
  writeFileSync(path.join(folder, 'package.json'), '{"type":"module"}');
  const file = path.join(folder, 'rethread.js');
  return { file, imports, remove: () => rmSync(folder, { recursive: true, force: true }) };
}

/** The module of a component: {exports, imports, remove}. */
export async function loadComponent(world = 'formats', provided = {}) {
  const { file, ...more } = await transpiled(world, provided);
  return { exports: await import(pathToFileURL(file).href), ...more };
}
