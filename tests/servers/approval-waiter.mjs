// A process whose run waits for an approval: node approval-waiter.mjs <SQLite file> <url of the model>. It sends the
// run's id and the waiting calls, and lives on; on "approve" it approves the first call and sends how that ended.

import { open } from 'rethread';
import { drive } from 'rethread/host';
import { sqlite } from 'rethread/sqlite';

const [file, url] = process.argv.slice(2);
const store = await open({ store: sqlite(file) });
const session = await store.session('s');
const tools = {
  pay: {
    parameters: { type: 'object', properties: {} },
    needsApproval: true,
    execute: () => process.send({ ran: process.pid }),
  },
};
const run = await session.run({ input: 'q', provider: { dialect: 'openai-chat', params: { model: 'm' }, url }, tools });
const { status } = await drive(run).result;

process.on('message', async () => {
  const error = await run.approve(run.approvals()[0].callId).then(
    () => null,
    ({ code }) => code,
  );
  process.send({ error, status: run.status });
});
process.send({ id: run.id, status, calls: run.approvals() });
