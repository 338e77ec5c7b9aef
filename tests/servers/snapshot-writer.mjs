// A process that drives a run and sends its snapshot: node snapshot-writer.mjs <SQLite file> <url of the model> <needs
// approval>. It does so when a tool has returned and the next answer begins, or when a call waits for an approval, and
// lives on.

import { open } from 'rethread';
import { drive } from 'rethread/host';
import { sqlite } from 'rethread/sqlite';

const [file, url, needsApproval] = process.argv.slice(2);
const store = await open({ store: sqlite(file), leaseMs: 100 });
const session = await store.session('s');
const provider = { dialect: 'openai-chat', params: { model: 'm' }, url, stream: true };
await drive(await session.run({ input: 'Hello', provider })).result;
const parameters = { type: 'object', properties: {} };
const tools = { pay: { parameters, needsApproval: needsApproval === 'true', execute: () => 'paid' } };
const run = await session.run({ input: 'Pay.', provider, tools });
let answers = 0;
for await (const { type } of drive(run)) {
  if (type === 'text_delta' || type === 'approval_needed') answers += 1;
  if (answers === 1) break;
}
if (needsApproval === 'true') while (run.status !== 'waiting_approval') await run.changed();
process.send([...run.snapshot()]);
setInterval(() => {}, 1000);
