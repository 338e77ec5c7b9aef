// A process that appends 200 records to a session: node writer.mjs <file> <writer>

import { createRequire } from 'node:module';
import path from 'node:path';
import { sqlite } from 'rethread/sqlite';
import { startTesting } from '../servers/testing.mjs';

const Database = createRequire(path.join(process.env.BETTER_SQLITE3, 'index.js'))('better-sqlite3');
const [file, writer] = process.argv.slice(2);
const testing = await startTesting();
await testing.writeWithRetry(sqlite(new Database(file, { timeout: 10_000 })), 's', Number(writer), 200);
