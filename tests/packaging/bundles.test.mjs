// The package in bundles of esbuild and Rollup, which leave `new URL("…", import.meta.url)` as it is: with the wasm as
// text (the condition `base64`), with the files imported, and with no setting.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cpSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import * as esbuild from 'esbuild';
import { launchBrowser } from '../../.ci/browser.mjs';
import { serve } from '../../.ci/serve.mjs';
import { startStandIn } from '../stand-in/server.mjs';
import { assertDone, visit } from './page.mjs';
import { install, pack } from './project.mjs';

const exec = promisify(execFile);
const require = createRequire(path.join(process.env.ROLLUP, 'package.json'));
const { rollup } = require('rollup');
const { nodeResolve } = require('@rollup/plugin-node-resolve');
const files = require('@rollup/plugin-url');

let packed;
let standIn;
let project;
before(async () => {
  packed = pack();
  standIn = await startStandIn();
  project = install(packed, 'bundled');
});
after(async () => {
  await standIn?.close();
  packed?.remove();
});

const model = (lane) => `${standIn.url}/lane/${lane}/v1/chat/completions`;
/** Builds with esbuild in `out`; `settings` are the application's. */
const withEsbuild = (out, entry, settings) =>
  esbuild.build({
    absWorkingDir: project,
    entryPoints: { main: entry },
    outdir: out,
    bundle: true,
    format: 'esm',
    logLevel: 'silent',
    ...settings,
  });

async function withRollup(out, entry, plugins) {
  const warnings = [];
  const bundle = await rollup({
    input: path.join(project, entry),
    plugins,
    onwarn: (warning) => warnings.push(warning),
  });
  await bundle.write({ dir: path.join(project, out), entryFileNames: 'main.js' });
  await bundle.close();
  assert.deepEqual(
    // Cycles inside the package are types' own; an unresolved import would fail at run time.
    warnings.filter(({ code }) => code !== 'CIRCULAR_DEPENDENCY').map(({ message }) => message),
    [],
  );
}

/** Each build, and how many programs its page fetches as files. The last one is for the long mode. */
const BUILDS = [
  ['esbuild, the condition base64', 0, (out) => withEsbuild(out, 'main.js', { conditions: ['base64'] })],
  [
    'esbuild, the files imported',
    3,
    (out) => withEsbuild(out, 'with-files.js', { loader: { '.wasm': 'file' }, publicPath: '/' }),
  ],
  [
    'Rollup, the condition base64',
    0,
    (out) => withRollup(out, 'main.js', [nodeResolve({ browser: true, exportConditions: ['base64'] })]),
  ],
  [
    'Rollup, the files imported',
    3,
    (out) =>
      withRollup(out, 'with-files.js', [
        nodeResolve({ browser: true }),
        files({ include: ['**/*.wasm'], limit: 0, publicPath: '/' }),
      ]),
  ],
].slice(0, process.env.RETHREAD_LONG ? undefined : -1);

test('r50 pages of esbuild and Rollup, with the wasm as text and as files', { timeout: 180_000 }, async () => {
  const browser = await launchBrowser();
  try {
    for (const [name, programs, build] of BUILDS) {
      const lane = name.replace(/\W+/g, '-');
      await build(lane);
      cpSync(path.join(project, 'index.html'), path.join(project, lane, 'index.html'));
      const server = await serve({ folders: { '/': path.join(project, lane) } });
      try {
        const { answer, wasm } = await visit(browser, `${server.url}/`, lane, model);
        assertDone(answer);
        assert.equal(new Set(wasm).size, programs, name);
      } finally {
        await server.close();
      }
    }
    // With no setting the wasm is not there, and the error says what to do.
    await withEsbuild('unset', 'main.js', {});
    cpSync(path.join(project, 'index.html'), path.join(project, 'unset/index.html'));
    const server = await serve({ folders: { '/': path.join(project, 'unset') } });
    try {
      const { answer } = await visit(browser, `${server.url}/`, 'unset', model);
      assert.equal(answer.code, 'not_initialized');
      assert.match(answer.thrown, /404.*import `rethread\/base64`.*pass the address of `rethread\/rethread\.wasm`/);
    } finally {
      await server.close();
    }
  } finally {
    await browser.close();
  }
});

const run = async (file, lane) => {
  const { stdout } = await exec(process.execPath, [file, model(lane)], { cwd: path.dirname(file), timeout: 60_000 });
  return JSON.parse(stdout);
};

test('r50 a server in one file of esbuild, CommonJS, that needs no other file', async () => {
  const server = { platform: 'node', format: 'cjs', outExtension: { '.js': '.cjs' } };
  await withEsbuild('server', 'server.cjs', { ...server, conditions: ['base64'] });
  // Away from the project: no node_modules is near.
  cpSync(path.join(project, 'server/main.cjs'), path.join(packed.folder, 'alone/main.cjs'));
  const answer = await run(path.join(packed.folder, 'alone/main.cjs'), 'server');
  assert.equal(answer.thrown, undefined);
  assert.deepEqual(
    answer.answers.map(({ status }) => status),
    ['finished', 'finished'],
  );
  assert.deepEqual([answer.findings.includes('orphan_result'), answer.kept], [true, ['kept']]);
});

test('r50 a server bundled with no setting says that the package has to stay outside, and outside it works', async () => {
  await withEsbuild('inside', 'server.cjs', { platform: 'node', format: 'cjs', outExtension: { '.js': '.cjs' } });
  await assert.rejects(run(path.join(project, 'inside/main.cjs'), 'inside'), ({ stderr }) =>
    /the wasm of the package could not be read.*leave `rethread` out of the bundle/.test(stderr),
  );
  await withEsbuild('outside', 'server.cjs', {
    platform: 'node',
    format: 'cjs',
    packages: 'external',
    outExtension: { '.js': '.cjs' },
  });
  const answer = await run(path.join(project, 'outside/main.cjs'), 'outside');
  assert.deepEqual([answer.thrown, answer.kept], [undefined, ['kept']]);
});
