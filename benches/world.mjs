// The packages that are measured, and the browser that measures them.

import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import { launchBrowser } from '../.ci/browser.mjs';
import { serve } from '../.ci/serve.mjs';

const here = (file) => fileURLToPath(new URL(file, import.meta.url));

/** Runs `work` with a temporary folder and removes the folder afterwards. */
export async function withTemporaryFolder(work) {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'rethread-bench-'));
  try {
    return await work(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Copies js/ and dist/ of a package to `target`, so that a build that runs meanwhile does not change what is measured.
 *  `source` is the folder of a package, or a dist folder, which is combined with this checkout's js/. */
export function copyPackage(source, target) {
  const isPackage = existsSync(path.join(source, 'js')) && existsSync(path.join(source, 'dist'));
  const dist = isPackage ? path.join(source, 'dist') : source;
  if (!existsSync(path.join(dist, 'rethread_bg.wasm')))
    throw new Error(`${source} is neither a package nor a dist folder: it has no rethread_bg.wasm`);
  cpSync(isPackage ? path.join(source, 'js') : here('../js'), path.join(target, 'js'), { recursive: true });
  cpSync(dist, path.join(target, 'dist'), { recursive: true });
  cpSync(here('../package.json'), path.join(target, 'package.json'));
  return target;
}

/** Returns the sizes in bytes of a program's wasm, its glue, and their sum. */
export function sizes(folder, program = 'rethread') {
  const rows = [`dist/${program}_bg.wasm`, `dist/${program}.js`].map((file) => {
    const bytes = readFileSync(path.join(folder, file));
    const params = { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length };
    return {
      file,
      raw: bytes.length,
      gzip: gzipSync(bytes, { level: 9 }).length,
      brotli: brotliCompressSync(bytes, { params }).length,
    };
  });
  const sum = (key) => rows.reduce((all, row) => all + row[key], 0);
  return [...rows, { file: 'total', raw: sum('raw'), gzip: sum('gzip'), brotli: sum('brotli') }];
}

/** Starts a server and a browser. `packages` maps a URL prefix, '' or '/name', to the folder of a package;
 *  `page(prefix, file)` opens a page of that package. Pages are isolated, because their clock then has a
 *  resolution of 5 instead of 100 microseconds. */
export async function openWorld(packages) {
  const folders = Object.entries(packages).flatMap(([prefix, folder]) =>
    ['js', 'dist'].map((part) => [`${prefix}/${part}/`, path.join(folder, part)]),
  );
  const peers = {
    '/peers/dexie/': here('node_modules/dexie/dist'),
    '/peers/tanstack/': here('node_modules/@tanstack/ai-client/dist/esm'),
  };
  if (!Object.values(peers).every(existsSync))
    console.log('the peers are not installed (npm ci in benches/): their columns are empty');
  const server = await serve({
    folders: { '/': here('.'), ...peers, ...Object.fromEntries(folders) },
    handle: (_, res) => {
      res.setHeader('cross-origin-opener-policy', 'same-origin');
      res.setHeader('cross-origin-embedder-policy', 'require-corp');
      return false;
    },
  });
  const browser = await launchBrowser();
  const context = await browser.newContext();
  async function page(prefix = '', file = 'page.html') {
    const opened = await context.newPage();
    const broken = new Promise((_, reject) => {
      opened.on('pageerror', (error) => reject(new Error(`in the page: ${error?.stack || error}`)));
    });
    broken.catch(() => {});
    await opened.goto(`${server.url}/${file}?package=${encodeURIComponent(prefix)}`);
    await Promise.race([opened.waitForFunction(() => globalThis.bench), broken]);
    return opened;
  }
  const close = async () => {
    await browser.close();
    await server.close();
  };
  return { page, close, version: browser.version() };
}
