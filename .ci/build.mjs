// Builds the package (cargo, wasm-bindgen, wasm-opt) in dist/ with what is made of it (.ci/base64-and-cjs.mjs) and
// prints its size, and the components in dist/component/.
//
//   npm run build                          both, optimized, and the conformance suite of `rethread/testing`
//   npm run build -- --quick               the package alone, unoptimized, for trying a change out
//   npm run build -- --component           the components alone, or those of the worlds that are named
//   npm run build -- --component --quick   the same, unoptimized

import { copyFileSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import { asFactory } from './glue.mjs';
import { makeBase64AndCjs } from './base64-and-cjs.mjs';
import { files, hash, present, read, root, run } from './shell.mjs';
import { bindgen, npm, rust } from './tools.mjs';

const KB = 1024;
/** Maximum brotli size of wasm and glue of the complete program together. A larger build fails. */
export const BUDGET = 950 * KB;

const STAMP = 'dist/.stamp';
const STORES_STAMP = 'dist/.stores-stamp';
const FORMATS_STAMP = 'dist/.formats-stamp';
const TESTING_STAMP = 'dist/.testing-stamp';
const COMPONENT_STAMP = 'dist/component/.stamp';
const OUT = ['dist/rethread_bg.wasm', 'dist/rethread.js'];
/** SQL and key-value stores, which the complete program loads with the first store that needs them. */
const STORES = ['dist/stores_bg.wasm', 'dist/stores.js'];
/** The program with wire formats only, for `rethread/fetch`, `rethread/formats` and the command line. */
const FORMATS = ['dist/formats_bg.wasm', 'dist/formats.js'];
/** The conformance suite, for `rethread/testing`. */
const TESTING = ['dist/testing_bg.wasm', 'dist/testing.js'];
/** The component of each world of wit/world.wit, and the feature that it is built with. */
export const WORLDS = {
  formats: { feature: 'component', file: 'dist/component/formats.wasm' },
  engine: { feature: 'engine', file: 'dist/component/engine.wasm' },
  stored: { feature: 'stored', file: 'dist/component/stored.wasm' },
  /** For tests of hosts: not optimized. */
  conformance: { feature: 'stored,conformance', file: 'dist/component/conformance.wasm', isTest: true },
};
const COMPONENTS = Object.values(WORLDS).map(({ file }) => file);

/** The features that rustc uses by default for this target since 1.82: Safari 16.4, Node 20 and workerd support
 *  them. */
const FEATURES = [
  'bulk-memory',
  'bulk-memory-opt',
  'call-indirect-overlong',
  'multivalue',
  'mutable-globals',
  'nontrapping-float-to-int',
  'reference-types',
  'sign-ext',
];

const inputs = () => [
  ...files('src', '.rs'),
  ...files('wit'),
  'Cargo.toml',
  'Cargo.lock',
  'rust-toolchain.toml',
  '.cargo/config.toml',
  'package-lock.json',
  '.ci/build.mjs',
  '.ci/glue.mjs',
  ...files('.ci/bindgen'),
];

function sizes(made) {
  return made.map((file) => {
    const bytes = readFileSync(path.join(root, file));
    const brotli = brotliCompressSync(bytes, {
      params: { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length },
    });
    return { file, raw: bytes.length, gzip: gzipSync(bytes, { level: 9 }).length, brotli: brotli.length };
  });
}

const kb = (bytes) => `${(bytes / KB).toFixed(1)} KB`.padStart(11);

/** Prints the sizes of a wasm and its glue; returns their sums. */
function table(made) {
  const rows = sizes(made);
  const sum = (key) => rows.reduce((all, row) => all + row[key], 0);
  const total = { file: 'total', raw: sum('raw'), gzip: sum('gzip'), brotli: sum('brotli') };
  console.log(`${'size'.padEnd(24)}${['raw', 'gzip -9', 'brotli 11'].map((head) => head.padStart(11)).join('')}`);
  for (const row of [...rows, total])
    console.log(`${row.file.padEnd(24)}${kb(row.raw)}${kb(row.gzip)}${kb(row.brotli)}`);
  return total;
}

/** Prints the tables; throws when the budget is exceeded. */
export function weigh() {
  table(FORMATS);
  table(STORES);
  const total = table(OUT).brotli;
  console.log(`budget: ${kb(total).trim()} of ${kb(BUDGET).trim()} brotli (${Math.round((100 * total) / BUDGET)} %)`);
  if (total > BUDGET) throw new Error(`the package is ${total - BUDGET} bytes over its budget`);
}

/** Compiles the wasm of one of the hosts, with a cargo profile, and returns its path. */
async function compile(feature, profile = 'release') {
  await run('cargo', [
    'build',
    '--lib',
    '--profile',
    profile,
    '--target',
    'wasm32-unknown-unknown',
    '--no-default-features',
    '--features',
    feature,
    '--locked',
  ]);
  // Programs of one profile have one file: a copy stays when the next one is compiled.
  const folder = path.resolve(root, process.env.CARGO_TARGET_DIR ?? 'target', 'wasm32-unknown-unknown', profile);
  const copy = path.join(folder, `${feature.replaceAll(',', '-')}.wasm`);
  copyFileSync(path.join(folder, 'rethread.wasm'), copy);
  return copy;
}

/** Optimizes a wasm in place. Functions with one caller are not inlined: the result would compress 5 % worse. Functions
 *  are sorted by name, so that similar ones, such as those of one generic type, are close to each other: that
 *  compresses 0.5 % better. */
async function optimize(file) {
  const before = statSync(path.join(root, file)).size;
  await run(
    process.execPath,
    [
      'node_modules/binaryen/bin/wasm-opt',
      ...FEATURES.map((name) => `--enable-${name}`),
      '-Oz',
      '--one-caller-inline-max-function-size=5',
      '--reorder-functions-by-name',
      '--strip-debug',
      '--strip-target-features',
      file,
      '-o',
      file,
    ],
    { minutes: 10 },
  );
  console.log(`wasm-opt: ${before} -> ${statSync(path.join(root, file)).size} bytes`);
}

async function buildProgram(feature, profile, made) {
  await bind(await compile(feature, profile), made);
  await optimize(made[0]);
}

/** With the quick profile: it checks stores in tests, where size and speed matter less than the time of the build. */
async function buildTesting() {
  await bind(await compile('testing', 'quick'), TESTING);
}

/** Writes the wasm and its glue for a compiled module. */
async function bind(raw, [wasm, glue]) {
  await run(await bindgen(), [raw, 'dist', path.basename(glue, '.js')]);
  if (!present(wasm)) throw new Error(`${wasm} was not written`);
  const file = path.join(root, glue);
  writeFileSync(file, asFactory(readFileSync(file, 'utf8')));
}

/** Builds a component of each world. Not for wasm32-wasip2: the standard library of that target always imports WASI,
 *  and a component without imports runs on every host. The module contains its WIT. */
async function buildComponents({ quick = false, worlds = Object.keys(WORLDS) } = {}) {
  const { componentNew } = await import('@bytecodealliance/jco-transpile/wasm-tools');
  for (const world of worlds) {
    const { feature, file, isTest } = WORLDS[world];
    const isOptimized = !quick && !isTest;
    copyFileSync(path.resolve(root, await compile(feature, isOptimized ? 'release' : 'quick')), path.join(root, file));
    if (isOptimized) await optimize(file);
    const made = await componentNew(readFileSync(path.join(root, file)));
    writeFileSync(path.join(root, file), made);
    console.log(`component ${world}: ${made.length} bytes`);
  }
}

/** Builds the package, unoptimized unless an optimized build of the same source is there. */
export async function buildForDemo() {
  const wanted = hash(inputs());
  const isOptimized =
    [STAMP, STORES_STAMP, FORMATS_STAMP].every((stamp) => present(stamp) && read(stamp) === wanted) &&
    [...OUT, ...STORES, ...FORMATS].every(present);
  if (!isOptimized) await quickBuild();
}

/** The package, and the component unless that is not asked for. `quick` builds the package alone, without optimizing
 *  it. */
export async function build({ component = true, quick = false } = {}) {
  if (quick) return quickBuild();
  const wanted = hash(inputs());
  const stale = (stamp, made) => !(present(stamp) && read(stamp) === wanted && made.every(present));
  const parts = [
    [STAMP, OUT, () => buildProgram('web', 'release', OUT)],
    [STORES_STAMP, STORES, () => buildProgram('stores', 'release', STORES)],
    [FORMATS_STAMP, FORMATS, () => buildProgram('formats', 'formats', FORMATS)],
    [TESTING_STAMP, TESTING, buildTesting],
    ...(component ? [[COMPONENT_STAMP, COMPONENTS, buildComponents]] : []),
  ].filter(([stamp, made]) => stale(stamp, made));
  if (!parts.length) {
    console.log('build: dist is up to date');
    // They are made of js/ as well.
    await npm();
    await makeBase64AndCjs();
    return weigh();
  }
  await rust();
  await npm();
  mkdirSync(path.join(root, path.dirname(COMPONENT_STAMP)), { recursive: true });
  // Removed first: a build that fails must not look finished.
  for (const file of parts.flatMap(([stamp, made]) => [stamp, ...made])) rmSync(path.join(root, file), { force: true });
  // Two at a time: a program is linked on one core. After a failure the other one ends and no further one begins.
  const left = parts.values();
  let failure = null;
  const lane = async () => {
    for (const [stamp, , make] of left) {
      if (failure) return;
      await make({});
      writeFileSync(path.join(root, stamp), wanted);
    }
  };
  const fail = (error) => {
    failure ??= error;
  };
  await Promise.all([lane().catch(fail), lane().catch(fail)]);
  if (failure) throw failure;
  await makeBase64AndCjs();
  weigh();
}

/** Skips optimization, for trying a change. One compilation has the whole program, under all four names. */
async function quickBuild() {
  await rust();
  mkdirSync(path.join(root, path.dirname(OUT[0])), { recursive: true });
  // So that the next full build does not take this one for an optimized one.
  for (const stamp of [STAMP, STORES_STAMP, FORMATS_STAMP, TESTING_STAMP])
    rmSync(path.join(root, stamp), { force: true });
  const raw = await compile('web,stores,testing', 'quick');
  for (const program of [OUT, STORES, FORMATS, TESTING]) await bind(raw, program);
  await npm();
  await makeBase64AndCjs();
}

/** The components alone, or those of the worlds that are named. The next full build makes optimized ones. */
async function componentsAlone(quick, named) {
  await rust();
  await npm();
  mkdirSync(path.join(root, path.dirname(COMPONENT_STAMP)), { recursive: true });
  rmSync(path.join(root, COMPONENT_STAMP), { force: true });
  await buildComponents({ quick, ...(named.length ? { worlds: named } : {}) });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const quick = process.argv.includes('--quick');
  const named = Object.keys(WORLDS).filter((world) => process.argv.includes(world));
  await (process.argv.includes('--component') ? componentsAlone(quick, named) : build({ quick })).catch((e) => {
    console.error(`build: ${e.message}`);
    process.exit(1);
  });
}
