// A process that runs a turn with tools, and is killed at one of the store's operations:
// node run-kill-writer.mjs <store> <place> <session> <persistence> <operation> <before|after> <file>
// It ends by itself if the run has fewer operations.

import { open } from 'rethread';
import { drive } from 'rethread/host';
import { openDriver } from './drivers.mjs';
import { fetchFor, runRequest } from './run-kill-model.mjs';

const [store, place, id, persistence, operation, when, file] = process.argv.slice(2);
const { driver, end } = await openDriver(store, place);
let operations = 0;
let isCounting = false;
const die = () => process.kill(process.pid, 'SIGKILL');
for (const name of ['transaction', 'commit', 'put']) {
  if (!driver[name]) continue;
  const perform = driver[name].bind(driver);
  driver[name] = async (...args) => {
    if (isCounting) operations += 1;
    const isLast = isCounting && operations === Number(operation);
    if (isLast && when === 'before') die();
    const result = await perform(...args);
    if (isLast) die();
    return result;
  };
}
const client = await open({ store: driver, leaseMs: 100 });
const session = await client.session(id);
isCounting = true;
const { status, error } = await drive(await session.run({ input: 'Go', ...runRequest(file, persistence) }), { fetch: fetchFor(file) }).result;
if (error) console.error(`the run failed: ${JSON.stringify(error)}`);
await client.close();
await end();
process.exitCode = status === 'finished' ? 0 : 1;
