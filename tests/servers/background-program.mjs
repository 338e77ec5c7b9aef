// A process that asks for an answer in the background, and is killed when so many pieces of it were received:
// node background-program.mjs <file> <url> <session> <owner> <stream|whole> <pieces>
// It ends by itself if the answer has fewer pieces.

import { createClient } from '@libsql/client';
import { open } from 'rethread';
import { drive } from 'rethread/host';
import { sqlite } from 'rethread/sqlite';
import { pathToFileURL } from 'node:url';

const [file, url, id, owner, form, pieces] = process.argv.slice(2);
const store = createClient({ url: pathToFileURL(file).href, timeout: 10_000 });
const client = await open({ store: sqlite(store), leaseMs: 100 });
const session = await client.session(id, { owner: JSON.parse(owner) });
const run = await session.run({
  input: 'Two',
  provider: { dialect: 'openai-responses', url, params: { model: 'm', background: true }, stream: form === 'stream' },
});
let received = 0;
/** The piece before the kill is given to the run, which has time to store what it must. */
const count = async () => {
  if (received === Number(pieces)) {
    await new Promise((resolve) => setTimeout(resolve, 50));
    process.kill(process.pid, 'SIGKILL');
  }
  received += 1;
};
const { status, error } = await drive(run, {
  fetch: async (...request) => {
    if (form === 'whole') await count();
    const response = await fetch(...request);
    if (form === 'whole' || !response.ok) return response;
    const counted = new TransformStream({
      async transform(bytes, controller) {
        for (const event of Buffer.from(bytes)
          .toString()
          .split(/(?<=\n\n)/)) {
          await count();
          controller.enqueue(Buffer.from(event));
        }
      },
    });
    return new Response(response.body.pipeThrough(counted), { status: response.status, headers: response.headers });
  },
}).result;
if (error) console.error(JSON.stringify(error));
await client.close();
store.close();
process.exitCode = status === 'finished' ? 0 : 1;
