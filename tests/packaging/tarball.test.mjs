// What `npm pack` puts into the tarball: every file has a reason to be there, and each entry a size that is printed.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import * as esbuild from 'esbuild';
import { commonJsEntries } from '../../.ci/base64-and-cjs.mjs';
import { linksOf } from '../../.ci/links.mjs';
import { pack, repository } from './project.mjs';

const read = (file) => readFileSync(path.join(repository, file), 'utf8');
const { bin, exports, peerDependencies, sideEffects } = JSON.parse(read('package.json'));
const KB = 1024;

/** Files outside of js/, whose files are there because an entry imports them. */
const EXPECTED = [
  'package.json',
  'README.md',
  'LICENSE-MIT',
  'LICENSE-APACHE',
  // Programs with their glue, and the programs that are text.
  ...['rethread', 'stores', 'formats', 'testing'].flatMap((name) => [`dist/${name}.js`, `dist/${name}_bg.wasm`]),
  ...['rethread', 'stores', 'formats'].map((name) => `dist/${name}_base64.js`),
  'dist/cjs/rethread.cjs',
  ...commonJsEntries().map(({ file }) => file.slice(2)),
];
/** Pages for readers, and one for coding agents. */
const isPage = (file) => /^docs\/((guides|rules)\/)?[\w-]+\.md$|^docs\/skills\/rethread\/SKILL\.md$/.test(file);
const isTracked = (file) => file.startsWith('dist/') || tracked.has(file);

let packed;
let tracked;
before(() => {
  packed = pack();
  tracked = new Set(execFileSync('git', ['ls-files'], { cwd: repository, encoding: 'utf8' }).split('\n'));
});
after(() => packed?.remove());

/** The files that exports and bin name. */
function targets() {
  const found = [];
  const add = (target) =>
    typeof target === 'string' ? found.push(target.slice(2)) : Object.values(target).forEach(add);
  add(exports);
  add(bin);
  return found;
}

/** The files of js/ that the named ones import, directly or not, with the declarations that stand beside them. */
function reachable() {
  const found = new Set();
  const visit = (file) => {
    if (found.has(file) || !file.startsWith('js/')) return;
    found.add(file);
    const isDeclaration = file.endsWith('.d.ts');
    for (const [, name] of read(file).matchAll(/(?:from|import)[ (]*['"](\.{1,2}\/[^'"]+)['"]/g)) {
      const target = path.posix.join(path.posix.dirname(file), name);
      // A type of JSDoc or of a declaration has the name of the module that it declares.
      const declaration = target.replace(/(\.d\.ts|\.js)$/, '.d.ts');
      const both = [target, declaration].filter((one) => packed.files.includes(one));
      for (const one of isDeclaration ? both.filter((one) => one === declaration) : both) visit(one);
      assert.ok(both.length || target.startsWith('dist/'), `${file} imports ${target}`);
    }
  };
  targets().forEach(visit);
  return found;
}

test('r50 the tarball has the listed files, what they import and pages, and nothing that is not in the repository', () => {
  const wanted = new Set([...EXPECTED, ...reachable()]);
  const stray = packed.files.filter((file) => !wanted.has(file) && !isPage(file));
  assert.deepEqual(stray, [], 'a file that nothing imports');
  assert.deepEqual(
    [...wanted, ...targets()].filter((file) => !packed.files.includes(file)),
    [],
    'a file that is missing',
  );
  assert.deepEqual(
    packed.files.filter((file) => !isTracked(file)),
    [],
    'a file of this checkout alone',
  );
});

test('r50 what the build writes as code names no folder of its machine', () => {
  const machine = /\/(?:root|home|Users|work|runner)\/[\w.-]+\//;
  for (const file of packed.files.filter((name) => /^dist\/.*\.c?js$/.test(name) && !/_base64/.test(name)))
    assert.doesNotMatch(read(file), machine, file);
});

test('the tarball contains every page of docs/ that the README and the types name', () => {
  const texts = ['README.md', ...packed.files.filter((file) => file.endsWith('.d.ts'))].map(read);
  const named = new Set(texts.join('\n').match(/\bdocs\/[\w/-]+\.md\b/g));
  assert.ok(named.has('docs/sessions.md') && named.size >= 6);
  assert.deepEqual(
    [...named].filter((file) => !packed.files.includes(file)),
    [],
  );
  assert.ok(!packed.files.includes('docs/requirements.md'), "the table of the project's own tests");
});

test('the tarball contains every file to which its pages link', () => {
  const pages = packed.files.filter((file) => file.endsWith('.md'));
  const gone = pages.flatMap((file) =>
    linksOf(read(file))
      .filter(({ target }) => !/^([a-z]+:|#)/.test(target))
      .map(({ line, target }) => ({ from: `${file}:${line}`, to: path.join(path.dirname(file), target.split('#')[0]) }))
      .filter(({ to }) => !packed.files.some((one) => one === to || one.startsWith(`${to}/`))),
  );
  assert.deepEqual(gone, []);
});

test('a bundler keeps the entries', () => {
  // They hand over the wasm as they are evaluated: a bundler that dropped them would drop the wasm.
  assert.deepEqual(sideEffects, ['./js/entry/*.js']);
});

/** The minified code that an entry loads at first in a browser, with the wasm of its programs; {code, wasm} in bytes of
 *  gzip. `programs` are those whose glue is in the code. */
async function sizeOf(file) {
  const { metafile, outputFiles } = await esbuild.build({
    absWorkingDir: repository,
    entryPoints: [file],
    bundle: true,
    splitting: true,
    minify: true,
    write: false,
    metafile: true,
    format: 'esm',
    outdir: 'out',
    external: ['node:*', '*.wasm', ...Object.keys(peerDependencies).flatMap((name) => [name, `${name}/*`])],
  });
  const contents = new Map(outputFiles.map((one) => [path.relative(repository, one.path), one.contents]));
  // With what is imported at once; what is imported later is a chunk that no static import names.
  const chunks = new Set();
  const add = (name) => {
    if (chunks.has(name) || !metafile.outputs[name]) return;
    chunks.add(name);
    for (const { path: next, kind } of metafile.outputs[name].imports) if (kind === 'import-statement') add(next);
  };
  add(Object.keys(metafile.outputs).find((name) => metafile.outputs[name].entryPoint === file));
  const inputs = [...chunks].flatMap((name) => Object.keys(metafile.outputs[name].inputs));
  const programs = inputs
    .map((input) => /^dist\/(\w+)\.js$/.exec(input)?.[1])
    .filter((name) => packed.files.includes(`dist/${name}_bg.wasm`));
  // Unless the code has them as text, or an entry that the application imports loads them.
  const wasm = programs
    .filter((name) => file.includes('/entry/') && !inputs.includes(`dist/${name}_base64.js`))
    .reduce((sum, name) => sum + gzipSync(readFileSync(path.join(repository, `dist/${name}_bg.wasm`))).length, 0);
  return { code: [...chunks].reduce((sum, name) => sum + gzipSync(contents.get(name)).length, 0), wasm, programs };
}

test('r50 the size of each entry', async (t) => {
  t.diagnostic(`${'entry'.padEnd(26)}${'code, gzip'.padStart(12)}${'wasm, gzip'.padStart(12)}`);
  for (const [name, target] of Object.entries(exports)) {
    const file = typeof target === 'string' ? target : target.default;
    if (!file.endsWith('.js')) continue;
    const { code, wasm, programs } = await sizeOf(file.slice(2));
    const row = [code, wasm].map((bytes) => `${(bytes / KB).toFixed(1)} KB`.padStart(12)).join('');
    t.diagnostic(`${name.replace('.', 'rethread').padEnd(26)}${row}`);
    assert.ok(code > 0);
    // Programs are the most of it; an adapter, a driver and `rethread/host` have none. `rethread/ai-sdk` calls that of
    // `rethread`, of whose sessions it is given one.
    if (file.includes('/entry/')) assert.equal(wasm > 0, !file.includes('base64'), name);
    else assert.deepEqual(programs, name === './ai-sdk' ? ['rethread'] : [], name);
  }
  const { size, unpackedSize } = packed;
  t.diagnostic(`the tarball: ${(size / KB / KB).toFixed(1)} MB, ${(unpackedSize / KB / KB).toFixed(1)} MB unpacked`);
  assert.ok(size < 8 * KB * KB, `${size} bytes`);
});
