// R32: what a service that keeps the conversation has not acknowledged is found in time linear in the history. The
// delta of each turn of a growing conversation, and of a conversation that was opened again, against the trackers of
// the OpenAI Agents SDK: the one for JavaScript (npm ci in benches/) and, if PEER_PYTHON is a Python that has it, the
// one for Python (openai_agents_deltas.py). The peers' trackers return a list of items; rethread's time includes the
// whole request as bytes.

import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { median } from './stats.js';
import { encode } from './work.js';

const OWNER = { kind: 'conversation', conversationId: 'conv_1' };
const request = (turn) => ({ dialect: 'openai-responses', params: { model: 'm' }, input: `Question ${turn + 1}` });
const provider = { dialect: 'openai-responses', url: 'https://service.example/v1/responses', params: { model: 'm' } };
const call = (turn) => ({
  type: 'function_call',
  id: `fc_${turn}`,
  call_id: `call_${turn}`,
  name: 'look',
  arguments: `{"n":${turn}}`,
  status: 'completed',
});
const answer = (turn) => ({
  type: 'message',
  id: `msg_${turn}`,
  role: 'assistant',
  status: 'completed',
  content: [{ type: 'output_text', text: `Answer ${turn}`, annotations: [] }],
});

/** A service that calls a tool in each turn, then answers. */
function service() {
  let requests = 0;
  return async () => {
    const turn = requests >> 1;
    const output = requests % 2 ? answer(turn) : call(turn);
    requests += 1;
    return new Response(
      encode({
        id: `resp_${requests}`,
        object: 'response',
        model: 'm',
        status: 'completed',
        error: null,
        conversation: { id: 'conv_1' },
        output: [output],
        usage: { input_tokens: 1, output_tokens: 1 },
      }),
      { headers: { 'content-type': 'application/json' } },
    );
  };
}

/** Lets `turns` turns run, and returns the milliseconds that the deltas took: one request after each turn, and one of
 *  the session opened again. */
async function ownDeltas({ open, drive }, turns) {
  const client = await open({ store: 'memory', replay: { freshness: Infinity } });
  try {
    const session = await client.session('s', { owner: OWNER });
    const fetch = service();
    const times = [];
    for (let turn = 0; turn < turns; turn += 1) {
      const run = await session.run({
        input: `Question ${turn}`,
        provider,
        tools: { look: { execute: ({ n }) => ({ n }) } },
      });
      const { status } = await drive(run, { fetch }).result;
      if (status !== 'finished') throw new Error(`turn ${turn} is ${status}`);
      run[Symbol.dispose]();
      const start = performance.now();
      const { body } = await session.render(request(turn));
      times.push(performance.now() - start);
      if (turn + 1 === turns) check(body);
    }
    session[Symbol.dispose]();
    const start = performance.now();
    check((await (await client.session('s')).render(request(turns))).body);
    return { each: sumOf(times), reopened: performance.now() - start };
  } finally {
    await client.close();
  }
}

/** The sum of many short times, without those that the machine spent on something else: of each hundred the median, a
 *  hundred times. */
function sumOf(times) {
  let sum = 0;
  for (let at = 0; at < times.length; at += 100) {
    const some = times.slice(at, at + 100);
    sum += median(some) * some.length;
  }
  return sum;
}

function check(body) {
  const { input } = JSON.parse(new TextDecoder().decode(body));
  if (input.length !== 1) throw new Error(`a delta has ${input.length} items`);
}

/** Returns the tracker of the peer and its items, or null if it is not installed. The tracker is no public export: it
 *  is loaded by path. */
export async function loadPeer() {
  const dist = new URL('node_modules/@openai/agents-core/dist/', import.meta.url);
  try {
    const { ServerConversationTracker } = await import(new URL('runner/conversation.mjs', dist).href);
    const { RunToolCallItem, RunToolCallOutputItem, RunMessageOutputItem } = await import(
      new URL('items.mjs', dist).href
    );
    return { ServerConversationTracker, RunToolCallItem, RunToolCallOutputItem, RunMessageOutputItem };
  } catch (error) {
    if (error.code !== 'ERR_MODULE_NOT_FOUND') throw error;
    return null;
  }
}

/** The items of a turn as the peer has them: a call, its output, a message. */
function peerItems(peer, turn) {
  const agent = null;
  const functionCall = {
    type: 'function_call',
    id: `fc_${turn}`,
    callId: `call_${turn}`,
    name: 'look',
    arguments: `{"n":${turn}}`,
    status: 'completed',
  };
  const result = {
    type: 'function_call_result',
    callId: `call_${turn}`,
    name: 'look',
    status: 'completed',
    output: { type: 'text', text: `{"n":${turn}}` },
  };
  const message = {
    type: 'message',
    id: `msg_${turn}`,
    role: 'assistant',
    status: 'completed',
    content: [{ type: 'output_text', text: `Answer ${turn}` }],
  };
  return {
    functionCall: new peer.RunToolCallItem(functionCall, agent),
    result: new peer.RunToolCallOutputItem(result, agent, result.output.text),
    message: new peer.RunMessageOutputItem(message, agent),
  };
}

/** The milliseconds of the peer's deltas: of the newest step of each turn (`isWhole` false), or of the whole list each
 *  time. */
function peerDeltas(peer, turns, isWhole) {
  const tracker = new peer.ServerConversationTracker({ conversationId: 'conv_1' });
  const all = [];
  const times = [];
  const prepare = (newest) => {
    const start = performance.now();
    const items = tracker.prepareInput('Question', isWhole ? all : newest);
    tracker.markInputAsSent(items);
    times.push(performance.now() - start);
    return items;
  };
  let sent = 0;
  for (let turn = 0; turn < turns; turn += 1) {
    const { functionCall, result, message } = peerItems(peer, turn);
    prepare([]);
    tracker.trackServerItems({ output: [functionCall.rawItem], responseId: `resp_${turn}` });
    all.push(functionCall, result);
    sent = prepare([functionCall, result]).length;
    tracker.trackServerItems({ output: [message.rawItem], responseId: `resp_${turn}` });
    all.push(message);
  }
  if (sent !== 1) throw new Error(`the peer's delta has ${sent} items`);
  return sumOf(times);
}

/** The milliseconds of the peer's first delta of a conversation that is resumed from its state. */
function peerResumed(peer, turns) {
  const turnsOfItems = Array.from({ length: turns }, (_, turn) => peerItems(peer, turn));
  const modelResponses = turnsOfItems.flatMap(({ functionCall, message }) => [
    { output: [functionCall.rawItem], responseId: 'r' },
    { output: [message.rawItem], responseId: 'r' },
  ]);
  const generatedItems = turnsOfItems.flatMap(({ functionCall, result, message }) => [functionCall, result, message]);
  const start = performance.now();
  const tracker = new peer.ServerConversationTracker({ conversationId: 'conv_1' });
  tracker.primeFromState({ originalInput: 'Question', generatedItems, modelResponses });
  tracker.markInputAsSent(tracker.prepareInput('Question', generatedItems));
  return performance.now() - start;
}

function pythonDeltas(turns) {
  const script = fileURLToPath(new URL('openai_agents_deltas.py', import.meta.url));
  return JSON.parse(execFileSync(process.env.PEER_PYTHON, [script, 'newest', String(turns)], { encoding: 'utf8' }));
}

const MEASURES = {
  'rethread: the next request after each turn': async ({ own }) => own.each,
  'rethread: opened again, the next request': async ({ own }) => own.reopened,
  'peer, JavaScript: the newest step of each turn': async ({ peer, turns }) => peerDeltas(peer, turns, false),
  'peer, JavaScript: the whole list each turn': async ({ peer, turns }) => peerDeltas(peer, turns, true),
  'peer, JavaScript: resumed from state': async ({ peer, turns }) => peerResumed(peer, turns),
  'peer, Python: the newest step of each turn': async ({ turns }) => pythonDeltas(turns),
};

export const SIZES = [1000, 3000];
export const GROWTH_MOST = 3.5;
export const PEER_LEAST = 50;

/** [{name, times: {1000: ms, 3000: ms}}], each the shortest of `samples` runs; the sizes alternate, so that the load of
 *  the machine affects both. */
export async function r32(rethread, samples = 3) {
  const peer = await loadPeer();
  const isThere = (name) =>
    name.startsWith('peer, JavaScript') ? peer : name.startsWith('peer, Python') ? process.env.PEER_PYTHON : true;
  const rows = Object.keys(MEASURES)
    .filter(isThere)
    .map((name) => ({ name, times: {} }));
  for (let at = 0; at < samples; at += 1) {
    for (const turns of SIZES) {
      const own = await ownDeltas(rethread, turns);
      for (const row of rows)
        row.times[turns] = Math.min(row.times[turns] ?? Infinity, await MEASURES[row.name]({ own, peer, turns }));
    }
  }
  return rows;
}
