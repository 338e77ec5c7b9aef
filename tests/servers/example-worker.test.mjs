// examples/worker as `wrangler deploy` uploads it, in workerd, killed in the middle of answers.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { Miniflare } from 'miniflare';
import { KEY, checkKills, checkPause, exampleProject, exampleLines, startServices } from './example-project.mjs';
import { workerdProcess } from './workerd-process.mjs';

let project;
let services;
let worker;
before(async () => {
  project = exampleProject();
  services = await startServices();
});
after(async () => {
  await worker?.dispose().catch(() => {}); // its process may be gone
  await services?.stop();
  project?.remove();
});

/** What `wrangler deploy` would upload; returns its folder. */
async function bundle(config) {
  const out = path.join(project.folder, 'out');
  const program = path.join(process.env.WRANGLER, 'node_modules/wrangler/bin/wrangler.js');
  const env = { ...process.env, HOME: project.folder, CI: '1', WRANGLER_SEND_METRICS: 'false' };
  await promisify(execFile)(process.execPath, [program, 'deploy', '--dry-run', '--outdir', out, '--config', config], {
    cwd: project.folder,
    env,
    timeout: 120_000,
  });
  return out;
}

test('r48 the example in workerd continues after SIGKILL by its alarm, and no tool runs twice unless it may', async () => {
  const config = path.join(project.folder, 'worker/wrangler.jsonc');
  const settings = JSON.parse(readFileSync(config, 'utf8').replace(/^\s*\/\/.*$/gm, ''));
  const [{ name, class_name: className }] = settings.durable_objects.bindings;
  assert.deepEqual(settings.migrations, [{ tag: 'v1', new_sqlite_classes: [className] }]);
  const out = await bundle(config);
  const start = async () => {
    worker = new Miniflare({
      cf: false,
      compatibilityDate: settings.compatibility_date,
      modules: true,
      modulesRoot: out,
      scriptPath: path.join(out, 'worker.js'),
      modulesRules: [
        { type: 'ESModule', include: ['**/*.js'] },
        ...settings.rules.map(({ type, globs }) => ({ type, include: globs })),
      ],
      bindings: { ...settings.vars, ...services.env, ALARM_MS: '1000' },
      durableObjects: { [name]: { className, useSQLite: true } },
      durableObjectsPersist: path.join(project.folder, 'objects'),
    });
    await worker.ready;
    const pid = workerdProcess();
    return {
      fetch: (address, options) => worker.dispatchFetch(`http://worker${address}`, options),
      async kill() {
        process.kill(pid, 'SIGKILL');
        await worker.dispose().catch(() => {}); // its process is gone
      },
    };
  };
  const server = await checkPause(await checkKills(start, services), start, services);
  const page = await server.fetch('/');
  assert.match(await page.text(), /^<!doctype html>/);
  assert.ok(!JSON.stringify(settings).includes(KEY));
});

test('each example has less than 160 lines, without the page', () => {
  assert.ok(exampleLines('server/server.js') < 160);
  assert.ok(exampleLines('worker/worker.js', 'worker/wrangler.jsonc') < 160);
});
