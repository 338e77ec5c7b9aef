// The conformance suite as a wasm program, for stores that only JavaScript has: cargo -> wasm-bindgen -> target/testing/.

import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { asFactory } from './glue.mjs';
import { files, hash, present, read, root, run } from './shell.mjs';
import { bindgen, rust } from './tools.mjs';

const OUT = 'target/testing';
const STAMP = `${OUT}/.stamp`;

export async function buildTesting() {
  const inputs = [...files('src', '.rs'), 'Cargo.toml', 'Cargo.lock', '.ci/testing.mjs', '.ci/glue.mjs'];
  const wanted = hash(inputs);
  if (present(STAMP) && read(STAMP) === wanted) return;
  await rust();
  rmSync(path.join(root, STAMP), { force: true });
  mkdirSync(path.join(root, OUT), { recursive: true });
  const features = ['--no-default-features', '--features', 'web,conformance'];
  await run('cargo', ['build', '--lib', '--profile', 'quick', '--target', 'wasm32-unknown-unknown', ...features, '--locked']);
  const wasm = path.join(root, OUT, 'rethread.wasm');
  // Copied: a later build for another host has the same name.
  copyFileSync(path.resolve(root, process.env.CARGO_TARGET_DIR ?? 'target', 'wasm32-unknown-unknown/quick/rethread.wasm'), wasm);
  await run(await bindgen(), [wasm, OUT, 'testing']);
  const glue = path.join(root, OUT, 'testing.js');
  writeFileSync(glue, asFactory(readFileSync(glue, 'utf8')));
  writeFileSync(path.join(root, STAMP), wanted);
}
