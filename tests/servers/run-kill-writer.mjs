// A process that runs a turn with tools, and is killed at one of the store's operations:
// node run-kill-writer.mjs <store> <place> <session> <plan> <operation> <before|during|after> <file>
// It ends by itself if the run has fewer operations.

import { appendFileSync } from 'node:fs';
import { open } from 'rethread';
import { drive } from 'rethread/host';
import { openDriver } from './drivers.mjs';
import { driveToEnd, runRequest, watchedDriver } from './run-kill-model.mjs';

const [store, place, id, plan, operation, when, file] = process.argv.slice(2);
/** Maximum milliseconds from the begin of an operation to a kill "during" it. */
const DURING_MS = 4;
const { driver, end } = await openDriver(store, place);
const counter = { isCounting: false, operations: 0 };
const die = () => process.kill(process.pid, 'SIGKILL');
watchedDriver(driver, counter, (at, moment) => {
  if (at !== Number(operation)) return;
  if (moment === when) die();
  if (moment === 'before' && when === 'during') setTimeout(die, Math.random() * DURING_MS);
});
const note = (line) => appendFileSync(file, `${line}\n`);
const client = await open({ store: driver, leaseMs: 100 });
const session = await client.session(id);
counter.isCounting = true;
const { status, error } = await driveToEnd(
  drive,
  await session.run({ input: 'Go', ...runRequest(note, plan, true) }),
  note,
);
if (error) console.error(`the run failed: ${JSON.stringify(error)}`);
await client.close();
await end();
process.exitCode = status === 'finished' ? 0 : 1;
