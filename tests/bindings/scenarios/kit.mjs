// Small parts of scenarios. No import: the same file runs in a page and in Node.

/** What a call throws, as plain facts; or what it gave, which is a surprise. */
export async function caught(work) {
  try {
    const value = await work();
    return { code: null, value: value === undefined ? 'undefined' : String(value) };
  } catch (error) {
    return {
      code: error?.code ?? null,
      message: String(error?.message),
      details: error?.details ?? null,
      name: error?.name,
      isError: error instanceof Error,
    };
  }
}

/** Whether a fact of `caught` is an error of ours with that code and a sentence that helps. */
export function isRight(fact, code, RethreadError = 'RethreadError') {
  return (
    fact.code === code &&
    fact.name === RethreadError &&
    fact.isError &&
    fact.message.length >= 20 &&
    typeof fact.details === 'object'
  );
}

export const city = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };

/** Two tools that answer at once. */
export const plainTools = () => ({
  get_weather: {
    description: 'Weather of a city.',
    parameters: city,
    execute: async ({ city: of }) => ({ city: of, celsius: 21 }),
  },
  get_time: { description: 'Time in a city.', parameters: city, execute: async ({ city: of }) => `noon in ${of}` },
});

export function providerOf(env, extra = {}) {
  const url = env.dialect === 'anthropic' ? env.lane.messages : env.lane.chat;
  return { dialect: env.dialect, url, params: { model: 'stand-in' }, stream: true, ...extra };
}

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

export async function until(test, ms = 5000) {
  const end = Date.now() + ms;
  for (;;) {
    const value = await test();
    if (value) return value;
    if (Date.now() > end) throw new Error(`it did not come true in ${ms} ms: ${test}`);
    await sleep(10);
  }
}

/** The lane's controls, from wherever the scenario runs. */
export const control = {
  script: (env, steps, options = {}) =>
    fetch(`${env.lane.base}/control/script`, {
      method: 'POST',
      body: JSON.stringify({ steps, delayMs: 0, ...options }),
    }),
  requests: async (env) => (await fetch(`${env.lane.base}/control/requests`)).json(),
  waiting: async (env) => (await fetch(`${env.lane.base}/control/waiting`)).json(),
  openGate: (env, gate) => fetch(`${env.lane.base}/control/gate/${gate}/open`, { method: 'POST' }),
};

/** Messages without what differs from run to run. */
export const plainMessages = async (session) =>
  (await session.messages({ limit: 1000 })).items.map(({ role, status, parts }) => ({
    role,
    status,
    text: parts
      .filter(({ type }) => type === 'text')
      .map(({ text }) => text)
      .join(''),
    calls: parts.filter(({ type }) => type === 'tool_call').length,
  }));

/** Drives a run to its end; {result, events}. */
export async function finish(drive, run, options = {}) {
  const driven = drive(run, options);
  const events = [];
  for await (const event of driven) events.push(event);
  return { result: await driven.result, events };
}
