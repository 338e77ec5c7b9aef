// r62: a page goes on after an instance has stopped.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { withLittleMemory } from '../bindings/scenarios/memory.mjs';
import { openWorld } from './page.mjs';

const wasm = readFileSync(new URL('../../dist/rethread_bg.wasm', import.meta.url));
let world;
before(async () => {
  world = await openWorld();
});
after(() => world?.close());

/** A page whose wasm has little memory. */
async function littlePage() {
  const context = await world.context();
  const body = Buffer.from(withLittleMemory(wasm, 8 * 1024 * 1024));
  await context.route('**/rethread_bg.wasm', (route) => route.fulfill({ body, contentType: 'application/wasm' }));
  return world.page(context);
}

test('r62 after memory ran out in a run, the page opens its store again and resumes the run', async () => {
  const page = await littlePage();
  const facts = await page.evaluate(async () => {
    const provider = { dialect: 'openai-chat', url: 'https://model.example/v1', params: { model: 'm' }, stream: true };
    const chunk = (delta, finish_reason = null) =>
      `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason }] })}\n\n`;
    const head = { headers: { 'content-type': 'text/event-stream' } };
    const answer = async () =>
      new Response(`${chunk({ role: 'assistant', content: 'Done.' })}${chunk({}, 'stop')}data: [DONE]\n\n`, head);
    const user = (content) => ({ messages: [{ role: 'user', content }] });
    const codeOf = (promise) =>
      promise.then(
        () => null,
        (error) => error.code,
      );
    const client = await rethread.open({ name: 'trap' });
    const neighbour = await (await rethread.open({ name: 'neighbour' })).session('n');
    const session = await client.session('s');
    await session.append(user('kept'), 'openai-chat');
    const run = await session.run({ input: 'asked', provider });
    const driven = drive(run, { fetch: async () => new Response(new ReadableStream({}), head) });
    const view = session.view();
    const shown = view.getSnapshot();
    const facts = { before: shown.run.status };
    facts.append = await codeOf(session.append(user('x'.repeat(9 * 1024 * 1024)), 'openai-chat'));
    facts.driven = await codeOf(driven.result);
    facts.later = await codeOf(session.messages());
    facts.painted = view.getSnapshot().run.status;
    facts.validate = rethread.validate(user('x'), 'openai-chat').length;
    facts.neighbour = (await neighbour.append(user('x'), 'openai-chat')).revision;
    const again = await rethread.open({ name: 'trap' });
    const reopened = await again.session('s');
    facts.messages = (await reopened.messages()).items.length;
    // The lock that the stopped instance held is released, so the run is nobody's.
    for (let tries = 0; tries < 1000 && facts.state !== 'interrupted'; tries += 1) {
      facts.state = (await reopened.pendingRuns())[0]?.state;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    facts.resumed = (await drive(await reopened.resume(run.id, { provider }), { fetch: answer }).result).status;
    facts.all = (await reopened.messages()).items.map(({ parts }) => parts[0].text);
    await again.close();
    // Its connection is closed as well: nothing holds the database.
    facts.deleted = await new Promise((resolve) => {
      const request = indexedDB.deleteDatabase('trap');
      request.onsuccess = () => resolve('deleted');
      request.onblocked = () => resolve('blocked');
    });
    return facts;
  });
  assert.deepEqual(facts, {
    before: 'running',
    append: 'internal',
    driven: 'internal',
    later: 'internal',
    painted: 'failed',
    validate: 0,
    neighbour: 1,
    messages: 1,
    state: 'interrupted',
    resumed: 'finished',
    all: ['kept', 'asked', 'Done.'],
    deleted: 'deleted',
  });
  assert.deepEqual(page.complaints, []);
});

test('r62 after the stack ran out in getSnapshot, the page renders again', async () => {
  const page = await world.page();
  const facts = await page.evaluate(async () => {
    const client = await rethread.open({ name: 'stack' });
    const session = await client.session('s');
    const view = session.view();
    const ends = {};
    for (let n = 1; n <= 10; n += 1) {
      await session.append({ messages: [{ role: 'user', content: `${n}` }] }, 'openai-chat');
      const deeper = () => {
        try {
          deeper();
        } catch (error) {
          try {
            view.getSnapshot();
          } catch (thrown) {
            const kind = thrown.code ?? thrown.name;
            ends[kind] = (ends[kind] ?? 0) + 1;
          }
          throw error;
        }
      };
      try {
        deeper();
      } catch {
        // the stack is exhausted, as it should be
      }
    }
    return {
      ends: Object.keys(ends),
      shown: view.getSnapshot().messages.length,
      revision: (await session.append({ messages: [{ role: 'user', content: 'x' }] }, 'openai-chat')).revision,
    };
  });
  assert.deepEqual(facts, { ends: ['RangeError'], shown: 10, revision: 11 });
  assert.deepEqual(page.complaints, []);
});

test('r62 a disposed run can be resumed by another tab at once', async () => {
  const context = await world.context();
  const [one, two] = [await world.page(context), await world.page(context)];
  const id = await one.evaluate(async () => {
    const provider = { dialect: 'openai-chat', url: 'https://model.example/v1', params: { model: 'm' }, stream: true };
    const session = await (await rethread.open({ name: 'dispose' })).session('s');
    const run = await session.run({ input: 'asked', provider });
    const driven = drive(run, {
      fetch: async () => new Response(new ReadableStream({}), { headers: { 'content-type': 'text/event-stream' } }),
    });
    await new Promise((resolve) => setTimeout(resolve, 20));
    run[Symbol.dispose ?? Symbol.for('Symbol.dispose')]();
    await driven.result.catch(() => {});
    return run.id;
  });
  const facts = await two.evaluate(async (id) => {
    const provider = { dialect: 'openai-chat', url: 'https://model.example/v1', params: { model: 'm' } };
    const session = await (await rethread.open({ name: 'dispose' })).session('s');
    const answer = JSON.stringify({
      choices: [{ index: 0, message: { role: 'assistant', content: 'Done.' }, finish_reason: 'stop' }],
    });
    const [pending] = await session.pendingRuns();
    const fetch = async () => new Response(answer, { headers: { 'content-type': 'application/json' } });
    return [pending.id, pending.state, (await drive(await session.resume(id, { provider }), { fetch }).result).status];
  }, id);
  assert.deepEqual(facts, [id, 'interrupted', 'finished']);
  assert.deepEqual([...one.complaints, ...two.complaints], []);
});
