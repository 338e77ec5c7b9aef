// The chat of the examples, with a session that holds still where a real one is too fast.

import assert from 'node:assert/strict';
import path from 'node:path';
import { after, before, mock, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { exampleProject } from './example-project.mjs';

const { dispose } = await import('../../js/wasm-handle.js');
let project;
let Chat;
before(async () => {
  project = exampleProject();
  ({ Chat } = await import(pathToFileURL(path.join(project.folder, 'chat/chat.js'))));
});
after(() => project.remove());

/** A run that has emitted these events and waits for an hour. */
const runOf = (id, events = []) => ({
  id,
  status: 'running',
  effects: () => [{ type: 'wait', id: 'e1', ms: 3_600_000 }],
  takeEffects: () => ({ opened: [], closed: [] }),
  events: () => events.splice(0),
  changed: () => new Promise(() => {}),
  [dispose]() {},
});

/** A session with these pending runs; `calls` lists what the chat did. */
function sessionOf(pending, events) {
  const calls = [];
  return {
    calls,
    pending,
    pendingRuns: async () => pending.map((run) => ({ ...run })),
    async resume(id) {
      calls.push(`resume ${id}`);
      pending.find((run) => run.id === id).state = 'live';
      return runOf(id, events);
    },
    discard: async (id) => calls.push(`discard ${id}`),
    async run({ input }) {
      calls.push(`run ${input}`);
      return runOf('new', events);
    },
  };
}
const ask = (chat) =>
  chat.fetch(
    new Request('http://chat/', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"question":"Hi"}',
    }),
  );
const OPTIONS = { longestPauseMs: 1000 }; // releases the runs, so that no timer outlives a test

test('r60 a pause that ends while the chat looks at its runs loses no run', async () => {
  mock.timers.enable({ apis: ['Date'], now: 1000 });
  try {
    const session = sessionOf([{ id: 'paused', state: 'interrupted', notBefore: 1500 }]);
    const { pendingRuns } = session;
    session.pendingRuns = async () => {
      const runs = await pendingRuns();
      queueMicrotask(() => mock.timers.setTime(Date.now() + 400));
      return runs;
    };
    const chat = new Chat(session, {}, OPTIONS);
    assert.equal((await ask(chat)).status, 409);
    assert.deepEqual(session.calls, []);
    mock.timers.setTime(2000);
    assert.equal((await chat.resume()).id, 'paused');
    assert.deepEqual(session.calls, ['resume paused']);
  } finally {
    mock.timers.reset();
  }
});

test('a question replaces failed runs only', async () => {
  const failed = sessionOf([{ id: 'failed', state: 'failed' }]);
  assert.equal((await ask(new Chat(failed, {}, OPTIONS))).status, 202);
  assert.deepEqual(failed.calls, ['discard failed', 'run Hi']);
  // Its owner stopped after the chat looked.
  const interrupted = sessionOf([{ id: 'other', state: 'live' }]);
  const { pendingRuns } = interrupted;
  interrupted.pendingRuns = async () => {
    const runs = await pendingRuns();
    interrupted.pending[0].state = 'interrupted';
    return runs;
  };
  assert.equal((await ask(new Chat(interrupted, {}, OPTIONS))).status, 409);
  assert.deepEqual(interrupted.calls, []);
});

test('r60 a host that sleeps is told when to resume a run', async () => {
  const at = Date.now() + 3_600_000;
  const times = [];
  const session = sessionOf([], [{ type: 'model_called' }, { type: 'retrying', attempt: 2, at }]);
  const chat = new Chat(session, {}, { ...OPTIONS, onPause: (time) => times.push(time) });
  assert.equal((await ask(chat)).status, 202);
  await new Promise(setImmediate);
  assert.deepEqual(times, [at]);
});
