// A process that appends until it is killed: node kill-writer.mjs <file> <writer>
// A turn that was acknowledged is a line of its output, written before the next turn begins.

import { writeSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { open } from 'rethread';
import { sqlite } from 'rethread/sqlite';
import { turn } from '../servers/acknowledged.mjs';

const Database = createRequire(path.join(process.env.BETTER_SQLITE3, 'index.js'))('better-sqlite3');
const [file, writer] = process.argv.slice(2);
const client = await open({ store: sqlite(new Database(file, { timeout: 10_000 })) });
const session = await client.session('s');
for (let number = 0; ; number += 1) {
  await session.append(turn(writer, number));
  writeSync(1, `${writer}:${number}\n`);
}
