// A process that appends to a session, in the company of others: node appender.mjs <store> <place> <session> <writer>
// <count> Forked, it waits until all of them are ready.

import { once } from 'node:events';
import { setTimeout } from 'node:timers/promises';
import { open } from 'rethread';
import { openDriver } from './drivers.mjs';

const [name, place, id, writer, count] = process.argv.slice(2);
const { driver, end } = await openDriver(name, place);
const store = await open({ store: driver });
const session = await store.session(id);
if (process.send) {
  process.send('ready');
  await once(process, 'message');
}
for (let number = 0; number < Number(count); number += 1) {
  await session.append([{ role: 'user', parts: [{ type: 'text', text: `${writer}:${number}` }] }]);
  await setTimeout(1); // lets the others in
}
await store.close();
await end();
if (process.send) process.disconnect();
