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
