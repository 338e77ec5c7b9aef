// Prints what a turn costs on better-sqlite3, at so many messages.
//
//   node tests/better-sqlite3/print-turn-costs.mjs [messages …]     BETTER_SQLITE3 names the folder in which it is
//   installed

import { createRequire } from 'node:module';
import path from 'node:path';
import { open } from 'rethread';
import { sqlite } from 'rethread/sqlite';
import { counted, turnCosts } from '../servers/turn-costs.mjs';

const Database = createRequire(path.join(process.env.BETTER_SQLITE3, 'index.js'))('better-sqlite3');
const lengths = process.argv.length > 2 ? process.argv.slice(2).map(Number) : [100, 10_000];
console.table(await turnCosts(open, counted(sqlite(new Database(':memory:'))), lengths));
