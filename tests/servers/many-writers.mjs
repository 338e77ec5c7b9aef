// Many processes append to one session through the public API.

import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { open } from 'rethread';
import { endsWithThisProcess } from './child-processes.mjs';
import { openDriver } from './drivers.mjs';
import { allTexts, assertNothingLost, changesOfWriter } from './texts.mjs';

const program = fileURLToPath(new URL('appender.mjs', import.meta.url));

/** Lets `writers` processes append `count` messages each, checks the session, and returns what happened. */
export async function manyWriters(name, place, writers, count) {
  const start = (_, writer) =>
    endsWithThisProcess(
      fork(program, [name, place, 'shared', String(writer), String(count)], { execArgv: ['--no-warnings'] }),
    );
  const processes = Array.from({ length: writers }, start);
  const exits = processes.map((child) => once(child, 'exit'));
  await Promise.all(processes.map((child) => once(child, 'message')));
  for (const child of processes) child.send('go');
  for (const [code] of await Promise.all(exits)) assert.equal(code, 0);
  const { driver, end } = await openDriver(name, place);
  const store = await open({ store: driver });
  const session = await store.session('shared');
  const texts = await allTexts(session);
  assertNothingLost(texts, writers, count);
  assert.equal(session.revision, writers * count, 'one revision an append');
  await store.close();
  await end();
  return { store: name, writers, appends: texts.length, changesOfWriter: changesOfWriter(texts) };
}
