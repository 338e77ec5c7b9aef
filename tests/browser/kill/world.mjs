// The place of the kills: one origin with the page and the stand-in, and browsers whose profile outlives them.

import { cp, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { launchBrowser } from '../../../.ci/browser.mjs';
import { serve } from '../../../.ci/serve.mjs';
import { root } from '../../../.ci/shell.mjs';
import { createStandIn } from '../../stand-in/server.mjs';

/** Serves the package from a copy: a build that runs meanwhile changes nothing. */
export async function openWorld() {
  const folder = await mkdtemp(path.join(tmpdir(), 'rethread-kill-'));
  for (const part of ['js', 'dist'])
    await cp(path.join(root, part), path.join(folder, 'package', part), { recursive: true });
  const standIn = createStandIn();
  const { url, close } = await serve({
    folders: { '/': path.join(root, 'tests/browser/pages'), '/node_modules/rethread/': path.join(folder, 'package') },
    handle: standIn.handle,
  });
  const browsers = new Set();
  return {
    /** Where a page finds a lane. Each slot is a host of its own, as a browser opens few connections to one. */
    standIn: (lane, slot) => `${url.replace('//', `//slot-${slot}.`)}/lane/${lane}`,
    lane: (name) => standIn.state.lane(name),
    forget: (name) => standIn.state.reset(name),
    async newProfile() {
      return mkdtemp(path.join(folder, 'profile-'));
    },
    /** A browser on that profile, with one tab that shows the page. */
    async launch(profile) {
      const context = await launchBrowser({ profile });
      context.setDefaultTimeout(90_000); // for a machine with few and busy processors
      const browser = { context, profile };
      browsers.add(browser);
      browser.processes = await processesOf(profile);
      // Set before the page is opened, which fails on a machine that is too busy.
      browser.kill = async () => {
        browsers.delete(browser);
        await killAll(browser);
      };
      browser.page = await openTab(context, url, context.pages()[0]);
      return browser;
    },
    tab: (browser) => openTab(browser.context, url),
    async killAll() {
      for (const browser of [...browsers]) await browser.kill?.();
    },
    async close() {
      await this.killAll();
      standIn.state.dispose();
      await close();
      await rm(folder, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

async function openTab(context, url, page) {
  const tab = page ?? (await context.newPage());
  await tab.goto(`${url}/kill.html`);
  await tab.waitForFunction(() => window.kill);
  return tab;
}

/** Every process of a profile: those that name it, and their children. Read from /proc, so on Linux only. */
async function processesOf(profile) {
  const all = new Map();
  for (const name of await readdir('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    const read = (file) => readFile(`/proc/${name}/${file}`, 'utf8').catch(() => '');
    const [command, stat] = [await read('cmdline'), await read('stat')];
    // "pid (name) state parent group ...": the name may hold anything.
    const [state, parent, group] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    if (stat && state !== 'Z')
      all.set(Number(name), { own: command.includes(profile), parent: Number(parent), group: Number(group) });
  }
  const ids = new Set([...all].filter(([id, { own }]) => own && id !== process.pid).map(([id]) => id));
  for (let size = -1; size !== ids.size; ) {
    size = ids.size;
    for (const [id, { parent }] of all) if (ids.has(parent)) ids.add(id);
  }
  const ours = all.get(process.pid)?.group;
  return {
    ids: [...ids],
    groups: [...new Set([...ids].map((id) => all.get(id).group))].filter((group) => group > 1 && group !== ours),
  };
}

function signal(id) {
  try {
    process.kill(id, 'SIGKILL');
  } catch (error) {
    if (error.code !== 'ESRCH') throw error;
  }
}

/** SIGKILL, at once and to all of them. The groups were read when it was launched, so that nothing is waited for
 *  here. */
async function killAll({ profile, processes }) {
  for (const group of processes.groups) signal(-group);
  for (let tries = 0; ; tries += 1) {
    const { ids } = await processesOf(profile);
    if (!ids.length) return;
    if (tries > 200) throw new Error(`processes that outlive SIGKILL: ${ids}`);
    for (const id of ids) signal(id);
    await sleep(5);
  }
}
