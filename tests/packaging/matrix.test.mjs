// The package in further runtimes and bundlers, each the real program: in the long mode alone, since they are large.

import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import * as esbuild from 'esbuild';
import { launchBrowser } from '../../.ci/browser.mjs';
import { bun, deno, next, parcel } from '../../.ci/matrix.mjs';
import { serve } from '../../.ci/serve.mjs';
import { startStandIn } from '../stand-in/server.mjs';
import { assertDone, visit } from './page.mjs';
import { install, pack } from './project.mjs';

const exec = promisify(execFile);
const long = { skip: process.env.RETHREAD_LONG ? false : 'RETHREAD_LONG', timeout: 900_000 };

let packed;
let standIn;
before(async () => {
  if (long.skip) return;
  packed = pack();
  standIn = await startStandIn();
});
after(async () => {
  await standIn?.close();
  packed?.remove();
});

const model = (lane) => `${standIn.url}/lane/${lane}/v1/chat/completions`;
const run = (program, args, cwd, env = {}) =>
  exec(program, args, { cwd, timeout: 600_000, maxBuffer: 1 << 26, env: { ...process.env, ...env } });

function assertChat(answer) {
  assert.equal(answer.thrown, undefined);
  assert.deepEqual(
    answer.answers.map(({ status }) => status),
    ['finished', 'finished'],
  );
  assert.ok(answer.invocations >= 2);
  assert.ok(answer.findings.includes('orphan_result'));
  assert.deepEqual(answer.kept, ['kept']);
}

async function assertPage(url, lane) {
  const browser = await launchBrowser();
  try {
    const { answer, wasm } = await visit(browser, url, lane, model);
    assertDone(answer);
    return wasm;
  } finally {
    await browser.close();
  }
}

async function assertFolder(folder, lane) {
  const server = await serve({ folders: { '/': folder } });
  try {
    return await assertPage(`${server.url}/`, lane);
  } finally {
    await server.close();
  }
}

test('r50 Bun: import, require and its bundler', long, async () => {
  const program = await bun();
  const project = install(packed, 'node', 'bun');
  const { stdout } = await run(program, ['main.js', model('bun-fetch'), model('bun')], project);
  assertDone(JSON.parse(stdout));
  const required = await run(
    program,
    [
      '--eval',
      `const { open } = require('rethread'); console.log(JSON.stringify((await import('rethread')).open === open))`,
    ],
    project,
  );
  assert.equal(required.stdout.trim(), 'true', 'one module');
  const page = install(packed, 'bundled', 'bun-page');
  await run(program, ['build', 'main.js', '--target=browser', '--outdir=out', '--conditions=base64'], page);
  cpSync(path.join(page, 'index.html'), path.join(page, 'out/index.html'));
  assert.deepEqual(await assertFolder(path.join(page, 'out'), 'bun-page'), []);
});

test('r50 Deno, with no permission but to read the package and to reach the model', long, async () => {
  const program = await deno();
  const project = install(packed, 'node', 'deno');
  const flags = ['run', '--node-modules-dir=manual', '--allow-read=.', `--allow-net=${new URL(standIn.url).host}`];
  const args = [...flags, '--no-prompt', 'main.js', model('deno-fetch'), model('deno')];
  // `process.argv` has two names before the arguments there as well.
  const { stdout } = await run(program, args, project, { NO_COLOR: '1' });
  assertDone(JSON.parse(stdout));
});

test('r50 Parcel, its build', long, async () => {
  const folder = await parcel();
  const project = install(packed, 'bundled', 'parcel');
  const html = path.join(project, 'index.html');
  writeFileSync(html, readFileSync(html, 'utf8').replace('/main.js', './main.js'));
  const manifest = path.join(project, 'package.json');
  writeFileSync(
    manifest,
    JSON.stringify({
      ...JSON.parse(readFileSync(manifest, 'utf8')),
      '@parcel/resolver-default': { packageExports: true },
    }),
  );
  const args = ['build', 'index.html', '--no-cache', '--no-source-maps', '--dist-dir', 'out'];
  await run(process.execPath, [path.join(folder, 'node_modules/parcel/lib/bin.js'), ...args], project);
  // The server allows an import map by its hash, if it is quoted.
  const built = path.join(project, 'out/index.html');
  writeFileSync(built, readFileSync(built, 'utf8').replace('<script type=importmap>', '<script type="importmap">'));
  const wasm = await assertFolder(path.join(project, 'out'), 'parcel');
  assert.ok(new Set(wasm).size >= 3, 'the three programs');
});

/** Starts `next start` for a built project; returns {url, close}. */
async function startNext(program, project) {
  const child = spawn(process.execPath, [program, 'start', '--port', '0', '--hostname', '127.0.0.1'], {
    cwd: project,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, NEXT_TELEMETRY_DISABLED: '1' },
  });
  const ended = new Promise((resolve) => child.once('exit', resolve));
  let said = '';
  const url = await new Promise((resolve, reject) => {
    const read = (chunk) => {
      said += chunk;
      const [found] = /http:\/\/127\.0\.0\.1:[1-9]\d*/.exec(said) ?? [];
      if (found) resolve(found);
    };
    child.stdout.on('data', read);
    child.stderr.on('data', read);
    ended.then(() => reject(new Error(said)));
  });
  const close = () => {
    child.kill();
    return ended;
  };
  return { url, close };
}

for (const [bundler, flag, config] of [
  ['Turbopack', '--turbopack', {}],
  ['Turbopack, the package outside of the bundle', '--turbopack', { serverExternalPackages: ['rethread'] }],
  ['webpack', '--webpack', {}],
]) {
  test(`r50 Next, the app router with ${bundler}: a route of the server and a page`, long, async () => {
    const folder = path.join(await next(), 'node_modules');
    const lane = `next-${bundler.toLowerCase().replace(/\W+/g, '-')}`;
    const project = install(packed, 'next', lane);
    writeFileSync(path.join(project, 'next.config.mjs'), `export default ${JSON.stringify(config)};\n`);
    // Copied: Turbopack reads no file outside of the project.
    for (const name of readdirSync(folder).filter((one) => !one.startsWith('.')))
      cpSync(path.join(folder, name), path.join(project, 'node_modules', name), { recursive: true });
    const program = path.join(project, 'node_modules/next/dist/bin/next');
    const env = { NEXT_TELEMETRY_DISABLED: '1', CI: '1' };
    await run(process.execPath, [program, 'build', flag], project, env);
    const server = await startNext(program, project);
    try {
      const route = await fetch(`${server.url}/api/chat?model=${encodeURIComponent(model(`${lane}-server`))}`);
      assertChat(await route.json());
      await assertPage(`${server.url}/`, lane);
    } finally {
      await server.close();
    }
  });
}

for (const [name, settings] of [
  ['with its wasm in the extension', {}],
  ['with the wasm as text', { conditions: ['base64'] }],
]) {
  test(`r50 the service worker of an extension, Manifest V3, ${name}`, long, async () => {
    const project = install(packed, 'extension', `extension-${name.replaceAll(' ', '-')}`);
    const out = path.join(project, 'out/extension');
    await esbuild.build({
      absWorkingDir: project,
      entryPoints: ['main.js'],
      outfile: path.join(out, 'worker.js'),
      bundle: true,
      format: 'esm',
      logLevel: 'silent',
      ...settings,
    });
    cpSync(path.join(project, 'manifest.json'), path.join(out, 'manifest.json'));
    // Where `new URL("../../dist/…", import.meta.url)` leads from the bundle: to the root, where paths above it end.
    if (!settings.conditions) {
      mkdirSync(path.join(out, 'dist'));
      for (const file of ['rethread', 'stores'])
        cpSync(
          path.join(project, `node_modules/rethread/dist/${file}_bg.wasm`),
          path.join(out, `dist/${file}_bg.wasm`),
        );
    }
    const context = await launchBrowser({
      profile: path.join(project, 'profile'),
      headless: false,
      args: [
        '--headless=new',
        '--no-sandbox',
        '--disable-gpu',
        '--no-first-run',
        '--disable-features=DisableLoadExtensionCommandLineSwitch',
        `--disable-extensions-except=${out}`,
        `--load-extension=${out}`,
      ],
    });
    try {
      const [worker = await context.waitForEvent('serviceworker', { timeout: 30_000 })] = context.serviceWorkers();
      const answer = await worker.evaluate((url) => globalThis.everything(url), model(`extension-${name.length}`));
      assertChat(answer);
      assert.equal(answer.hasDom, false);
    } finally {
      await context.close();
    }
  });
}
