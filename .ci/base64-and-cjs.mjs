// Makes files of the package from others: the wasm as base64 in modules, and CommonJS for programs that cannot `require`
// modules. As a program it makes them from the wasm that dist/ has: run it after a change in js/ that needs no build.
//
//   dist/*_base64.js   gzip of each program, for `rethread/base64` and the condition `base64`
//   dist/cjs/          the code of all entries in one file, and a file an entry that package.json names under `require`

import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { root } from './shell.mjs';

const PROGRAMS = ['rethread', 'stores', 'formats'];
const CJS = 'dist/cjs';
const BUNDLE = 'rethread.cjs';

const write = (file, text) => writeFileSync(path.join(root, file), text);

function writeBase64(name) {
  const packed = gzipSync(readFileSync(path.join(root, `dist/${name}_bg.wasm`)), { level: 9 });
  write(`dist/${name}_base64.js`, `// gzip of ${name}_bg.wasm.\nexport default '${packed.toString('base64')}';\n`);
}

/** The entries that package.json gives a CommonJS file: name, that file, and the module whose exports it has. */
export function commonJsEntries() {
  const { exports } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8'));
  return Object.entries(exports)
    .filter(([, target]) => target.node?.require)
    .map(([name, { node }]) => ({ name, file: node.require, source: node.default }));
}

/** Writes one file with the code of all entries, so that they share classes and open runs as the modules do, and a file
 *  for each entry, which evaluates it when it is required. */
async function writeCjs() {
  const { build } = await import('esbuild');
  const entries = commonJsEntries();
  const getters = entries.map(({ name, source }) => `get ${JSON.stringify(name)}() { return require("${source}"); },`);
  await build({
    stdin: { contents: `module.exports = {\n${getters.join('\n')}\n};`, resolveDir: root, loader: 'js' },
    outfile: path.join(root, CJS, BUNDLE),
    bundle: true,
    format: 'cjs',
    platform: 'node',
    target: 'node20.3',
    packages: 'external',
    // The bundle is as many folders below the root as the entries are: their relative URLs of dist/ stay right.
    define: { 'import.meta.url': '__moduleUrl' },
    banner: {
      js: '// Made of js/ by .ci/base64-and-cjs.mjs.\nconst __moduleUrl = require("node:url").pathToFileURL(__filename).href;',
    },
    logLevel: 'warning',
  });
  for (const { name, file } of entries) write(file, `module.exports = require('./${BUNDLE}')['${name}'];\n`);
}

/** Makes all of these files. The wasm must be built. */
export async function makeBase64AndCjs() {
  rmSync(path.join(root, CJS), { recursive: true, force: true });
  mkdirSync(path.join(root, CJS), { recursive: true });
  for (const name of PROGRAMS) writeBase64(name);
  await writeCjs();
  const made = [...PROGRAMS.map((name) => `dist/${name}_base64.js`), `${CJS}/${BUNDLE}`];
  const bytes = (file) => statSync(path.join(root, file)).size;
  console.log(made.map((file) => `${file}: ${bytes(file)} bytes`).join('\n'));
}

if (path.resolve(process.argv[1]) === fileURLToPath(import.meta.url)) await makeBase64AndCjs();
