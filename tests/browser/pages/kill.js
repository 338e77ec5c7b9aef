// A chat that can be held, and killed, at every step: each step is told to the stand-in, which lets it go on or not.

import { open } from 'rethread';
import { drive } from 'rethread/host';

const NAME = 'kill';
let opened;
const database = () => (opened ??= open({ name: NAME }));
const session = async (id) => (await database()).session(id);

/** What the test reads of a session's run: bytes fed, and what came of it. */
const runs = new Map();
const seen = (id) => runs.get(id) ?? { bytes: 0, over: null };

/** Reports to the stand-in, which may hold it. */
const report = async ({ standIn }, body) => {
  const response = await fetch(`${standIn}/control/tool`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  return response.json();
};
const marker = (given) => (name) => report(given, { name, phase: 'point' });

function provider({ standIn, dialect }) {
  const base = `${standIn}/v1`;
  if (dialect === 'anthropic') {
    return {
      dialect,
      url: `${base}/messages`,
      params: { model: 'stand-in', max_tokens: 1000 },
      headers: { 'anthropic-version': '2023-06-01' },
      stream: true,
    };
  }
  return { dialect, url: `${base}/chat/completions`, params: { model: 'stand-in' }, stream: true };
}

/** Tools that report to the stand-in when they start and when they end. */
function tools(given, names) {
  const { onInterrupted } = given;
  const tool = (name) => ({
    description: `Does ${name}.`,
    parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
    ...(onInterrupted ? { onInterrupted } : {}),
    async execute(asked, { callId, invocationId, attempt }) {
      const result = { tool: name, city: asked.city };
      const phase = (phase) =>
        report(given, { name, callId, invocationId, phase, arguments: { attempt, ...asked }, result });
      await phase('start');
      return (await phase('end')).result;
    },
  });
  return Object.fromEntries(names.map((name) => [name, tool(name)]));
}

const request = (given, names = ['alpha', 'beta', 'gamma']) => ({
  provider: provider(given),
  tools: tools(given, names),
  instructions: 'Be brief.',
  retry: { attempts: 1 },
});

/** Each write of the run that the host waits for gets a step before and a step behind it. */
function watched(run, mark, answered, own) {
  const { answer, feed } = run;
  const calls = new Map();
  const stepOf = (id, given) => {
    const effect = run.effects().find((open) => open.id === id);
    if (effect?.type === 'call_model') {
      if (!calls.has(id)) calls.set(id, answered + calls.size + 1);
      return given.type === 'response_end' ? `answer ${calls.get(id)}` : null;
    }
    if (effect?.type !== 'run_tool') return null;
    return { started: `start ${effect.name}`, tool_result: `result ${effect.name}` }[given.type];
  };
  run.answer = async (id, given) => {
    const step = stepOf(id, given);
    if (step) await mark(`before ${step}`);
    await answer.call(run, id, given);
    if (step) await mark(`after ${step}`);
  };
  run.feed = async (id, bytes) => {
    await feed.call(run, id, bytes);
    own.bytes += bytes.length;
  };
  return run;
}

const drivenHere = new WeakSet();

/** Drives a run with its steps told; gives its result. */
function driven(run, given, answered = 0) {
  drivenHere.add(run);
  const own = { bytes: 0, over: null, run: run.id };
  runs.set(given.session, own);
  const mark = marker(given);
  let asked = answered;
  const ask = async (url, init) => {
    asked += 1;
    await mark(`before call ${asked}`);
    return fetch(url, init);
  };
  const { result } = drive(watched(run, mark, answered, own), { fetch: ask });
  result.then((over) => {
    own.over = over;
  });
  return result;
}

/** Calls in the order of the conversation. */
const inOrder = (calls) =>
  calls.toSorted((a, b) => a.turn - b.turn || a.roundIndex - b.roundIndex || a.sequenceIndex - b.sequenceIndex);

async function story(id) {
  const own = await session(id);
  const all = (await own.messages({ limit: 1000 })).items;
  const calls = inOrder((await own.invocations({ payload: true, limit: 1000 })).items);
  return { messages: all, invocations: calls };
}

/** An error as its code; anything else as it is. */
async function codeOf(work) {
  try {
    await work();
    return 'ok';
  } catch (error) {
    return error?.code ?? String(error);
  }
}

window.kill = {
  seen,
  codeOf,

  /** Opens the database. Returns why the browser has removed it, or null. */
  async removal() {
    try {
      await database();
      return null;
    } catch (error) {
      if (error?.code !== 'evicted') throw error;
      return error.message;
    }
  },

  /** One finished turn, with a tool. */
  async before(given) {
    const own = await session(given.session);
    const result = await drive(await own.run({ ...request(given, ['earlier']), input: 'Before?' })).result;
    if (result.status !== 'finished') throw new Error(`the earlier turn: ${JSON.stringify(result.error)}`);
    return story(given.session);
  },

  /** The run that is to be killed. Gives nothing: what it comes to is read elsewhere. */
  begin(given) {
    runs.delete(given.session);
    const mark = marker(given);
    const work = async () => {
      const own = await session(given.session);
      await mark('before run');
      const { persistence } = given;
      const run = await own.run({ ...request(given), input: 'Do all three.', ...(persistence ? { persistence } : {}) });
      await mark('after run');
      await driven(run, given);
      await mark('after finish');
    };
    work().catch((error) => runs.set(given.session, { over: { failed: String(error?.stack ?? error) } }));
  },

  async pending(id) {
    const own = await session(id);
    const everywhere = await (await database()).pendingRuns();
    return { here: await own.pendingRuns(), everywhere: everywhere.filter(({ session }) => session === id) };
  },

  story,

  /** What another connection reads from the disk, and what the list of sessions says. */
  async stored(id) {
    const other = await open({ name: NAME });
    try {
      const own = await other.session(id);
      const items = (await own.messages({ limit: 1000 })).items;
      return {
        messages: items,
        invocations: inOrder((await own.invocations({ payload: true, limit: 1000 })).items),
        pending: await own.pendingRuns(),
      };
    } finally {
      await other.close();
    }
  },

  /** Takes the run over; `code` says why it could not, or that this page has it already ("own"). With `watch` it is driven on and not waited for. */
  async resume(given, { id, answered = 0, watch = false }) {
    const own = await session(given.session);
    let run;
    try {
      run = await own.resume(id, request(given));
    } catch (error) {
      return { code: error?.code ?? String(error) };
    }
    if (drivenHere.has(run)) return { code: 'own' };
    const result = driven(run, given, answered);
    return watch ? { code: 'ok' } : { code: 'ok', result: await result };
  },

  async discard(given, id, options) {
    const own = await session(given.session);
    return codeOf(() => own.discard(id, options));
  },

  /** Asks for all unfinished runs until `turns` turns are there, made by another tab. Gives what was seen. */
  async watch(given, turns) {
    const db = await database();
    const states = new Set();
    const own = await session(given.session);
    let asked = 0;
    while ((await own.refresh()) && (await own.messages({ limit: 1000 })).items.length < 2 * turns) {
      for (const { state } of [...(await db.pendingRuns()), ...(await own.pendingRuns())]) states.add(state);
      asked += 1;
    }
    return { asked, states: [...states] };
  },

  /** One more turn, without tools. */
  async after(given) {
    const own = await session(given.session);
    return drive(await own.run({ ...request(given), input: 'And now?' })).result;
  },
};
