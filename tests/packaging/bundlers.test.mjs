// The package in a page that a bundler makes, with no setting for it: Vite's dev server and its build, webpack's build.

import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, readdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { launchBrowser } from '../../.ci/browser.mjs';
import { serve } from '../../.ci/serve.mjs';
import { startStandIn } from '../stand-in/server.mjs';
import { assertDone, visit } from './page.mjs';
import { install, pack } from './project.mjs';

let packed;
let standIn;
let browser;
before(async () => {
  packed = pack();
  [standIn, browser] = await Promise.all([startStandIn(), launchBrowser()]);
});
after(async () => {
  await Promise.all([browser?.close(), standIn?.close()]);
  packed?.remove();
});

const model = (name) => `${standIn.url}/lane/${name}/v1/chat/completions`;
const visitPage = (url, lane) => visit(browser, url, lane, model);

async function assertWorks(url, lane) {
  const { answer, wasm } = await visitPage(url, lane);
  assertDone(answer);
  assert.ok(new Set(wasm).size >= 3, 'the three programs');
}

/** A project of the package, in a folder named after `label`. */
function project(label) {
  const folder = install(packed, 'bundled', label);
  // The build gives each file a name of its own: nothing serves what was not built.
  mkdirSync(path.join(folder, 'public'), { recursive: true });
  return folder;
}

const versions = JSON.parse(process.env.VITE);
const viteModule = (folder) => pathToFileURL(path.join(folder, 'node_modules/vite/dist/node/index.js')).href;

for (const [version, folder] of versions) {
  const load = () => import(viteModule(folder));

  describe(`Vite ${version}`, () => {
    for (const [name, config] of [
      ['default', {}],
      ['with a base', { base: '/app/' }],
      ['with another cache', { cacheDir: '.cache' }],
    ]) {
      test(`r50 Vite ${version}, its dev server on a configuration ${name}`, { timeout: 120_000 }, async () => {
        const { createServer } = await load();
        const server = await createServer({
          root: project(`vite-${version}-${name.replaceAll(' ', '-')}`),
          configFile: false,
          logLevel: 'silent',
          ...config,
        });
        try {
          await server.listen(0);
          await assertWorks(server.resolvedUrls.local[0], `vite-${version}-${name.replaceAll(' ', '-')}`);
        } finally {
          await server.close();
        }
      });
    }

    test(`r50 Vite ${version}, its build`, { timeout: 120_000 }, async () => {
      const { build } = await load();
      const root = project(`vite-${version}-build`);
      await build({ root, configFile: false, logLevel: 'silent' });
      const built = readdirSync(path.join(root, 'dist/assets')).filter((file) => file.endsWith('.wasm'));
      assert.equal(built.length, 3, String(built));
      const server = await serve({ folders: { '/': path.join(root, 'dist') } });
      try {
        await assertWorks(`${server.url}/`, `vite-${version}-build`);
      } finally {
        await server.close();
      }
    });
  });
}

test('r50 an address that serves no wasm is an error that says what to set', { timeout: 120_000 }, async () => {
  const [[version, folder]] = versions;
  const { createServer } = await import(viteModule(folder));
  // As in a project that cannot resolve the package, a dependency of its dependency.
  const hide = ({ middlewares }) => {
    middlewares.use((request, _response, next) => {
      if (request.url.includes('/@id/')) request.url = '/';
      next();
    });
  };
  const root = project(`vite-${version}-hidden`);
  const server = await createServer({
    root,
    configFile: false,
    logLevel: 'silent',
    plugins: [{ name: 'hide', configureServer: hide }],
  });
  try {
    await server.listen(0);
    const { answer } = await visitPage(server.resolvedUrls.local[0], 'vite-hidden');
    assert.match(
      answer.thrown,
      /the wasm could not be loaded: http:.* is no wasm but text\/html.*optimizeDeps: \{ exclude: \["rethread"\] \}/,
    );
    assert.equal(answer.code, 'not_initialized');
  } finally {
    await server.close();
  }
});

test('r50 a package that is linked from outside of the project is an error that says how to install it', {
  timeout: 120_000,
}, async () => {
  const [[version, folder]] = versions;
  const { createServer } = await import(viteModule(folder));
  const root = project(`vite-${version}-linked`);
  const linked = path.join(root, 'node_modules/rethread');
  const outside = path.join(packed.folder, 'outside');
  renameSync(linked, outside);
  symlinkSync(outside, linked);
  const server = await createServer({ root, configFile: false, logLevel: 'silent' });
  try {
    await server.listen(0);
    const { answer } = await visitPage(server.resolvedUrls.local[0], 'vite-linked');
    assert.match(answer.thrown, /403.*--install-links/);
  } finally {
    await server.close();
  }
});

test('r50 webpack, its build', { timeout: 120_000 }, async () => {
  const { default: webpack } = await import(
    createRequire(path.join(process.env.WEBPACK, 'package.json')).resolve('webpack')
  );
  const root = project('webpack');
  const stats = await new Promise((resolve, reject) => {
    webpack({ mode: 'production', context: root, entry: './main.js', output: { path: path.join(root, 'dist') } }).run(
      (error, stats) => (error ? reject(error) : resolve(stats)),
    );
  });
  const { errors, warnings } = stats.toJson({ all: false, errors: true, warnings: true });
  assert.deepEqual(errors, []);
  // Sizes are the application's to judge.
  assert.deepEqual(
    warnings.filter(({ message }) => !/size limit|performance/.test(message)),
    [],
  );
  writeFileSync(
    path.join(root, 'dist/index.html'),
    readFileSync(path.join(root, 'index.html'), 'utf8').replace('/main.js', 'main.js'),
  );
  assert.ok(existsSync(path.join(root, 'dist/main.js')));
  const server = await serve({ folders: { '/': path.join(root, 'dist') } });
  try {
    await assertWorks(`${server.url}/`, 'webpack');
  } finally {
    await server.close();
  }
});
