// Erases messages, and is killed when the log is to be emptied: `node killed-erasure.mjs <driver> <file>`.

import { DatabaseSync } from 'node:sqlite';
import { open } from 'rethread';
import { openDriver } from './drivers.mjs';

const [, , kind, file] = process.argv;
// The mode of a database stays with it.
const database = new DatabaseSync(file);
database.exec('PRAGMA journal_mode = WAL');
database.close();
const { driver } = await openDriver(kind, file);
driver.eraseOverwritten = () => process.kill(process.pid, 'SIGKILL');
const client = await open({ store: driver });
const session = await client.session('s');
for (const text of ['SECRET', 'plain', 'plain'])
  await session.append(
    {
      messages: [
        { role: 'user', content: `question ${text}` },
        { role: 'assistant', content: `answer ${text}` },
      ],
    },
    'openai-chat',
  );
const { items } = await session.messages();
await session.deleteMessages(items.slice(0, 2).map(({ id }) => id));
