// What the browser tests share: one origin with the package and the model, one browser, and pages that hold the
// package.

import { fileURLToPath } from 'node:url';
import { launchBrowser } from '../../.ci/browser.mjs';
import { serve } from '../../.ci/serve.mjs';
import { createStandIn } from '../stand-in/server.mjs';

const here = (path) => fileURLToPath(new URL(path, import.meta.url));

/** The control side of one lane of the stand-in. */
export function laneOf(origin, name) {
  const base = `${origin}/lane/${encodeURIComponent(name)}`;
  const post = async (path, body = {}) =>
    (await fetch(`${base}/control/${path}`, { method: 'POST', body: JSON.stringify(body) })).json();
  const get = async (path) => (await fetch(`${base}/control/${path}`)).json();
  return {
    base,
    chat: `${base}/v1/chat/completions`,
    messages: `${base}/v1/messages`,
    script: (steps, options = {}) => post('script', { steps, delayMs: 0, ...options }),
    openGate: (gate) => post(`gate/${gate}/open`),
    requests: () => get('requests'),
    tools: () => get('tools'),
    waiting: () => get('waiting'),
    reset: () => post('reset'),
  };
}

/** {url, lane, page, context, close}. A page has `rethread`, `drive` and the scenarios as globals; its errors are in
 *  `complaints`. `laterDist` is the folder of another build of the wasm, which `/later.html` loads. */
export async function openWorld({ laterDist } = {}) {
  const standIn = createStandIn();
  const server = await serve({
    folders: {
      '/': here('pages'),
      '/js/': here('../../js'),
      '/dist/': here('../../dist'),
      '/scenarios/': here('../bindings/scenarios'),
      '/servers/': here('../servers'),
      '/log-store/': here('../packaging/projects/store'),
      ...(laterDist && { '/later/js/': here('../../js'), '/later/dist/': laterDist }),
    },
    handle: standIn.handle,
  });
  const browser = await launchBrowser();

  /** A page in `context`, or in one of its own: two pages of one context are two tabs. */
  async function page(context, path = '/') {
    const own = context ?? (await browser.newContext());
    own.setDefaultTimeout(90_000); // for a machine with few and busy processors
    const opened = await own.newPage();
    opened.complaints = [];
    opened.on('pageerror', (error) => opened.complaints.push(String(error?.stack ?? error)));
    opened.on('console', (message) => {
      // A request that the model refuses is written to the console by the browser itself.
      if (message.type() === 'error' && !message.text().startsWith('Failed to load resource'))
        opened.complaints.push(message.text());
    });
    await opened.goto(`${server.url}${path}`);
    await opened.evaluate(() => globalThis.ready);
    return opened;
  }

  const close = async () => {
    await browser.close();
    standIn.state.dispose();
    await server.close();
  };
  return {
    url: server.url,
    lane: (name) => laneOf(server.url, name),
    context: () => browser.newContext(),
    page,
    close,
  };
}
