// r53: random answers that one opening of a store makes and a page of another one follows.

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { open } from 'rethread';
import { chatHandler, loadUIMessages } from 'rethread/ai-sdk';
import { sqlite } from 'rethread/sqlite';
import { until } from '../judges/ai-sdk-chat.mjs';
import { closed, compared } from '../judges/ai-sdk-compared.mjs';
import { VERSIONS } from '../judges/ai-sdk-models.mjs';
import { pageOf } from '../judges/ai-sdk-page.mjs';
import { answerOf } from '../judges/ui-chunks.mjs';
import { seeded } from '../judges/ui-messages.mjs';

const CASES = Number(process.env.RETHREAD_CASES ?? (process.env.RETHREAD_LONG ? 200 : 12));
const SEED = Number(process.env.RETHREAD_SEED ?? 20261128);
/** So many at a time: each waits for the other opening most of the time. */
const AT_ONCE = 6;
const folder = mkdtempSync(path.join(tmpdir(), 'rethread-ai-sdk-'));
after(() => rmSync(folder, { recursive: true, force: true }));

/** Answers of the page to requests for approvals come from it, and no answer has them. */
function chunksOf(random, version) {
  const chunks = answerOf(random, undefined, version);
  const isAutomatic = version === 7 ? ({ isAutomatic: is }) => is === true : () => false;
  const own = chunks.filter(isAutomatic).map(({ approvalId }) => approvalId);
  const answered = chunks.flatMap(({ type, approvalId }) =>
    type === 'tool-approval-response' && !own.includes(approvalId) ? [approvalId] : [],
  );
  const calls = chunks.flatMap(({ toolCallId, approvalId }) => (answered.includes(approvalId) ? [toolCallId] : []));
  return chunks.filter(
    ({ toolCallId, approvalId, transient }) =>
      !transient && !answered.includes(approvalId) && !calls.includes(toolCallId),
  );
}

async function walk([version, ai], [holder, other], seed) {
  const random = seeded(seed);
  const id = `chat-${seed}`;
  let controller;
  const answer = () => new ReadableStream({ start: (own) => (controller = own) });
  const [handler, follower] = [holder, other].map((store) =>
    chatHandler({ session: (chat) => store.session(chat), answer }),
  );
  const pageAt = (handle, messages = []) => {
    const fetch = (url, init) => handle(new Request(url, init));
    return pageOf(ai, {
      id,
      messages,
      transport: new ai.DefaultChatTransport({ api: 'https://server.test/api/chat', fetch }),
    });
  };
  const page = pageAt(handler);
  const label = `RETHREAD_SEED=${seed} RETHREAD_CASES=1, ai ${version}`;
  const done = page.sendMessage({ text: 'go' });
  await until(() => controller);
  const chunks = chunksOf(random, version);
  const pages = [];
  while (chunks.length) {
    if (pages.length < 2 && random.below(3) === 0) {
      const followed = pageAt(follower, await loadUIMessages(await other.session(id)));
      pages.push({ followed, resumed: followed.resumeStream() });
    }
    for (let count = 1 + random.below(5); count && chunks.length; count -= 1) controller.enqueue(chunks.shift());
    await setTimeout(random.below(250));
  }
  controller.close();
  await done;
  const stored = compared(closed(await loadUIMessages(await holder.session(id))));
  for (const { followed, resumed } of pages) {
    await resumed;
    assert.deepEqual(compared(closed(followed.messages)), stored, label);
    assert.equal(followed.error?.message, page.error?.message, label);
  }
  assert.deepEqual(compared(closed(await loadUIMessages(await other.session(id)))), stored, label);
  return pages.length;
}

for (const version of VERSIONS)
  test(`r53 a page that follows an answer of another opening shows what is stored, with ai ${version[0]}`, {
    timeout: 600_000,
  }, async () => {
    const file = path.join(folder, `${version[0]}.sqlite`);
    const stores = await Promise.all([1, 2].map(() => open({ store: sqlite(file) })));
    const seeds = Array.from({ length: CASES }, (_, at) => SEED + at);
    let count = 0;
    const walker = async () => {
      for (let seed = seeds.shift(); seed !== undefined; seed = seeds.shift())
        count += await walk(version, stores, seed);
    };
    await Promise.all(Array.from({ length: AT_ONCE }, walker));
    if (CASES > 1) assert.ok(count > 0);
  });
