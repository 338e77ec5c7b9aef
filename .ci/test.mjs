// Runs all checks and tests, step by step.
//
//   npm test                                  all, stopping at the first failure
//   npm test -- --only native --only browser  these
//   npm test -- --keep-going                  all, whatever fails
//   npm test -- --long                        many more generated cases, faults of stores and kills
//   npm test -- --list                        the steps, and what each protects

import { readFileSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { build } from './build.mjs';
import { checks, componentImports, imports, report } from './checks.mjs';
import {
  betterSqlite3,
  nodeWithSqlite,
  postgresPrograms,
  redisProgram,
  vite,
  vitest,
  webpack,
  wrangler,
} from './servers.mjs';
import { files, output, root, run } from './shell.mjs';
import { buildLaterWasm } from '../tests/evolution/builds.mjs';
import { chromedriverPath, chromium, chromiumPath, npm, rust, testRunner, wasmPack, wasmtime } from './tools.mjs';

const WASM = 'wasm32-unknown-unknown';

class Skip extends Error {}

function checked(chosen) {
  const count = report(chosen);
  if (count) throw new Error(`${count} complaints`);
}

/** Runs the *.test.mjs of a folder with node's test runner: two files at once, since most wait for a page, a server or
 *  a timer. Tests find the browser in CHROMIUM. */
async function nodeTests(folder, minutes, { env: more = {}, node = process.execPath, filesAtOnce = 2 } = {}) {
  const found = files(folder, '.test.mjs');
  if (!found.length) throw new Skip(`no ${folder}/*.test.mjs`);
  const env = { CHROMIUM: chromiumPath() ?? '', CHROMEDRIVER: chromedriverPath() ?? '', ...more };
  const timeout = values.long ? 3_600_000 : 180_000;
  const flags = ['--test', '--test-reporter=spec', `--test-timeout=${timeout}`, `--test-concurrency=${filesAtOnce}`];
  await run(node, [...flags, ...found], { minutes, env });
}

/** The test binaries of this crate that contain wasm tests. A file with `run_in_browser` runs in a browser. */
function wasmTests(inBrowser) {
  const { packages } = JSON.parse(output('cargo', ['metadata', '--no-deps', '--format-version', '1', '--locked']));
  const { targets } = packages.find(({ name }) => name === 'rethread');
  const named = targets
    .filter(({ kind }) => kind.includes('test'))
    .map((target) => ({ ...target, text: readFileSync(target.src_path, 'utf8') }))
    .filter(({ text }) => /wasm_bindgen_test/.test(text) && /run_in_browser/.test(text) === inBrowser);
  const args = named.flatMap(({ name }) => ['--test', name]);
  // The core's unit tests run in wasm wherever a module takes wasm_bindgen_test for its `test`.
  if (!inBrowser && files('src', '.rs').some((file) => /wasm_bindgen_test/.test(readFileSync(file, 'utf8'))))
    args.unshift('--lib');
  if (!args.length) throw new Skip(inBrowser ? 'no test says run_in_browser' : 'no test takes wasm_bindgen_test');
  return { args, features: [...new Set(named.flatMap((target) => target['required-features'] ?? []))] };
}

/** no-install: nothing is downloaded, wasm-bindgen is ours. */
async function wasmPackTest(where, { args, features }) {
  await testRunner();
  await wasmPack();
  const featureArgs = features.length ? ['--features', features.join(',')] : [];
  await run(
    'wasm-pack',
    ['test', '--mode', 'no-install', ...where, '.', '--locked', '--no-default-features', ...featureArgs, ...args],
    { env: { WASM_BINDGEN_TEST_TIMEOUT: '180' } },
  );
}

const clippy = (...args) =>
  run('cargo', ['clippy', '--locked', '--no-default-features', ...args, '--', '-D', 'warnings']);

const STEPS = [
  [
    'fmt',
    'one style, so that a diff shows what changed',
    async () => {
      await rust();
      await run('cargo', ['fmt', '--check']);
      await npm();
      await run(process.execPath, ['node_modules/@biomejs/biome/bin/biome', 'ci', '--error-on-warnings', '.']);
    },
  ],
  [
    'clippy',
    'lints of the core, its tests and both bindings',
    async () => {
      await rust();
      await clippy('--lib');
      await clippy('--all-targets', '--features', 'conformance');
      await clippy('--lib', '--tests', '--target', WASM, '--features', 'web,stores,testing');
      for (const alone of ['web', 'stores', 'formats', 'testing'])
        await clippy('--lib', '--target', WASM, '--features', alone);
      for (const world of ['component', 'engine', 'stored,conformance'])
        await clippy('--lib', '--target', WASM, '--features', world);
    },
  ],
  [
    'purity',
    'dependencies between modules, and a core free of its hosts',
    async () => {
      await rust();
      checked(checks);
    },
  ],
  [
    'native',
    'the core as a native library',
    async () => {
      await rust();
      await run('cargo', ['test', '--locked', '--no-default-features', '--features', 'conformance']);
    },
  ],
  [
    'evolution',
    'two builds of the crate on one database',
    async () => {
      await rust();
      await nodeTests('tests/evolution', 10);
    },
  ],
  ['wasm', 'the same core, as wasm in Node', () => wasmPackTest(['--node'], wasmTests(false))],
  [
    'browser',
    'the web binding and its stores, in Chromium',
    async () => {
      const tests = wasmTests(true);
      await chromium();
      await wasmPackTest(['--headless', '--chrome', '--chromedriver', chromedriverPath()], {
        ...tests,
        features: [...new Set(['web', ...tests.features])],
      });
    },
  ],
  [
    'types',
    'the JavaScript, the README and docs against the public types, and programs against them',
    async () => {
      await npm();
      const tsc = 'node_modules/typescript/bin/tsc';
      await run(process.execPath, [tsc, '--project', 'tsconfig.json']);
      // What tsconfig.json covers is left out.
      const programs = [...files('js', '.d.ts'), ...files('tests/types', '.ts')].filter(
        (file) => !/generated|documents|surface\.ts$/.test(file),
      );
      const flags =
        '--noEmit --strict --exactOptionalPropertyTypes --target esnext --lib esnext,dom,dom.iterable --module nodenext --types node'.split(
          ' ',
        );
      // The declarations of other libraries have errors with exactOptionalPropertyTypes.
      const isAdapter = (file) => /\badapters\b/.test(file);
      const check = (chosen, compiled) => run(process.execPath, [tsc, '--ignoreConfig', ...chosen, ...compiled]);
      await check(
        flags,
        programs.filter((file) => !isAdapter(file)),
      );
      await check(
        flags.filter((flag) => flag !== '--exactOptionalPropertyTypes'),
        programs.filter(isAdapter),
      );
      await nodeTests('tests/types', 5);
    },
  ],
  ['build', 'dist, within its size budget', () => build()],
  [
    'imports',
    'imports of the wasm and the component',
    async () => {
      await build();
      checked({ imports, componentImports });
    },
  ],
  [
    'packaging',
    'the packed tarball in Node, a plain page, pages of Vite and webpack, and workerd, and the JavaScript of README and docs',
    async () => {
      await Promise.all([build(), npm(), chromium()]);
      const env = { VITEST: await vitest(), VITE: JSON.stringify(await vite()), WEBPACK: await webpack() };
      await nodeTests('tests/packaging', 15, { env });
    },
  ],
  ['stand-in', 'the model that all other tests use', () => nodeTests('tests/stand-in', 10)],
  [
    'bindings',
    'the JavaScript classes, in Node, in memory',
    async () => {
      await Promise.all([build(), npm()]);
      await nodeTests('tests/bindings', 10);
    },
  ],
  [
    'servers',
    'the examples, and stores on servers: SQLite, better-sqlite3, libSQL, PostgreSQL, Redis, unstorage, and in workerd D1, Durable Objects and Workers KV',
    async () => {
      await Promise.all([build(), npm(), chromium()]);
      const env = {
        POSTGRES_BIN: await postgresPrograms(),
        REDIS_SERVER: await redisProgram(),
        WRANGLER: await wrangler(),
      };
      await nodeTests('tests/servers', values.long ? 60 : 20, { env, node: await nodeWithSqlite() });
      await nodeTests('tests/better-sqlite3', 10, { env: { BETTER_SQLITE3: await betterSqlite3() } });
    },
  ],
  [
    'judges',
    "the providers' own clients and the ai package accept what we write, and read streams alike",
    async () => {
      await Promise.all([build(), npm()]);
      await nodeTests('tests/judges', 10);
    },
  ],
  [
    'component',
    'native, web build and components: the same answers and bodies; hosts that are killed, stores, hostile hosts',
    async () => {
      await Promise.all([build(), npm()]);
      await run('cargo', ['build', '--locked', '--no-default-features', '--example', 'answers']);
      const target = path.resolve(root, process.env.CARGO_TARGET_DIR ?? 'target');
      const env = {
        RETHREAD_ANSWERS: path.join(target, 'debug/examples/answers'),
        PYTHONPATH: await wasmtime(),
      };
      // These compute most of the time.
      await nodeTests('tests/component', 15, { env, filesAtOnce: 1 });
    },
  ],
  [
    'cli',
    'npx rethread: check, repair, convert',
    async () => {
      await build();
      await nodeTests('tests/cli', 5);
    },
  ],
  [
    'fetch',
    'rethread/fetch in every SDK, against the model, in Node, a page and workerd',
    async () => {
      await Promise.all([build(), npm(), chromium()]);
      await nodeTests('tests/fetch', 15);
    },
  ],
  [
    'e2e',
    'whole chats in Chromium',
    async () => {
      await Promise.all([build(), npm(), chromium()]);
      await buildLaterWasm();
      // Each starts browsers, which take both cores.
      await nodeTests('tests/browser', values.long ? 600 : 40, { filesAtOnce: 1 });
    },
  ],
];

const { values } = parseArgs({
  options: {
    only: { type: 'string', multiple: true, default: [] },
    'keep-going': { type: 'boolean' },
    long: { type: 'boolean' },
    list: { type: 'boolean' },
  },
});
if (values.list) {
  for (const [name, why] of STEPS) console.log(`${name.padEnd(10)} ${why}`);
  process.exit(0);
}
// Read by the tests that generate their cases.
if (values.long) process.env.RETHREAD_LONG = '1';
const only = values.only.flatMap((name) => name.split(','));
const unknown = only.filter((name) => !STEPS.some(([step]) => step === name));
if (unknown.length) {
  console.error(`no step ${unknown.join(', ')}: one of ${STEPS.map(([name]) => name).join(', ')}`);
  process.exit(2);
}

const lines = [];
const count = { ok: 0, FAIL: 0, skip: 0 };
for (const [name, why, step] of STEPS) {
  if (only.length && !only.includes(name)) continue;
  console.log(`\n=== ${name}: ${why}`);
  const start = performance.now();
  let outcome = 'ok';
  let note = '';
  try {
    await step();
  } catch (e) {
    outcome = e instanceof Skip ? 'skip' : 'FAIL';
    note = e.message;
  }
  count[outcome] += 1;
  const line =
    `${outcome.padEnd(5)}${name.padEnd(11)}${((performance.now() - start) / 1000).toFixed(1).padStart(7)} s  ${note}`.trimEnd();
  console.log(line);
  lines.push(line);
  if (outcome === 'FAIL' && !values['keep-going']) break;
}

console.log(`\n${lines.join('\n')}\n`);
console.log(`${count.ok} passed, ${count.FAIL} failed${count.skip ? `, ${count.skip} skipped` : ''}`);
process.exit(count.FAIL || !count.ok ? 1 : 0);
