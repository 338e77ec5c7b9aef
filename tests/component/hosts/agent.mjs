// An agent in one command, which may be killed at any time and started again:
//
//   node agent.mjs STORE.jsonl http://127.0.0.1:8787 "What is the weather in Bern?"
//
// It keeps its conversation in a file, asks the model of the stand-in (tests/stand-in), and reports each run of its
// tool to it. Started again it finds the run that was cut off and continues it.

import { pathToFileURL } from 'node:url';
import { transpiled } from '../component.mjs';
import { EngineHost } from './engine-host.mjs';
import { FileStore } from './file-store.mjs';

const [file, base, text] = process.argv.slice(2);
const SESSION = 'chat';

const post = async (path, body) => {
  const response = await fetch(`${base}${path}`, { method: 'POST', body: JSON.stringify(body) });
  return response.json();
};

const tools = {
  async weather(given, { callId, invocationId }) {
    const call = { name: 'weather', callId, invocationId, arguments: given };
    await post('/control/tool', { ...call, phase: 'start' });
    const { result } = await post('/control/tool', { ...call, phase: 'end' });
    return result;
  },
};

const request = {
  provider: { dialect: 'openai-chat', url: `${base}/v1/chat/completions`, params: { model: 'gpt-4.1', stream: true } },
  tools: {
    weather: {
      description: 'The weather in a city',
      parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
    },
  },
};

// With ENGINE_MODULE in the environment the component was made a module of Node before.
const made = process.env.ENGINE_MODULE ? { file: process.env.ENGINE_MODULE, remove() {} } : await transpiled('engine');
const component = await import(pathToFileURL(made.file).href);
const settings = { exclusive: true, store: { maxValueBytes: 1n << 20n, durable: true } };
const store = new FileStore(file);
const host = new EngineHost(component.sessions.Engine, settings, { store, tools });

await host.command('open-session', { session: SESSION, options: JSON.stringify({ persistence: 'result' }) });
const [pending] = JSON.parse(await host.command('pending-runs', SESSION));
const { items } = await host.command('messages', { session: SESSION });
if (pending || JSON.parse(items).length === 0) {
  const run = pending
    ? await host.command('resume', { session: SESSION, run: pending.id, options: JSON.stringify(request) })
    : await host.command('run', { session: SESSION, options: JSON.stringify({ ...request, input: text }) });
  const { status, result } = await host.finished(run);
  if (status !== 'finished') throw new Error(result);
}
const messages = JSON.parse((await host.command('messages', { session: SESSION })).items);
await host.command('close');
store.close();
made.remove();
console.log(JSON.stringify(messages));
