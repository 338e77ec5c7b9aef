// Files of the package that are made of others: the wasm as base64 in modules, and CommonJS for programs that cannot
// `require` modules. Run alone, it makes them for the wasm that is in dist/: after a change of js/ alone.
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

function inline(name) {
  const packed = gzipSync(readFileSync(path.join(root, `dist/${name}_bg.wasm`)), { level: 9 });
  write(`dist/${name}_base64.js`, `// gzip of ${name}_bg.wasm.\nexport default '${packed.toString('base64')}';\n`);
}

/** The entries that have a file for `require`: their names, that file, and the module of which it has the exports. */
export function requirable() {
  const { exports } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8'));
  return Object.entries(exports)
    .filter(([, target]) => target.node?.require)
    .map(([name, { node }]) => ({ name, file: node.require, source: node.default }));
}

/** One file has the code of all entries, so that they share their classes and open runs as the modules do. An entry is
 *  evaluated when it is required. */
async function bundle() {
  const { build } = await import('esbuild');
  const entries = requirable();
  const getters = entries.map(({ name, source }) => `get ${JSON.stringify(name)}() { return require("${source}"); },`);
  await build({
    stdin: { contents: `module.exports = {\n${getters.join('\n')}\n};`, resolveDir: root, loader: 'js' },
    outfile: path.join(root, CJS, BUNDLE),
    bundle: true,
    format: 'cjs',
    platform: 'node',
    target: 'node20.3',
    packages: 'external',
    // As far from dist/ as the entries are, so that their relative addresses stay right.
    define: { 'import.meta.url': '__moduleUrl' },
    banner: {
      js: '// Made of js/ by .ci/inlined.mjs.\nconst __moduleUrl = require("node:url").pathToFileURL(__filename).href;',
    },
    logLevel: 'warning',
  });
  for (const { name, file } of entries) write(file, `module.exports = require('./${BUNDLE}')['${name}'];\n`);
}

/** Makes them all. The programs must be built. */
export async function makeInlined() {
  rmSync(path.join(root, CJS), { recursive: true, force: true });
  mkdirSync(path.join(root, CJS), { recursive: true });
  for (const name of PROGRAMS) inline(name);
  await bundle();
  const made = [...PROGRAMS.map((name) => `dist/${name}_base64.js`), `${CJS}/${BUNDLE}`];
  const bytes = (file) => statSync(path.join(root, file)).size;
  console.log(made.map((file) => `${file}: ${bytes(file)} bytes`).join('\n'));
}

if (path.resolve(process.argv[1]) === fileURLToPath(import.meta.url)) await makeInlined();
