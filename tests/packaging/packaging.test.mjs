// What was packed, used from outside: in Node, in a plain page, in workerd, and by the type checker.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { launchBrowser } from '../../.ci/browser.mjs';
import { serve } from '../../.ci/serve.mjs';
import { startStandIn } from '../stand-in/server.mjs';
import { startWorkerd } from '../workerd.mjs';
import { install, pack, repository } from './project.mjs';

const exec = promisify(execFile);
const node = async (args, cwd) => (await exec(process.execPath, args, { cwd, timeout: 60_000 })).stdout;

let packed;
let standIn;
before(async () => {
  packed = pack();
  standIn = await startStandIn();
});
after(async () => {
  await standIn?.close();
  packed?.remove();
});

/** A lane a runtime: they do not see each other's requests. */
const model = (lane) => `${standIn.url}/lane/${lane}/v1/chat/completions`;

async function assertChat(answer, lane) {
  assert.equal(answer.thrown, undefined);
  for (const { status, text, error } of answer.answers) {
    assert.equal(status, 'finished', JSON.stringify(error));
    assert.ok(text.length > 0, 'the model answered with a text');
  }
  assert.ok(answer.invocations >= 2, 'tools were called and stored');
  const requests = await (await fetch(`${standIn.url}/lane/${lane}/control/requests`)).json();
  assert.ok(requests.length > answer.answers.length, 'a tool result went back to the model');
  for (const { n, status, error } of requests)
    assert.equal(status, 200, `request ${n} was refused: ${JSON.stringify(error)}`);
}

describe('Node', () => {
  test('r50 a chat with tools, and synchronous functions without init', async () => {
    const project = install(packed, 'node');
    const answer = JSON.parse(await node(['main.js', model('node-fetch'), model('node')], project));
    await assertChat(answer, 'node');
    assert.ok(answer.findings.includes('orphan_result'));
    assert.deepEqual(answer.statuses, [400, 200], 'refused, and repaired by rethread/fetch');
    assert.ok(answer.oneError, 'one class of errors in every entry');
    assert.deepEqual(answer.kept, ['kept'], 'a store over a driver');
    assert.deepEqual(answer.formats, [
      'RethreadError',
      'StreamAssembler',
      'convert',
      'heal',
      'init',
      'repair',
      'validate',
    ]);
  });

  test('r50 r53 rethread/ai-sdk loads without its peer', async () => {
    const project = install(packed, 'node', 'no-peer');
    const load = `
      const { fromUIMessages } = await import('rethread/ai-sdk');
      console.log(JSON.stringify(fromUIMessages([{ id: 'q', role: 'user', parts: [{ type: 'text', text: 'hi' }] }])));`;
    const found = JSON.parse(await node(['--input-type=module', '--eval', load], project));
    assert.deepEqual(found, [{ id: 'q', role: 'user', parts: [{ type: 'text', text: 'hi' }] }]);
    assert.ok(!existsSync(path.join(project, 'node_modules/ai')), 'the peer is optional');
  });

  test('r46 rethread/testing checks a store under node:test and under vitest', async () => {
    const project = install(packed, 'store');
    const { stdout } = await exec(process.execPath, ['--test', '--test-reporter=tap', 'store.node-test.js'], {
      cwd: project,
      env: { ...process.env, NODE_TEST_CONTEXT: undefined },
      timeout: 60_000,
    });
    assert.match(stdout, /^# pass (2[4-9]|[3-9]\d)$/m);
    assert.match(stdout, /^# fail 0$/m);

    symlinkSync(path.join(process.env.VITEST, 'node_modules/vitest'), path.join(project, 'node_modules/vitest'));
    const command = ['node_modules/vitest/vitest.mjs', 'run', '--reporter=json', 'store.spec.js'];
    const found = JSON.parse(await node(command, project));
    assert.ok(found.success && found.numPassedTests >= 24, JSON.stringify(found).slice(0, 2000));
  });

  test('r54_npx rethread checks and repairs a file', async () => {
    const project = install(packed, 'node');
    const call = { id: 'call_1', type: 'function', function: { name: 'look', arguments: '{}' } };
    writeFileSync(
      path.join(project, 'chat.json'),
      JSON.stringify({
        messages: [
          { role: 'user', content: 'hi' },
          { role: 'assistant', content: null, tool_calls: [call] },
        ],
      }),
    );
    // As npm writes it on every platform: no file mode and no path of ours is part of the promise.
    const npx = (...args) => exec('npx', ['--offline', '--no', 'rethread', ...args], { cwd: project, timeout: 60_000 });
    await assert.rejects(npx('check', 'chat.json'), ({ code, stdout }) => code === 1 && /dangling_call/.test(stdout));
    await npx('repair', 'chat.json', '-o', 'chat.json');
    assert.match((await npx('check', 'chat.json')).stdout, /3 messages, nothing wrong/);
  });

  test('slim loads the wasm that the caller passes', async () => {
    const project = install(packed, 'slim');
    assert.deepEqual(JSON.parse(await node(['main.js'], project)), {
      before: 'not_initialized',
      after: 0,
      kind: 'key-value',
    });
  });
});

test('r50 a plain page with a content security policy: IndexedDB loads one program, localStorage the second one', async () => {
  const project = install(packed, 'page');
  const server = await serve({ folders: { '/': project } });
  const browser = await launchBrowser();
  try {
    const page = await browser.newPage();
    const complaints = [];
    const programs = [];
    page.on('console', (message) => message.type() === 'error' && complaints.push(message.text()));
    page.on('pageerror', (error) => complaints.push(String(error)));
    page.on('request', (request) => {
      const [, file] = /\/dist\/([\w.]+)$/.exec(request.url()) ?? [];
      if (file) programs.push(file);
    });
    const visit = async (query) => {
      await page.goto(`${server.url}/?${new URLSearchParams({ store: 'indexeddb', ...query })}`);
      await page
        .locator('#out[data-done]')
        .waitFor({ timeout: 90_000 })
        .catch(() => assert.fail(`the page did not finish: ${complaints.join('\n')}`));
      return JSON.parse(await page.locator('#out').textContent());
    };
    const answer = await visit({ model: model('page') });
    await assertChat(answer, 'page');
    assert.equal(answer.before, 'not_initialized');
    assert.deepEqual(programs.sort(), ['rethread.js', 'rethread_bg.wasm'], 'each is fetched once, and no other');
    const { stored, thrown } = await visit({ again: '' });
    assert.equal(thrown, undefined);
    assert.deepEqual(
      [stored[0], stored.at(-1), stored.filter((role) => role === 'user').length],
      ['user', 'assistant', 2],
      'the next visit finds both turns',
    );
    programs.length = 0;
    const { kept } = await visit({ keep: '', store: 'localstorage' });
    assert.deepEqual(kept, ['kept']);
    assert.deepEqual(programs.sort(), ['rethread.js', 'rethread_bg.wasm', 'stores.js', 'stores_bg.wasm']);
    assert.deepEqual(complaints, []);
  } finally {
    await browser.close();
    await server.close();
  }
});

test('r50 workerd', async () => {
  const project = install(packed, 'workerd');
  // workerd knows no bare names: resolve them as its bundler does, through the exports map.
  for (const name of ['rethread/host', 'rethread']) {
    const found = await node(
      ['-C', 'workerd', '--input-type=module', '-e', `process.stdout.write(import.meta.resolve('${name}'))`],
      project,
    );
    const relative = `./${path.posix.relative(pathToFileURL(project).pathname, new URL(found).pathname)}`;
    if (name === 'rethread') assert.equal(relative, './node_modules/rethread/js/entry/workerd.js');
    const file = path.join(project, 'chat.js');
    writeFileSync(file, readFileSync(file, 'utf8').replaceAll(`'${name}'`, `'${relative}'`));
  }
  const worker = startWorkerd(project, path.join(project, 'main.js'));
  try {
    const response = await worker.dispatchFetch(`http://worker/?model=${encodeURIComponent(model('workerd'))}`);
    const answer = await response.json();
    await assertChat(answer, 'workerd');
    assert.deepEqual(answer.kept, ['kept'], 'a store over a driver');
  } finally {
    await worker.dispose();
  }
});

for (const [module, resolution, files] of [
  ['nodenext', 'nodenext', ['main.ts', 'required.cts']],
  ['esnext', 'bundler', ['main.ts']],
]) {
  test(`types, resolved by ${resolution}`, async () => {
    const project = install(packed, 'types');
    const tsc = path.join(repository, 'node_modules/typescript/bin/tsc');
    const flags = [
      '--noEmit',
      '--strict',
      '--target',
      'esnext',
      '--lib',
      'esnext,dom,dom.iterable',
      '--module',
      module,
      '--moduleResolution',
      resolution,
    ];
    await node([tsc, '--ignoreConfig', ...flags, ...files], project).catch((e) => assert.fail(e.stdout));
  });
}
