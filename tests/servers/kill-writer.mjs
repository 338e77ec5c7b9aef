// A process that appends until it is killed: node kill-writer.mjs <store> <place> <session> <writer>
// A turn that was acknowledged is a line of its output, written before the next turn begins.

import { writeSync } from 'node:fs';
import { open } from 'rethread';
import { turn } from './acknowledged.mjs';
import { openDriver } from './drivers.mjs';

const [store, place, id, writer] = process.argv.slice(2);
const { driver } = await openDriver(store, place);
const client = await open({ store: driver });
const session = await client.session(id);
for (let number = 0; ; number += 1) {
  await session.append(turn(writer, number));
  writeSync(1, `${writer}:${number}\n`);
}
