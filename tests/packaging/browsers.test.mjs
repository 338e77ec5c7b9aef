// The page of a bundler in Firefox and in WebKit, as Debian packages them: in the long mode alone. Nothing drives the
// browser: it opens the page, which sends what it did to its server.

import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import path from 'node:path';
import { after, before, test } from 'node:test';
import * as esbuild from 'esbuild';
import { firefox, webkit } from '../../.ci/matrix.mjs';
import { serve } from '../../.ci/serve.mjs';
import { startStandIn } from '../stand-in/server.mjs';
import { assertDone } from './page.mjs';
import { install, pack } from './project.mjs';

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

/** Builds the page with esbuild; returns its folder. */
async function build(label, entry, settings) {
  const project = install(packed, 'bundled', label);
  const out = path.join(project, 'out');
  await esbuild.build({
    absWorkingDir: project,
    entryPoints: { main: entry, report: 'report.js' },
    outdir: out,
    bundle: true,
    format: 'esm',
    logLevel: 'silent',
    ...settings,
  });
  const html = readFileSync(path.join(project, 'index.html'), 'utf8');
  writeFileSync(
    path.join(out, 'index.html'),
    html.replace('</body>', '<script type="module" src="/report.js"></script></body>'),
  );
  return out;
}

/** Opens the page of a folder in a browser, which `open` returns as a program with arguments for a URL and a profile's
 *  folder; returns what the page did. */
async function visit(folder, lane, open) {
  let done;
  const reported = new Promise((resolve) => {
    done = resolve;
  });
  const handle = async (request, response) => {
    if (request.method !== 'POST' || request.url !== '/report') return false;
    done(JSON.parse(await text(request)));
    response.writeHead(204).end();
    return true;
  };
  const server = await serve({ folders: { '/': folder }, handle });
  const profile = path.join(packed.folder, `${lane}-profile`);
  mkdirSync(profile, { recursive: true });
  const query = new URLSearchParams({ model: model(lane), fetch: model(`${lane}-fetch`) });
  const { program, args, env } = open(`${server.url}/?${query}`, profile);
  // A group of its own: a browser is several processes.
  const child = spawn(program, args, {
    stdio: ['ignore', 'ignore', 'pipe'],
    detached: true,
    env: { ...process.env, ...env },
  });
  let said = '';
  child.stderr.on('data', (chunk) => {
    said += chunk;
  });
  const failed = new Promise((_, reject) => {
    child.once('error', reject);
    child.once('exit', (code) => reject(new Error(`${program} ended with ${code}: ${said.slice(-2000)}`)));
    setTimeout(() => reject(new Error(`the page did not finish: ${said.slice(-2000)}`)), 120_000).unref();
  });
  try {
    return await Promise.race([reported, failed]);
  } finally {
    failed.catch(() => {});
    try {
      process.kill(-child.pid, 'SIGKILL');
    } catch {
      // it has ended
    }
    await server.close();
  }
}

for (const [name, browser] of [
  ['Firefox', firefox],
  ['WebKit', webkit],
]) {
  test(`r50 a page in ${name}, with the wasm as text and as files`, long, async () => {
    const open = await browser();
    const lane = name.toLowerCase();
    assertDone(await visit(await build(`${lane}-text`, 'main.js', { conditions: ['base64'] }), `${lane}-text`, open));
    const files = { loader: { '.wasm': 'file' }, publicPath: '/' };
    assertDone(await visit(await build(`${lane}-files`, 'with-files.js', files), `${lane}-files`, open));
  });
}
