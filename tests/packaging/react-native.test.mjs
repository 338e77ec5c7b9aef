// An app of React Native: bundled by Metro with React Native's settings, and compiled by Hermes. What it does is run in
// Node, once as it is, and once without what React Native lacks.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import * as esbuild from 'esbuild';
import { metro } from '../../.ci/matrix.mjs';
import { nodeWithSqlite } from '../../.ci/servers.mjs';
import { startStandIn } from '../stand-in/server.mjs';
import { install, pack } from './project.mjs';

const exec = promisify(execFile);
const long = { skip: process.env.RETHREAD_LONG ? false : 'RETHREAD_LONG', timeout: 900_000 };

let packed;
let project;
let standIn;
before(async () => {
  packed = pack();
  project = install(packed, 'react-native');
  standIn = await startStandIn();
});
after(async () => {
  await standIn?.close();
  packed?.remove();
});

/** How a file of Hermes's bytecode begins. */
const HERMES_BYTECODE = 'c61fbc03c103191f';
/** What React Native 0.88 does not have, and what came with 0.85. docs/bundlers.md has the sources. */
const LACKING = ['WebAssembly', 'DecompressionStream', 'ReadableStream', 'TransformStream', 'crypto'];
const BEFORE_0_85 = [...LACKING, 'TextDecoder'];

/** Runs a bundle in Node without what is `lacking`. Returns its answer and the requests of the model. */
async function run(file, lane, lacking = []) {
  const url = `${standIn.url}/lane/${lane}`;
  const program = path.join(project, `${lane}.mjs`);
  writeFileSync(
    program,
    `import { readFileSync } from 'node:fs';
     for (const name of ${JSON.stringify(lacking)}) delete globalThis[name];
     globalThis.MODEL_URL = ${JSON.stringify(`${url}/v1/chat/completions`)};
     globalThis.report = (answer) => process.stdout.write(JSON.stringify(answer));
     (0, eval)(readFileSync(${JSON.stringify(file)}, 'utf8'));`,
  );
  const steps = [{ calls: [{ name: 'celsius', arguments: { city: 'Lisbon' } }] }, { text: '21 degrees.' }];
  await fetch(`${url}/control/script`, { method: 'POST', body: JSON.stringify({ steps }) });
  const { stdout } = await exec(process.execPath, [program], { cwd: project, timeout: 60_000 });
  const requests = await (await fetch(`${url}/control/requests`)).json();
  return { answer: JSON.parse(stdout), requests };
}

function assertChat({ answer, requests }) {
  assert.deepEqual(answer, {
    status: 'finished',
    roles: ['user', 'assistant', 'user', 'assistant', 'tool', 'assistant'],
    kept: ['kept'],
  });
  assert.deepEqual(
    requests.map(({ status }) => status),
    [200, 200],
  );
}

function assertNoWebAssembly({ answer, requests }) {
  const { name, code, thrown } = answer;
  assert.deepEqual([name, code], ['RethreadError', 'not_initialized'], thrown);
  assert.match(
    thrown,
    /^this platform has no WebAssembly.*Hermes.*keep the sessions on a server or in a WebView.*Lockdown Mode/,
  );
  assert.deepEqual(requests, []);
}

test('r50 a platform without WebAssembly, as React Native, is an error that says what to do', async () => {
  await esbuild.build({
    absWorkingDir: project,
    entryPoints: ['main.js'],
    outfile: 'esbuild.js',
    bundle: true,
    logLevel: 'silent',
  });
  const file = path.join(project, 'esbuild.js');
  assertChat(await run(file, 'esbuild'));
  for (const lacking of [LACKING, BEFORE_0_85])
    assertNoWebAssembly(await run(file, `esbuild-without-${lacking.length}`, lacking));
  const started = await exec(process.execPath, ['--jitless', '--eval', "import('rethread')"], { cwd: project }).then(
    () => assert.fail('loaded without WebAssembly'),
    ({ stderr }) => stderr,
  );
  assert.match(started, /RethreadError: this platform has no WebAssembly.*`--jitless`/);
});

test(
  'r50 React Native: Metro bundles rethread/base64, Hermes compiles it, and without WebAssembly it says what to do',
  long,
  async () => {
    const packages = await metro();
    const node = await nodeWithSqlite();
    const bundle = async (entry, out) => {
      const file = path.join(project, out);
      await exec(node, ['bundle.cjs', packages, path.join(project, entry), file], { cwd: project, timeout: 300_000 });
      return file;
    };
    const file = await bundle('main.js', 'metro.js');
    const compiled = path.join(project, 'metro.hbc');
    const hermesc = path.join(packages, 'node_modules/hermes-compiler/hermesc/linux64-bin/hermesc');
    await exec(hermesc, ['-emit-binary', '-O', '-w', '-out', compiled, file]);
    assert.equal(readFileSync(compiled).subarray(0, 8).toString('hex'), HERMES_BYTECODE);
    assertChat(await run(file, 'metro'));
    assertNoWebAssembly(await run(file, 'metro-without', LACKING));
    assertNoWebAssembly(await run(file, 'metro-before', BEFORE_0_85));

    // `rethread` is the build of pages, which find the wasm beside the code.
    const main = readFileSync(path.join(project, 'main.js'), 'utf8');
    writeFileSync(path.join(project, 'page.js'), main.replace("'rethread/base64'", "'rethread'"));
    await assert.rejects(bundle('page.js', 'page-bundle.js'), ({ stderr }) =>
      /moved-file\.js:Invalid call at line \d+: import\(/.test(stderr),
    );
  },
);
