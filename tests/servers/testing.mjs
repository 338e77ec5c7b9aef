// The program of `rethread/testing` (dist/testing.js) and what every store's test does with it.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createGlue } from '../../dist/testing.js';

const compiled = () => new WebAssembly.Module(readFileSync(new URL('../../dist/testing_bg.wasm', import.meta.url)));

/** Starts the program; in workerd with the module that an import gave. */
export async function startTesting(module = compiled()) {
  const glue = createGlue((exports) => exports);
  const instance = await WebAssembly.instantiate(module, glue.imports);
  const program = glue.start(instance);
  return { ...program, checkStore: (openStore, run) => checkStore(program, openStore, run) };
}

/** Runs every check; `error` is null of those that passed. */
async function checkStore(program, openStore, run) {
  const results = [];
  for (const name of program.checkNames()) {
    const error = await program.runCheck(name, run, openStore).then(
      () => null,
      ({ code, message }) => `${code}: ${message}`,
    );
    results.push({ name, error });
  }
  return results;
}

/** Insists that every check passed. */
export function assertAllPassed(results) {
  assert.ok(results.length >= 24, `only ${results.length} checks ran`);
  assert.deepEqual(
    results.filter(({ error }) => error),
    [],
  );
}

/** A chat through the public API: written, read again by another `open`, listed, audited, deleted. `driver` opens the
 *  same data each time. */
export async function chat(open, driver) {
  const session = `chat-${Math.random()}`;
  const first = await open({ store: driver() });
  const opened = await first.session(session, { channel: 'web' });
  await opened.append([
    { role: 'user', parts: [{ type: 'text', text: 'What is on it?' }] },
    {
      role: 'assistant',
      parts: [
        { type: 'tool', callId: 'c1', name: 'look', arguments: { at: 1 }, result: { found: 'x'.repeat(3_000_000) } },
        { type: 'text', text: 'A cat.' },
      ],
    },
  ]);
  const { store, state, persisted } = await first.status();
  assert.deepEqual([state, persisted], ['ready', null]);
  await first.close();
  await assert.rejects(first.session(session), { code: 'closed' });

  const second = await open({ store: driver() });
  const again = await second.session(session);
  const { items } = await again.messages();
  assert.deepEqual(
    items.map(({ role }) => role),
    ['user', 'assistant', 'assistant'],
  );
  const { body } = await again.render({ dialect: 'openai-chat', params: { model: 'm' } });
  assert.match(new TextDecoder().decode(body), /A cat\./);
  const listed = await second.sessions({ channel: 'web' });
  assert.ok(listed.items.some(({ id }) => id === session));
  const rows = await second.invocations({ session, tool: 'look', status: 'ok' });
  assert.deepEqual(
    rows.items.map(({ callId }) => callId),
    ['c1'],
  );
  await second.deleteSession(session);
  assert.deepEqual((await second.invocations({ session })).items, []);
  await second.close();
  return store;
}
