// The demo as `npm start` serves it, a page of it, and the stand-in's controls of one lane.

import { createHash } from 'node:crypto';
import path from 'node:path';
import { launchBrowser } from '../../.ci/browser.mjs';
import { serve } from '../../.ci/serve.mjs';
import { root } from '../../.ci/shell.mjs';
import { createStandIn } from '../stand-in/server.mjs';

export async function startDemo() {
  const standIn = createStandIn();
  const inRoot = (name) => path.join(root, name);
  const { url, close } = await serve({
    folders: {
      '/': inRoot('www'),
      '/node_modules/rethread/js/': inRoot('js'),
      '/node_modules/rethread/dist/': inRoot('dist'),
      '/node_modules/rethread/docs/rules/': inRoot('docs/rules'),
    },
    handle: standIn.handle,
  });
  const browser = await launchBrowser();
  return {
    url,
    browser,
    async close() {
      await browser.close();
      standIn.state.dispose();
      await close();
    },
  };
}

/** What a page may take, in milliseconds, on a machine with few and busy processors. */
const PATIENCE_MS = 90_000;

export const until = async (what, test, ms = PATIENCE_MS) => {
  const end = Date.now() + ms;
  let last;
  for (;;) {
    last = await test();
    if (last) return last;
    if (Date.now() > end) throw new Error(`it did not come about in ${ms} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 40));
  }
};

/** In each panel of the inspector, what is there when it is painted. */
const PANELS = {
  Timeline: '#panel-timeline > p.soft:text("the newest first")',
  Requests: '#panel-requests tr[data-request="bedrock"]',
  Journal: '#panel-journal :is(div > p.soft, .run)',
  Sizes: '#panel-sizes div > p.soft',
  Repair: '#panel-repair form',
};

/** A browser context of its own, a lane of its own, and what a user does in the page. */
export class Guest {
  complaints = [];

  static async visit(demo, name, options = {}) {
    const guest = new Guest();
    guest.demo = demo;
    guest.lane = `${name}-${createHash('sha256').update(`${name}${Math.random()}`).digest('hex').slice(0, 8)}`;
    guest.context = await demo.browser.newContext({ viewport: { width: 1200, height: 800 }, ...options });
    guest.context.setDefaultTimeout(PATIENCE_MS);
    await guest.control('options', { delayMs: 5 });
    guest.page = await guest.tab();
    return guest;
  }

  async tab(query = '') {
    const page = await this.context.newPage();
    page.on('console', (message) => message.type() === 'error' && this.complaints.push(message.text()));
    page.on('pageerror', (error) => this.complaints.push(error.stack ?? String(error)));
    await page.goto(`${this.demo.url}/?db=${this.lane}&lane=${this.lane}${query}`);
    await this.ready(page);
    return page;
  }

  async ready(page = this.page) {
    await page
      .locator('body[data-ready]')
      .waitFor()
      .catch(async () => {
        throw new Error(
          `the page did not start: ${await page.locator('#notices').innerText()} ${this.complaints.join('\n')}`,
        );
      });
    await this.painted(page);
  }

  /** The page paints what has changed before its next frame; a hidden one has no frames. */
  painted(page = this.page) {
    return page.evaluate(
      () =>
        new Promise((resolve) => {
          if (document.hidden) setTimeout(resolve, 200);
          else requestAnimationFrame(() => setTimeout(resolve));
        }),
    );
  }

  async reload(page = this.page) {
    await page.reload();
    await this.ready(page);
  }

  async control(path, body) {
    const response = await fetch(
      `${this.demo.url}/lane/${this.lane}/control/${path}`,
      body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) },
    );
    return response.json();
  }

  hold(name, phase = 'start') {
    return this.control('hold', { name, phase });
  }

  /** How often each tool began, as the server counted. */
  async runs() {
    const counts = {};
    for (const { name, phase } of await this.control('tools'))
      if (phase === 'start') counts[name] = (counts[name] ?? 0) + 1;
    return counts;
  }

  /** Sends a question, as soon as the run before it is over: what a run has shown last precedes its end. */
  async write(question, page = this.page) {
    await page.locator('#question').fill(question);
    await page.locator('#send:visible').waitFor();
    await page.locator('#question').press('Enter');
  }

  /** The run that lives in this tab is over, and what it left is painted. Notices of other runs may still change. */
  async answered(page = this.page) {
    await page.locator('#send:visible').waitFor();
    await this.painted(page);
  }

  /** Waits until no notice is left. */
  noNotice(page = this.page) {
    return until('no notice', async () => (await page.locator('.notice').count()) === 0);
  }

  /** Waits until the list says this of its only unfinished chat. */
  async hasBadge(text, row = this.page.locator('#sessions')) {
    await until(
      `the badge says ${text}`,
      async () => (await row.locator('.badge:visible').allInnerTexts()).join() === text,
    );
  }

  /** Waits until the result of a call is stored in the journal: it is shown a moment before. */
  async resultIsStored(name, page = this.page) {
    const session = new URL(page.url()).searchParams.get('session');
    const isStored = ([session, name]) =>
      import('rethread').then(async ({ open }) => {
        const db = await open({ name: new URL(location.href).searchParams.get('db') });
        const runs = await db.pendingRuns();
        await db.close();
        const calls = runs.filter((run) => run.session === session).flatMap(({ openCalls }) => openCalls);
        return calls.some((call) => call.name === name && call.state === 'answered');
      });
    await until(`the result of ${name} is stored`, () => page.evaluate(isStored, [session, name]));
  }

  /** Opens a tab of the inspector, and waits until it is painted. */
  async inspect(name, page = this.page) {
    await page.getByRole('tab', { name }).click();
    await page.locator(PANELS[name]).first().waitFor();
  }

  async ask(question, page = this.page) {
    await this.write(question, page);
    await this.answered(page);
  }

  words(page = this.page) {
    return page.locator('#conversation').innerText();
  }

  card(name, status, page = this.page) {
    return page.locator(`#conversation .call[data-name="${name}"]${status ? `[data-status="${status}"]` : ''}`);
  }

  notice(text, page = this.page) {
    return page.locator('.notice', { hasText: text });
  }

  async settings(change, page = this.page) {
    await page.locator('#settings-open').click();
    const form = page.locator('#settings form');
    if (change.dialect) await form.locator(`[name=dialect][value=${change.dialect}]`).check();
    for (const name of ['endpoint', 'model', 'key'])
      if (name in change) await form.locator(`[name=${name}]`).fill(change[name]);
    for (const name of ['stream', 'hostile'])
      if (name in change) await form.locator(`[name=${name}]`).setChecked(change[name]);
    await form.getByRole('button', { name: 'Apply' }).click();
    await page.locator('#settings').waitFor({ state: 'hidden' });
    // The dialog is hidden a moment before its `close` event, which applies them.
    const isApplied = () => page.evaluate(() => document.querySelector('#settings').returnValue === '');
    await until('the settings are applied', isApplied);
  }

  /** Everything that the origin keeps, as one text. */
  stored(page = this.page) {
    return page.evaluate(async () => {
      const decoder = new TextDecoder();
      const spell = (value) =>
        JSON.stringify(value, (key, inner) => {
          if (inner instanceof ArrayBuffer) return decoder.decode(inner);
          return ArrayBuffer.isView(inner) ? decoder.decode(inner) : inner;
        });
      const asked = (request) =>
        new Promise((resolve, reject) => {
          request.onsuccess = () => resolve(request.result);
          request.onerror = () => reject(request.error);
        });
      const found = [spell({ ...localStorage }), spell({ ...sessionStorage }), document.cookie, location.href];
      let records = 0;
      for (const { name } of await indexedDB.databases()) {
        const database = await asked(indexedDB.open(name));
        for (const store of database.objectStoreNames) {
          const table = database.transaction(store).objectStore(store);
          const [keys, values] = await Promise.all([asked(table.getAllKeys()), asked(table.getAll())]);
          records += values.length;
          found.push(spell(keys), spell(values));
        }
        database.close();
      }
      return { records, text: found.join('\n') };
    });
  }

  /** What no visit may leave behind. `refusals`: statuses that a script asked for. */
  async leave({ refusals = [], complaints = /^$/ } = {}) {
    const requests = await this.control('requests');
    const refused = requests.filter(({ status }) => status !== 200 && status !== null && !refusals.includes(status));
    const unexpected = this.complaints.filter((text) => !complaints.test(text));
    await this.context.close();
    return { refused: refused.map(({ n, status, error }) => ({ n, status, error })), complaints: unexpected };
  }
}

export const CLEAN = { refused: [], complaints: [] };
