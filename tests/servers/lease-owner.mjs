// A process that begins a run and waits: node lease-owner.mjs <store> <place> <leaseMs>. It sends the run's id, and on
// "answer" answers the model call and sends how the run ended.

import { open } from 'rethread';
import { openDriver } from './drivers.mjs';

const [name, place, leaseMs] = process.argv.slice(2);
const { driver, end } = await openDriver(name, place);
const store = await open({ store: driver, leaseMs: Number(leaseMs) });
const session = await store.session('s');
const provider = { dialect: 'openai-chat', params: { model: 'm' }, url: 'http://localhost/v1/chat/completions' };
const run = await session.run({ input: 'q', provider });
const effect = run.effects().find(({ type }) => type === 'call_model');

process.on('message', async (command) => {
  if (command === 'close') {
    await store.close();
    await end();
    return;
  }
  const choice = { index: 0, message: { role: 'assistant', content: 'too late' }, finish_reason: 'stop' };
  const body = JSON.stringify({ id: 'r', object: 'chat.completion', model: 'm', choices: [choice] });
  // The run may be over already: a renewal found out.
  await run.answer(effect.id, { type: 'response', status: 200, body }).catch(() => {});
  const { status, error, saved } = run.result();
  process.send({ status, code: error?.code ?? null, saved });
});
process.send(run.id);
