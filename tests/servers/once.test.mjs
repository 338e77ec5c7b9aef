// r18, r19: the recipes of docs/sent-twice.md, in processes that are killed.

import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { laneOf } from '../browser/page.mjs';
import { startStandIn } from '../stand-in/server.mjs';
import { blocksOf, scoped } from '../types/documents/blocks.mjs';
import { endsWithThisProcess } from './child-processes.mjs';
import { mcpClient } from './once-mcp.mjs';

const PROGRAM = fileURLToPath(new URL('once-program.mjs', import.meta.url));
const INTERRUPTED = /Interrupted: this call has no recorded result\. It may or may not have run/;
const folder = mkdtempSync(path.join(tmpdir(), 'rethread-once-'));
after(() => rmSync(folder, { recursive: true, force: true }));
const mailsOf = (name) => {
  const file = path.join(folder, `${name}.mails`);
  return existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : [];
};

let standIn;
before(async () => {
  standIn = await startStandIn();
});
after(() => standIn.close());

const page = readFileSync(new URL('../../docs/sent-twice.md', import.meta.url), 'utf8');
/** Writes the code of the page's section to a file, without its imports, and returns the file's path. */
function codeOf(section) {
  const [block] = blocksOf(page.split('\n## ').find((part) => part.startsWith(`${section}\n`)));
  const file = path.join(folder, `${section}.js`);
  writeFileSync(file, scoped(block).source);
  return file;
}

/** The program's arguments. */
const argumentsOf = (section, name, hangAt, url) => [
  section,
  path.join(folder, `${name}.sqlite`),
  path.join(folder, `${name}.mails`),
  hangAt,
  url,
  codeOf(section),
];

/** Runs the section until it sends something, and kills it. */
async function killedAfter(section, name, hangAt, url) {
  const args = argumentsOf(section, name, hangAt, url);
  const child = endsWithThisProcess(fork(PROGRAM, args, { execArgv: ['--no-warnings'] }));
  const ended = once(child, 'exit');
  const [message] = await Promise.race([
    once(child, 'message'),
    ended.then(([code]) => assert.fail(`the program ended with ${code}`)),
  ]);
  child.kill('SIGKILL');
  await ended;
  return message;
}

const SAYS = {
  tool: INTERRUPTED,
  model: /sent to ann/,
};
const place = { tool: 'in the tool', model: 'after the tool' };

/** A lane whose model asks for one mail, and is asked twice at most. */
async function laneFor(name) {
  const lane = laneOf(standIn.url, name);
  await lane.script([{ calls: [{ id: 'call_1', name: 'send_mail', arguments: { to: 'ann' } }] }, { text: 'Done.' }], {
    then: 'error',
  });
  return lane;
}

describe('docs/sent-twice.md', { concurrency: 2, timeout: 300_000 }, () => {
  for (const section of ['A loop over fetch', 'AI SDK']) {
    for (const hangAt of ['tool', 'model']) {
      test(`r18 r19 ${section}, killed ${place[hangAt]}, goes on, and sends one mail`, async () => {
        const name = `${section} ${hangAt}`;
        const lane = await laneFor(name);
        assert.equal(await killedAfter(section, name, hangAt, `${lane.base}/v1`), 'hangs');
        assert.deepEqual(await killedAfter(section, name, 'never', `${lane.base}/v1`), { given: 'Done.' });
        // Once more, as somebody does it who has lost the answer.
        if (section === 'AI SDK' && hangAt === 'model')
          assert.deepEqual(await killedAfter(section, name, 'never', `${lane.base}/v1`), { given: 'Done.' });
        assert.deepEqual(mailsOf(name), ['ann']);
        const requests = await lane.requests();
        assert.deepEqual(
          requests.map(({ status }) => status),
          [200, 200],
        );
        assert.match(requests[1].bodyText, SAYS[hangAt]);
      });
    }
  }

  for (const hangAt of ['tool', 'model']) {
    test(`r18 r19 Mastra, killed ${place[hangAt]}, sends one mail, though its calls get other ids`, async () => {
      const name = `mastra ${hangAt}`;
      assert.equal(await killedAfter('Mastra', name, hangAt, ''), 'hangs');
      assert.match((await killedAfter('Mastra', name, 'never', '')).given, SAYS[hangAt]);
      assert.deepEqual(mailsOf(name), ['ann']);
    });
  }

  const isLong = Boolean(process.env.LANGGRAPH && process.env.MCP_SDK);
  const skip = isLong ? false : 'in the long mode';
  for (const hangAt of ['tool', 'model']) {
    test(`r18 r19 LangGraph, killed ${place[hangAt]}, goes on, and sends one mail`, { skip }, async () => {
      const name = `langgraph ${hangAt}`;
      assert.equal(await killedAfter('LangGraph', name, hangAt, ''), 'hangs');
      const { given } = await killedAfter('LangGraph', name, 'never', '');
      const unknown = { callId: 'call_1', name: 'send_mail', arguments: { to: 'ann' } };
      assert.deepEqual(given.asked, hangAt === 'tool' ? [unknown] : undefined);
      assert.deepEqual(
        given.stored.map(([type]) => type),
        ['human', 'ai', 'tool', 'ai'],
      );
      assert.match(given.stored[2][1], SAYS[hangAt]);
      assert.deepEqual(mailsOf(name), ['ann']);
    });
  }

  test('r18 r19 LangGraph, killed in the tool, takes another question: nothing is lost or sent twice', {
    skip,
  }, async () => {
    const name = 'langgraph another';
    assert.equal(await killedAfter('LangGraph', name, 'tool', ''), 'hangs');
    const { given } = await killedAfter('LangGraph', name, 'another question', '');
    const [question, asking, result, ...rest] = given.stored;
    assert.deepEqual(
      [question, asking],
      [
        ['human', 'Write to Ann.'],
        ['ai', ''],
      ],
    );
    assert.match(result[1], INTERRUPTED);
    assert.deepEqual(rest, [
      ['human', 'Hello?'],
      ['ai', 'Hello.'],
    ]);
    assert.deepEqual(mailsOf(name), ['ann']);
  });

  test('r18 r19 an MCP server that is killed in its tool sends one mail', { skip }, async () => {
    const args = (hangAt) => ['--no-warnings', PROGRAM, ...argumentsOf('An MCP server', 'mcp', hangAt, '')];
    const call = (id) => ({
      name: 'send_mail',
      arguments: { to: id },
      _meta: { 'example.com/call-id': id },
    });
    const env = { ...process.env };
    const killed = await mcpClient(args('tool'), env);
    const lost = assert.rejects(killed.client.callTool(call('ann')));
    while (!mailsOf('mcp').length) await new Promise((resolve) => setTimeout(resolve, 20));
    process.kill(killed.pid, 'SIGKILL');
    await lost;
    const next = await mcpClient(args('never'), env);
    try {
      const again = await next.client.callTool(call('ann'));
      assert.equal(again.isError, true);
      assert.match(again.content[0].text, INTERRUPTED);
      const texts = [];
      for (const _ of [1, 2]) texts.push((await next.client.callTool(call('bob'))).content[0].text);
      assert.deepEqual(texts, ['sent to bob', 'sent to bob']);
      assert.deepEqual(mailsOf('mcp'), ['ann', 'bob']);
    } finally {
      await next.client.close();
    }
  });
});
