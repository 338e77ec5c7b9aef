// r53: `run(agent, input, { session })` of the OpenAI Agents SDK in processes that are killed.

import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Agent, RunContext } from '@openai/agents';
import { open } from 'rethread';
import { agentsSession } from 'rethread/openai-agents';
import { sqlite } from 'rethread/sqlite';
import { call, elsewhere, lookTool, result, ScriptedModel, user } from '../judges/agents.mjs';
import { endsWithThisProcess } from './child-processes.mjs';

const PROGRAM = fileURLToPath(new URL('agents-program.mjs', import.meta.url));
const folder = mkdtempSync(path.join(tmpdir(), 'rethread-agents-'));
after(() => rmSync(folder, { recursive: true, force: true }));

/** Runs the program until it sends something, and kills it. */
async function killedAfter(...args) {
  const child = endsWithThisProcess(fork(PROGRAM, args));
  const ended = once(child, 'exit');
  const [message] = await Promise.race([
    once(child, 'message'),
    ended.then(([code]) => assert.fail(`the program ended with ${code}`)),
  ]);
  child.kill('SIGKILL');
  await ended;
  return message;
}

const shown = (items) =>
  items.map(
    (item) => item.callId ?? (typeof item.content === 'string' ? item.content : (item.content[0]?.text ?? item.type)),
  );
const resultOf = (items, callId) =>
  items.find((item) => item.type === 'function_call_result' && item.callId === callId)?.output.text;

test('r53 a run that is killed in a tool goes on: no tool runs again, and no result is lost', {
  timeout: 60_000,
}, async () => {
  const file = path.join(folder, 'tool.sqlite');
  assert.deepEqual((await killedAfter(file, 'tool')).ran, ['quick', 'slow']);

  const next = await killedAfter(file, 'go on');
  assert.equal(next.output, 'Done.');
  assert.deepEqual(next.ran, []);
  assert.equal(next.requests.length, 1);
  const [request] = next.requests;
  const calls = ['call_quick', 'call_slow'];
  assert.deepEqual(shown(request), ['Go.', 'reasoning', ...calls, ...calls]);
  assert.equal(resultOf(request, 'call_quick'), 'quick result');
  assert.match(resultOf(request, 'call_slow'), /^Interrupted: .*may or may not have run/);
  assert.deepEqual(shown(next.items), ['Go.', 'reasoning', ...calls, ...calls, 'Done.']);
});

test('r53 a run that is killed while it waits for an approval goes on in another process; killed in the approved tool, it does not run that again', {
  timeout: 60_000,
}, async () => {
  const file = path.join(folder, 'approval.sqlite');
  const waiting = await killedAfter(file, 'approval');
  assert.equal(waiting.interruptions, 1);
  assert.deepEqual(waiting.ran, ['quick']);
  const copy = path.join(folder, 'approved.sqlite');
  for (const end of ['', '-wal']) if (existsSync(file + end)) copyFileSync(file + end, copy + end);

  const calls = ['call_quick', 'call_pay'];
  const going = async () => {
    const approved = await killedAfter(file, 'approve', waiting.state);
    assert.equal(approved.output, 'Done.');
    assert.deepEqual(approved.ran, ['pay']);
    assert.deepEqual(shown(approved.items), ['Go.', 'reasoning', ...calls, ...calls, 'Done.']);
    assert.equal(resultOf(approved.items, 'call_pay'), 'paid');
    // The same state once more, as a client sends it that has lost the answer.
    const again = await killedAfter(file, 'approve', waiting.state);
    assert.deepEqual(again.ran, []);
    assert.equal(shown(again.items).filter((name) => name === 'call_pay').length, 2);
  };
  const killed = async () => {
    assert.deepEqual((await killedAfter(copy, 'approve and hang', waiting.state)).ran, ['pay']);
    const next = await killedAfter(copy, 'approve', waiting.state);
    assert.deepEqual(next.ran, []);
    assert.deepEqual(shown(next.items), ['Go.', 'reasoning', ...calls, ...calls, 'Done.']);
    assert.match(resultOf(next.items, 'call_pay'), /^Interrupted: /);
  };
  await Promise.all([going(), killed()]);
});

test('r53 two openings of one file add items, take the last one and apply one operation, and lose nothing', async () => {
  const file = path.join(folder, 'two.sqlite');
  const stores = await Promise.all([1, 2].map(() => open({ store: sqlite(file) })));
  const [one, two] = await Promise.all(stores.map(async (store) => agentsSession(await store.session('chat'))));
  const numbers = Array.from({ length: 10 }, (_, number) => number);
  const add = async (session, name) => {
    for (const number of numbers) {
      const id = `${name} ${number}`;
      await session.addItems([call(id)]);
      await session.addItems([result(id)]);
    }
  };
  await Promise.all([add(one, 'one'), add(two, 'two')]);
  const items = await one.getItems();
  assert.deepEqual(await two.getItems(), items);
  const of = (name) => items.filter(({ callId }) => callId.startsWith(name));
  for (const name of ['one', 'two']) {
    assert.deepEqual(
      of(name),
      numbers.flatMap((number) => [call(`${name} ${number}`), result(`${name} ${number}`)]),
    );
  }

  const transaction = { type: 'append_items', items: [user('once'), call('last'), result('last')] };
  await Promise.all([one, two].map((session) => session.applyHistoryTransaction({ operationId: 'op', transaction })));
  assert.deepEqual(await two.popItem(), result('last'));
  assert.deepEqual(await one.getItems(), [...items, user('once'), call('last')]);
  for (const store of stores) await store.close();
});

test('r53 the result of one process leaves the mark of a call that another has started meanwhile', async () => {
  const file = path.join(folder, 'marks.sqlite');
  const stores = await Promise.all([1, 2].map(() => open({ store: sqlite(file) })));
  const [one, two] = await Promise.all(stores.map((store) => store.session('chat')));
  const agents = agentsSession(two);
  await agents.addItems([user('q'), call('a'), call('b')]);
  const outputs = async () => (await agents.getItems()).flatMap(({ output }) => output?.text ?? []);
  const invoke = (session, callId, execute) => {
    const agent = new Agent({ name: 'A', model: new ScriptedModel([]), tools: [lookTool([], { execute })] });
    return session.durable(agent).tools[0].invoke(new RunContext(), '{}', { toolCall: call(callId) });
  };
  let isB = false;
  const beginB = async ([{ role }]) => {
    if (role !== 'tool' || isB) return;
    await new Promise((resolve) => invoke(agents, 'b', () => new Promise(() => resolve((isB = true)))));
  };
  await invoke(agentsSession(elsewhere(one, beginB)), 'a', () => 'seen');
  const [first, second] = await outputs();
  assert.equal(first, 'seen');
  assert.match(second, /^Interrupted: /);
  for (const store of stores) await store.close();
});
