// Runs all checks and tests, two steps at once, and prints them one after another.
//
//   npm test                                  all, stopping at the first failure
//   npm test -- --only native --only browser  these
//   npm test -- --keep-going                  all, whatever fails
//   npm test -- --long                        many more generated cases, faults of stores and kills
//   npm test -- --list                        the steps, and what each protects

import { readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { build } from './build.mjs';
import { checks, componentImports, imports, report } from './checks.mjs';
import { runNodeTests } from './node-tests.mjs';
import { flushOutput, runStepInThisProcess, runSteps } from './run-steps.mjs';
import {
  agentPackages,
  aiSdkReact,
  betterSqlite3,
  nodeWithSqlite,
  postgresPrograms,
  redisProgram,
  rollup,
  vite,
  vitest,
  webpack,
  wrangler,
} from './servers.mjs';
import { files, output, root, run } from './shell.mjs';
import { buildLaterWasm } from '../tests/evolution/builds.mjs';
import { chromedriverPath, chromium, chromiumPath, npm, rust, testRunner, wasmPack, wasmtime } from './tools.mjs';

const WASM = 'wasm32-unknown-unknown';
/** For cargo: the core with everything that a test of it needs. */
const CORE = ['--locked', '--no-default-features', '--features', 'conformance'];

class Skip extends Error {}

function checked(chosen) {
  const count = report(chosen);
  if (count) throw new Error(`${count} complaints`);
}

/** Runs the *.test.mjs of a folder: two files at once, since most wait for a page, a server or a timer. Tests find the
 *  browser in CHROMIUM. `ofPrograms`: they start browsers or servers, and a file that fails runs once more. Resolves to
 *  a note of that for the summary. */
function nodeTests(folder, minutes, { env: more = {}, node = process.execPath, filesAtOnce = 2, ofPrograms } = {}) {
  const found = files(folder, '.test.mjs');
  if (!found.length) throw new Skip(`no ${folder}/*.test.mjs`);
  const env = { CHROMIUM: chromiumPath() ?? '', CHROMEDRIVER: chromedriverPath() ?? '', ...more };
  const timeoutMs = values.long ? 3_600_000 : 360_000;
  return runNodeTests(found, { node, filesAtOnce, timeoutMs, minutes, env, secondTry: ofPrograms && !values.long });
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
    // wasm-pack compiles with the profile `dev` what cargo then compiles with `test`: once, if both are equal.
    { minutes: 40, env: { WASM_BINDGEN_TEST_TIMEOUT: '180', CARGO_PROFILE_DEV_OPT_LEVEL: '1' } },
  );
}

const clippy = (...args) =>
  run('cargo', ['clippy', '--locked', '--no-default-features', ...args, '--', '-D', 'warnings']);

/** The steps, in the order in which they begin. `after`: what goes before this one if it runs. `needs`: what runs before
 *  this one in any case. `uses`: installed before the first step. `target`: the folder of cargo that it fills, one at a
 *  time. `alone`: it takes both cores. */
const STEPS = [
  {
    name: 'fmt',
    why: 'one style, so that a diff shows what changed',
    uses: [rust, npm],
    step: async () => {
      await run('cargo', ['fmt', '--check']);
      await run(process.execPath, ['node_modules/@biomejs/biome/bin/biome', 'ci', '--error-on-warnings', '.']);
    },
  },
  {
    name: 'purity',
    why: 'dependencies between modules, and a core free of its hosts',
    after: ['fmt'],
    uses: [rust],
    step: async () => checked(checks),
  },
  {
    name: 'clippy',
    why: 'lints of the core, its tests and both bindings',
    after: ['fmt'],
    target: 'debug',
    uses: [rust],
    step: async () => {
      await clippy('--lib');
      await clippy('--all-targets', '--features', 'conformance');
      await clippy('--lib', '--tests', '--target', WASM, '--features', 'web,stores,testing');
      for (const alone of ['web', 'stores', 'formats', 'testing'])
        await clippy('--lib', '--target', WASM, '--features', alone);
      for (const world of ['component', 'engine', 'stored,conformance'])
        await clippy('--lib', '--target', WASM, '--features', world);
    },
  },
  {
    name: 'build',
    why: 'dist, within its size budget',
    after: ['fmt'],
    uses: [rust, npm],
    step: async () => {
      await build();
    },
  },
  {
    name: 'native',
    why: 'the core as a native library',
    after: ['fmt'],
    target: 'debug',
    uses: [rust],
    // Beside another step it takes twice as long.
    step: () => run('cargo', ['test', ...CORE], { minutes: 40 }),
  },
  {
    name: 'answers',
    why: 'what the native core answers, for the comparison with the components',
    after: ['fmt', 'native'],
    target: 'debug',
    uses: [rust],
    // As `native` has compiled it.
    step: () => run('cargo', ['build', ...CORE, '--profile', 'test', '--example', 'answers']),
  },
  {
    name: 'evolution',
    why: 'two builds of the crate on one database',
    after: ['fmt'],
    target: 'debug',
    uses: [rust],
    step: () => nodeTests('tests/evolution', 10),
  },
  {
    name: 'wasm',
    why: 'the same core, as wasm in Node',
    after: ['fmt'],
    target: 'debug',
    uses: [rust],
    step: () => wasmPackTest(['--node'], wasmTests(false)),
  },
  {
    name: 'browser',
    why: 'the web binding and its stores, in Chromium',
    after: ['fmt'],
    target: 'debug',
    uses: [rust, chromium],
    step: async () => {
      const tests = wasmTests(true);
      await wasmPackTest(['--headless', '--chrome', '--chromedriver', chromedriverPath()], {
        ...tests,
        features: [...new Set(['web', ...tests.features])],
      });
    },
  },
  {
    name: 'types',
    why: 'the JavaScript, the README and docs against the public types, and programs against them',
    after: ['fmt'],
    uses: [npm],
    step: async () => {
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
      await nodeTests('tests/types', values.long ? 20 : 5); // the site is built in long runs
    },
  },
  {
    name: 'imports',
    why: 'imports of the wasm and the component',
    after: ['fmt'],
    needs: ['build'],
    step: async () => checked({ imports, componentImports }),
  },
  {
    name: 'packaging',
    why: 'the packed tarball: its files, in Node, a plain page, pages of bundlers, and workerd (--long: Bun, Deno, Next and more), and the JavaScript of README and docs',
    after: ['fmt'],
    needs: ['build'],
    uses: [npm, chromium],
    step: async () => {
      const env = {
        VITEST: await vitest(),
        VITE: JSON.stringify(await vite()),
        WEBPACK: await webpack(),
        ROLLUP: await rollup(),
      };
      return nodeTests('tests/packaging', values.long ? 60 : 15, { env, ofPrograms: true });
    },
  },
  {
    name: 'stand-in',
    why: 'the model that all other tests use',
    after: ['fmt'],
    step: () => nodeTests('tests/stand-in', 10),
  },
  {
    name: 'bindings',
    why: 'the JavaScript classes, in Node, in memory',
    after: ['fmt'],
    needs: ['build'],
    uses: [npm],
    step: () => nodeTests('tests/bindings', 10),
  },
  {
    name: 'servers',
    why: 'the examples, and stores on servers: SQLite, better-sqlite3, libSQL, PostgreSQL, Redis, unstorage, and in workerd D1, Durable Objects and Workers KV',
    after: ['fmt'],
    needs: ['build'],
    uses: [npm, chromium],
    step: async () => {
      const env = {
        POSTGRES_BIN: await postgresPrograms(),
        REDIS_SERVER: await redisProgram(),
        WRANGLER: await wrangler(),
        AI_SDK_REACT: await aiSdkReact(),
        ...(values.long && (await agentPackages())),
      };
      const onServers = { env, node: await nodeWithSqlite(), ofPrograms: true };
      const note = await nodeTests('tests/servers', values.long ? 60 : 20, onServers);
      await nodeTests('tests/better-sqlite3', 10, { env: { BETTER_SQLITE3: await betterSqlite3() } });
      return note;
    },
  },
  {
    name: 'judges',
    why: "the providers' own clients and the ai package accept what we write, and read streams alike",
    after: ['fmt'],
    needs: ['build'],
    uses: [npm],
    step: () => nodeTests('tests/judges', 10),
  },
  {
    name: 'component',
    why: 'native, web build and components: the same answers and bodies; hosts that are killed, stores, hostile hosts',
    after: ['fmt'],
    needs: ['build', 'answers'],
    uses: [npm],
    step: async () => {
      const target = path.resolve(root, process.env.CARGO_TARGET_DIR ?? 'target');
      const env = {
        RETHREAD_ANSWERS: path.join(target, 'debug/examples/answers'),
        PYTHONPATH: await wasmtime(),
      };
      // These compute most of the time.
      await nodeTests('tests/component', 15, { env, filesAtOnce: 1 });
    },
  },
  {
    name: 'cli',
    why: 'npx rethread: check, repair, convert',
    after: ['fmt'],
    needs: ['build'],
    step: () => nodeTests('tests/cli', 5),
  },
  {
    name: 'fetch',
    why: 'rethread/fetch in every SDK, against the model, in Node, a page and workerd',
    after: ['fmt'],
    needs: ['build'],
    uses: [npm, chromium],
    step: () => nodeTests('tests/fetch', 15, { ofPrograms: true }),
  },
  {
    name: 'e2e',
    why: 'whole chats in Chromium',
    after: ['fmt'],
    needs: ['build'],
    alone: true,
    uses: [npm, chromium],
    step: async () => {
      await buildLaterWasm();
      // Each starts browsers, which take both cores.
      return nodeTests('tests/browser', values.long ? 600 : 40, { filesAtOnce: 1, ofPrograms: true });
    },
  },
];

const { values } = parseArgs({
  options: {
    only: { type: 'string', multiple: true, default: [] },
    'keep-going': { type: 'boolean' },
    long: { type: 'boolean' },
    list: { type: 'boolean' },
    // In the process of one step, which this program starts.
    step: { type: 'string' },
  },
});
if (values.list) {
  for (const { name, why } of STEPS) console.log(`${name.padEnd(10)} ${why}`);
  process.exit(0);
}
const stepNamed = (name) => STEPS.find((step) => step.name === name);
if (values.step) await runStepInThisProcess(stepNamed(values.step), Skip);

const only = values.only.flatMap((name) => name.split(','));
const unknown = only.filter((name) => !stepNamed(name));
if (unknown.length) {
  console.error(`no step ${unknown.join(', ')}: one of ${STEPS.map(({ name }) => name).join(', ')}`);
  process.exit(2);
}
// Read by the tests that generate their cases.
if (values.long) process.env.RETHREAD_LONG = '1';
const needed = new Set(only.flatMap((name) => [name, ...(stepNamed(name).needs ?? [])]));
const chosen = STEPS.filter(({ name }) => !only.length || needed.has(name));
// Not by the steps themselves, of which two run at once.
for (const install of new Set(chosen.flatMap(({ uses }) => uses ?? []))) await install();

const results = await runSteps(chosen, {
  program: fileURLToPath(import.meta.url),
  args: values.long ? ['--long'] : [],
  keepGoing: values['keep-going'],
});
const count = (wanted) => results.filter(({ outcome }) => outcome === wanted).length;
console.log(`\n${results.map(({ line }) => line).join('\n')}\n`);
console.log(`${count('ok')} passed, ${count('FAIL')} failed${count('skip') ? `, ${count('skip')} skipped` : ''}`);
await flushOutput();
process.exit(count('FAIL') || !count('ok') ? 1 : 0);
