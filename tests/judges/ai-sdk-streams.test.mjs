// `withSession` under the chat of `ai` 6 and 7, with random answers that are cut, continued, asked for again and edited:
// what is stored is what the page shows.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as ai6 from 'ai';
import * as ai7 from 'ai-7';
import { open, validate } from 'rethread';
import { loadUIMessages, toUIMessages, withSession } from 'rethread/ai-sdk';
import { closed, compared } from './ai-sdk-compared.mjs';
import { BREAKS, Server, pageOf } from './ai-sdk-page.mjs';
import { answerOf } from './ui-chunks.mjs';
import { seeded } from './ui-messages.mjs';

const CASES = Number(process.env.RETHREAD_CASES ?? (process.env.RETHREAD_LONG ? 1000 : 15));
const SEED = Number(process.env.RETHREAD_SEED ?? 20261127);
const client = await open({ store: 'memory' });
const items = async (session) => (await session.messages({ limit: 1000 })).items;
const texts = (messages) =>
  messages.flatMap(({ role, parts }) => parts.flatMap(({ text }) => (role === 'user' ? [text] : [])));

async function walk(ai, version, seed) {
  const random = seeded(seed);
  const label = `RETHREAD_SEED=${seed} RETHREAD_CASES=1, ai ${version}`;
  const session = await client.session(`walk-${version}-${seed}`);
  const server = new Server(ai);
  const newPage = (messages) => pageOf(ai, { transport: withSession(server.transport, session), messages });
  let page = newPage([]);
  const asked = [];
  let [count, answer] = [0, []];
  const prepare = () => {
    count += 1;
    answer = answerOf(random, `m-${count}`, version);
    // Servers need not name their answers.
    if (!random.below(2)) delete answer[0].messageId;
    server.resumed = undefined;
    const isCut = !random.below(4);
    server.answers = [isCut ? [...answer.slice(0, random.below(answer.length)), BREAKS] : answer];
    return isCut;
  };
  const same = async (what) => {
    // An answer without content is stored when the page sends it.
    const hasContent = ({ parts }) => parts.some(({ type }) => type !== 'step-start');
    const stored = toUIMessages(await items(session)).filter(hasContent);
    const shown = page.messages.filter(hasContent);
    assert.deepEqual(compared(stored), compared(closed(shown)), `${label}: ${what}`);
  };
  for (let at = 0; at < 6; at += 1) {
    const questions = page.messages.filter(({ role }) => role === 'user');
    const action = questions.length ? random.one(['ask', 'ask', 'regenerate', 'edit', 'reload']) : 'ask';
    if (action === 'reload') page = newPage(await loadUIMessages(session));
    else {
      const isCut = prepare();
      const text = `question ${count}`;
      if (action !== 'regenerate') asked.push(text);
      if (action === 'ask') await page.sendMessage({ text });
      else if (action === 'edit') await page.sendMessage({ text, messageId: random.one(questions).id });
      else await page.regenerate();
      const before = toUIMessages(await items(session)).length;
      if (isCut && random.below(2)) {
        // `ai` shows what it had of a regenerated answer, which is not stored before it has content.
        page = newPage(await loadUIMessages(session));
        server.resumed = answer;
        await page.resumeStream();
        assert.ok(toUIMessages(await items(session)).length <= before + 1, label);
      }
    }
    if (page.status === 'ready') await same(`${at} ${action}`);
    const { body } = await session.render({ dialect: 'anthropic', params: { model: 'm' }, input: 'x' });
    assert.deepEqual(
      validate(body, 'anthropic').filter(({ severity }) => severity === 'error'),
      [],
      label,
    );
    const loaded = await loadUIMessages(session);
    if (loaded.length) await ai.validateUIMessages({ messages: loaded });
    ai.convertToModelMessages(loaded);
  }
  const branches = await session.branches();
  const kept = await Promise.all(
    branches.map(async ({ branch }) => toUIMessages((await session.messages({ branch })).items)),
  );
  assert.deepEqual(
    asked.filter((text) => !texts(kept.flat()).includes(text)),
    [],
    `${label}: no question is lost`,
  );
}

for (const [version, ai] of [
  [6, ai6],
  [7, ai7],
])
  test(`r53 what is stored is what the page shows, whatever happens to it, with ai ${version}`, {
    timeout: 120_000,
  }, async () => {
    for (let at = 0; at < CASES; at += 1) await walk(ai, version, SEED + at);
  });
