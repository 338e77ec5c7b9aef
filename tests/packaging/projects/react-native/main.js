// What an app of React Native does with rethread, without its screens: prints what its chat did.

import { open } from 'rethread/base64';
import { drive } from 'rethread/host';

const celsius = {
  description: 'Temperature of a city.',
  parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  execute: async ({ city }) => ({ city, celsius: 21 }),
};
/** A key-value service, as a driver: it needs the second program. */
const entries = new Map();
const driver = {
  get: async (key) => entries.get(key) ?? null,
  list: async (prefix) => ({ keys: [...entries.keys()].filter((key) => key.startsWith(prefix)).sort(), cursor: null }),
  put: async (key, value) => void entries.set(key, { value, version: `${value.length}` }),
  delete: async (key) => void entries.delete(key),
};

async function chat(url) {
  const rethread = await open({ store: 'memory' });
  const session = await rethread.session('chat');
  await session.append([
    { role: 'user', parts: [{ type: 'text', text: 'Hello.' }] },
    { role: 'assistant', parts: [{ type: 'text', text: 'Hi.' }] },
  ]);
  const provider = { dialect: 'openai-chat', url, params: { model: 'stand-in' }, stream: true };
  const run = await session.run({ input: 'How warm is Lisbon?', provider, tools: { celsius } });
  const { status } = await drive(run).result;
  const { messages } = (await session.render({ dialect: 'openai-chat', params: { model: 'stand-in' } })).json;
  await rethread.close();
  return { status, roles: messages.map(({ role }) => role) };
}

async function keep() {
  const rethread = await open({ store: driver });
  await (await rethread.session('kept')).append([{ role: 'user', parts: [{ type: 'text', text: 'kept' }] }]);
  const { items } = await (await rethread.session('kept')).messages();
  await rethread.close();
  return items.map(({ parts }) => parts[0].text);
}

chat(globalThis.MODEL_URL)
  .then(async (done) => ({ ...done, kept: await keep() }))
  .catch((error) => ({ name: error.name, code: error.code, thrown: error.message }))
  .then((answer) => globalThis.report(answer));
