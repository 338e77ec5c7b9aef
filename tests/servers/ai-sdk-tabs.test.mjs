// `withSession` in two openings of one store, as two tabs have it.

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, test } from 'node:test';
import * as ai from 'ai';
import { open } from 'rethread';
import { loadUIMessages, withSession } from 'rethread/ai-sdk';
import { sqlite } from 'rethread/sqlite';
import { keeps, kept, openAnswer, shown, start, stored } from '../judges/ai-sdk-chat.mjs';
import { Server, pageOf, step, text, whole } from '../judges/ai-sdk-page.mjs';

const folder = mkdtempSync(path.join(tmpdir(), 'rethread-ai-sdk-'));
after(() => rmSync(folder, { recursive: true, force: true }));
const end = [{ type: 'finish-step' }, { type: 'finish' }];

test('r53 two tabs that stream at once each keep their answer', async () => {
  const file = path.join(folder, 'two.sqlite');
  const clients = await Promise.all([1, 2].map(() => open({ store: sqlite(file) })));
  const [session, tab] = await Promise.all(clients.map((client) => client.session('chat')));
  const server = new Server(ai);
  const newPage = async (own) =>
    pageOf(ai, { transport: withSession(server.transport, own), messages: await loadUIMessages(own) });
  const page = await newPage(session);
  server.answers.push(whole('m1', step(text(['One.']))));
  await page.sendMessage({ text: 'first' });
  const other = await newPage(tab);
  const [a, b] = [openAnswer(), openAnswer()];
  server.answers.push(a.answer, b.answer);
  const sent = [page.sendMessage({ text: 'second' })];
  a.send(start('m2'), text(['A1']));
  await keeps(session, 'A1');
  sent.push(other.sendMessage({ text: 'else' }));
  b.send(start('m3'), text(['B1']));
  await keeps(tab, 'B1');
  a.send(text(['A2'], 'u'));
  await keeps(session, 'A2');
  b.send(text(['B2'], 'u'));
  await keeps(tab, 'B2');
  assert.equal(shown(await loadUIMessages(session)).at(-1), 'assistant: A1: A2');
  assert.equal(shown(await loadUIMessages(tab)).at(-1), 'assistant: B1: B2');
  for (const { send, close } of [a, b]) {
    send(end);
    close();
  }
  await Promise.all(sent);
  await session.refresh();
  assert.deepEqual(
    kept(session).filter((value) => value !== 'null'),
    [],
  );
  assert.equal(shown(await stored(session)).at(-1), 'assistant: A1: A2');
  assert.equal(shown(await stored(tab)).at(-1), 'assistant: B1: B2');
});
