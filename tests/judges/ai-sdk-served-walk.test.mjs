// `chatHandler` of `rethread/ai-sdk` with random answers during which pages leave, come back and stop: what is stored is
// what a page shows that never left.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chatHandler, loadUIMessages } from 'rethread/ai-sdk';
import { closed, compared } from './ai-sdk-compared.mjs';
import { until } from './ai-sdk-chat.mjs';
import { VERSIONS, again, newSession } from './ai-sdk-models.mjs';
import { pageOf } from './ai-sdk-page.mjs';
import { answerOf } from './ui-chunks.mjs';
import { seeded } from './ui-messages.mjs';

const CASES = Number(process.env.RETHREAD_CASES ?? (process.env.RETHREAD_LONG ? 500 : 10));
const SEED = Number(process.env.RETHREAD_SEED ?? 20261127);
const moment = () => new Promise((resolve) => setTimeout(resolve, 1));

/** A server whose answers are chunks that the test lets pass. */
async function serverOf(ai) {
  const session = await newSession();
  const server = { session, controller: null, isLive: false, reconnects: 0 };
  const answer = () =>
    new ReadableStream({
      start: (controller) => Object.assign(server, { controller, isLive: true }),
      cancel: () => Object.assign(server, { isLive: false }),
    });
  const handler = chatHandler({ session: async (id) => again(session, id), answer });
  const transport = new ai.DefaultChatTransport({
    api: 'https://server.test/api/chat',
    fetch: async (url, init) => {
      const response = await handler(new Request(url, init));
      if (init.method === 'GET') server.reconnects += 1;
      return response;
    },
  });
  server.load = async () => pageOf(ai, { id: session.id, transport, messages: await loadUIMessages(session) });
  server.stop = () => handler(new Request(`https://server.test/api/chat/${session.id}/stop`, { method: 'POST' }));
  return server;
}

/** One answer, to its end or until it is stopped. `watch` is a page that stays. */
async function answered(server, random, { chunks, page, watch }) {
  const visitors = [page];
  const send = () => chunks.length && server.controller.enqueue(chunks.shift());
  const leave = async () => visitors.splice(0).map((one) => one !== watch && one.stop());
  const come = async () => {
    const one = await server.load();
    visitors.push(one);
    void one.resumeStream();
  };
  while (server.isLive) {
    await random.one([send, send, send, send, leave, come, moment, ...(random.below(12) ? [] : [server.stop])])();
    if (!chunks.length && server.isLive) {
      server.controller.close();
      server.isLive = false;
    }
  }
}

/** Version 6 has no answers of the server to requests for approvals. */
function chunksOf(random, id, version) {
  const chunks = answerOf(random, id, version);
  if (version === 7) return chunks;
  const automatic = chunks.flatMap(({ type, approvalId }) => (type === 'tool-approval-response' ? [approvalId] : []));
  const calls = chunks.flatMap(({ toolCallId, approvalId }) => (automatic.includes(approvalId) ? [toolCallId] : []));
  return chunks.filter(({ toolCallId, approvalId }) => !automatic.includes(approvalId) && !calls.includes(toolCallId));
}

async function walk([version, ai], seed) {
  const random = seeded(seed);
  const server = await serverOf(ai);
  const label = `RETHREAD_SEED=${seed} RETHREAD_CASES=1, ai ${version}`;
  let last = [];
  for (let turn = 0; turn < 4; turn += 1) {
    const page = await server.load();
    const isAgain = turn > 0 && random.below(3) === 0;
    server.controller = null;
    let done = isAgain ? page.regenerate() : page.sendMessage({ text: `question ${turn}` });
    await until(() => server.controller);
    // Until another answer has content, a page that is loaded shows the one that it replaces.
    const watch = isAgain || random.below(2) ? page : await server.load();
    if (watch !== page) {
      const { reconnects } = server;
      done = watch.resumeStream();
      await until(() => server.reconnects > reconnects);
    }
    const chunks = chunksOf(random, random.one([undefined, `m${turn}`]), version);
    if (isAgain) while (chunks.length) server.controller.enqueue(chunks.shift());
    await answered(server, random, { chunks, page, watch });
    await done;
    // Nothing is stored of an answer that has no content.
    let shown = compared(closed(watch.messages)).filter(({ parts }) => parts.length);
    // Another answer that was stopped before it had any leaves the stored one.
    if (isAgain && shown.at(-1).role === 'user') shown = last;
    await until(async () => (await loadUIMessages(await again(server.session))).length >= shown.length);
    assert.equal(watch.error, undefined, `${label}, turn ${turn}`);
    assert.deepEqual(compared(await loadUIMessages(await again(server.session))), shown, `${label}, turn ${turn}`);
    last = shown;
  }
}

for (const version of VERSIONS)
  test(`r53 what a server stores is what a page shows, however pages leave, come back and stop, with ai ${version[0]}`, {
    timeout: 600_000,
  }, async () => {
    for (let seed = SEED; seed < SEED + CASES; seed += 1) await walk(version, seed);
  });
