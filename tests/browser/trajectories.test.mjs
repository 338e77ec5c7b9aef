// Real conversations: stored in Chromium, read back by another page, rendered, judged by the model's own rules.

import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { openWorld } from './page.mjs';

const folder = path.join(
  process.env.RETHREAD_DATA || fileURLToPath(new URL('../corpora', import.meta.url)),
  'trajectories',
);
const conversations = readdirSync(folder)
  .filter((file) => file.endsWith('.json') && file !== 'index.json')
  .sort()
  .map((file) => ({ file, body: JSON.parse(readFileSync(path.join(folder, file), 'utf8')) }));

/** Call ids by their order of appearance, so that a renamed one compares equal; nothing else is touched. Says which ids
 *  were used twice. */
function normal(given) {
  const messages = structuredClone(given);
  const seen = new Map();
  const twice = new Set();
  let open = new Map();
  let count = 0;
  for (const message of messages) {
    if (message.tool_calls?.length) {
      open = new Map();
      for (const call of message.tool_calls) {
        if (seen.has(call.id)) twice.add(call.id);
        seen.set(call.id, true);
        open.set(call.id, [...(open.get(call.id) ?? []), `#${count}`]);
        call.id = `#${count}`;
        count += 1;
      }
    }
    if (message.tool_call_id !== undefined) {
      const name = open.get(message.tool_call_id)?.shift();
      assert.ok(name, 'a result follows its call');
      message.tool_call_id = name;
    }
  }
  return { messages, twice: [...twice] };
}

const textOf = (content) =>
  typeof content === 'string' ? content : (content ?? []).map(({ text }) => text ?? '').join('');

/** Texts, names, arguments and results, in order. */
function said(messages) {
  return messages.flatMap(({ role, content, tool_calls: calls = [] }) => {
    const text = textOf(content);
    return [
      ...(text || role === 'tool' ? [`${role}: ${text}`] : []),
      ...calls.map(({ function: { name, arguments: given } }) => [name, JSON.parse(given)]),
    ];
  });
}

let world;
let out;
before(async () => {
  world = await openWorld();
  const context = await world.context();
  const lane = world.lane('trajectories');
  const first = await world.page(context);
  await first.evaluate(async (all) => {
    const client = await rethread.open({ name: 'trajectories' });
    for (const { file, body } of all) await (await client.session(file)).append(body, 'openai-chat');
    await client.close();
  }, conversations);
  await first.close();

  const second = await world.page(context);
  out = new Map(
    await second.evaluate(
      async ([files, model]) => {
        const client = await rethread.open({ name: 'trajectories' });
        const read = ({ body }) => JSON.parse(new TextDecoder().decode(body));
        const send = async (url, { body }) => {
          const response = await fetch(url, {
            method: 'POST',
            headers: { 'content-type': 'application/json', 'anthropic-version': '2023-06-01' },
            body,
          });
          return { status: response.status, text: response.ok ? '' : await response.text() };
        };
        const replay = { freshness: Infinity };
        const facts = [];
        for (const file of files) {
          const session = await client.session(file);
          const chat = await session.render({ dialect: 'openai-chat', params: { model: 'm' }, replay });
          const claude = await session.render({ dialect: 'anthropic', params: { model: 'm' }, replay });
          const other = await client.session(`${file}:back`);
          await other.append(claude.body, 'anthropic');
          const back = await other.render({ dialect: 'openai-chat', params: { model: 'm' }, replay });
          facts.push([
            file,
            {
              chat: read(chat),
              back: read(back),
              report: [...chat.report, ...claude.report],
              sent: [await send(model.chat, chat), await send(model.messages, claude), await send(model.chat, back)],
            },
          ]);
        }
        await client.close();
        return facts;
      },
      [conversations.map(({ file }) => file), { chat: lane.chat, messages: lane.messages }],
    ),
  );
  assert.deepEqual(second.complaints, []);
});
after(() => world?.close());

/** Fewer recorded conversations than this mean that some were lost. */
const LEAST_CONVERSATIONS = 55;

test('no recorded conversation was lost', () => {
  assert.ok(
    conversations.length >= LEAST_CONVERSATIONS,
    `${conversations.length} conversations, ${LEAST_CONVERSATIONS} at least`,
  );
});

describe('r03 every conversation survives IndexedDB and a reload', () => {
  for (const { file, body } of conversations) {
    test(file, () => {
      const { chat, back, report, sent } = out.get(file);
      const want = normal(body.messages);
      const got = normal(chat.messages);
      // One that ends on open calls gets its closing results.
      const open = want.messages.at(-1).tool_calls?.length ?? 0;
      assert.equal(got.messages.length, want.messages.length + open);
      assert.deepEqual(got.messages.slice(0, want.messages.length), want.messages);
      for (const closing of got.messages.slice(want.messages.length)) assert.equal(closing.role, 'tool');
      const renamed = new Set(
        report
          .filter(({ code, action }) => code === 'duplicate_call_id' && action === 'renamed')
          .map(({ callId }) => callId),
      );
      assert.deepEqual([...renamed].sort(), want.twice.sort(), 'what is renamed is reported, and nothing else is');
      if (!want.twice.length) assert.deepEqual(chat.messages.slice(0, body.messages.length), body.messages);
      assert.deepEqual(said(back.messages), said(chat.messages), 'through Anthropic and back');
      assert.deepEqual(
        sent.map(({ status, text }) => [status, text]),
        [
          [200, ''],
          [200, ''],
          [200, ''],
        ],
        'the model takes it',
      );
    });
  }
});
