// The same program in every project: a chat with tools, as a user of the package would write it.

import { open } from 'rethread';
import { drive } from 'rethread/host';

const city = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
const tools = {
  get_weather: {
    description: 'Weather of a city.',
    parameters: city,
    execute: async ({ city }) => ({ city, celsius: 21 }),
  },
  get_time: { description: 'Time in a city.', parameters: city, execute: async ({ city }) => `noon in ${city}` },
};

export async function chat(url, store = 'memory') {
  const rethread = await open({ store });
  const session = await rethread.session('packaging');
  const provider = { dialect: 'openai-chat', url, params: { model: 'stand-in' }, stream: true };
  const ask = async (input) => {
    const { status, text, error } = await drive(await session.run({ input, provider, tools })).result;
    return { status, text, error };
  };
  // Twice: the second call replays what the first one stored.
  const answers = [await ask('What is the weather in Lisbon?'), await ask('And in Oslo?')];
  const { items } = await rethread.invocations({});
  await rethread.close();
  return { answers, invocations: items.length };
}

/** The roles of what an earlier visit stored. */
export async function stored(store) {
  const rethread = await open({ store });
  const { items } = await (await rethread.session('packaging')).messages();
  await rethread.close();
  return items.map(({ role }) => role);
}

/** A key-value service in memory, as a driver. */
export function mapDriver() {
  const entries = new Map();
  return {
    get: async (key) => entries.get(key) ?? null,
    list: async (prefix) => ({
      keys: [...entries.keys()].filter((key) => key.startsWith(prefix)).sort(),
      cursor: null,
    }),
    put: async (key, value) => void entries.set(key, { value, version: `${value.length}` }),
    delete: async (key) => void entries.delete(key),
  };
}

/** Stores a message and opens the store again; returns the texts that are stored. */
export async function keep(store) {
  const first = await open({ store, name: 'kept' });
  await (await first.session('kept')).append([{ role: 'user', parts: [{ type: 'text', text: 'kept' }] }]);
  await first.close();
  const again = await open({ store, name: 'kept' });
  const { items } = await (await again.session('kept')).messages();
  await again.close();
  return items.map(({ parts }) => parts[0].text);
}
