// A process of the tests of `rethread/openai-agents`: node agents-program.mjs <SQLite file> <what to do> [RunState].
// It sends which tools ran from within one that never ends, and at the end what the run gave, what the model was
// sent, and which tools ran.

import { Agent, Runner, RunState, setTracingDisabled, tool, Usage } from '@openai/agents';
import { open } from 'rethread';
import { agentsSession } from 'rethread/openai-agents';
import { sqlite } from 'rethread/sqlite';

setTracingDisabled(true);
const [file, task, serialized] = process.argv.slice(2);
const NO_PARAMETERS = { type: 'object', properties: {}, required: [], additionalProperties: false };
const requests = [];
const ran = [];

const call = (callId, name) => ({
  type: 'function_call',
  id: `fc_${callId}`,
  callId,
  name,
  status: 'completed',
  arguments: '{}',
});
const text = (said) => ({
  type: 'message',
  id: 'msg_1',
  role: 'assistant',
  status: 'completed',
  content: [{ type: 'output_text', text: said }],
});
const reasoning = { type: 'reasoning', id: 'rs_1', content: [], providerData: { encrypted_content: 'sealed' } };

/** Answers the first question with calls, and results with a text. */
class ScriptedModel {
  async getResponse({ input }) {
    const items = typeof input === 'string' ? [{ role: 'user', content: input }] : structuredClone(input);
    requests.push(items);
    const hasResults = items.some(({ type }) => type === 'function_call_result');
    const names = task === 'approval' ? ['quick', 'pay'] : ['quick', 'slow'];
    const output = hasResults ? [text('Done.')] : [reasoning, ...names.map((name) => call(`call_${name}`, name))];
    return { usage: new Usage(), output };
  }
}

/** A tool that never ends. */
function hang(ms) {
  setTimeout(() => process.send({ ran }), ms);
  return new Promise(() => setInterval(() => {}, 60_000));
}

const quick = tool({
  name: 'quick',
  description: '',
  parameters: NO_PARAMETERS,
  strict: true,
  execute: () => {
    ran.push('quick');
    return 'quick result';
  },
});
const slow = tool({
  name: 'slow',
  description: '',
  parameters: NO_PARAMETERS,
  strict: true,
  execute: () => {
    ran.push('slow');
    // Until the result of the other tool is stored.
    return hang(500);
  },
});
const pay = tool({
  name: 'pay',
  description: '',
  parameters: NO_PARAMETERS,
  strict: true,
  needsApproval: true,
  execute: () => {
    ran.push('pay');
    return task === 'approve and hang' ? hang(100) : 'paid';
  },
});

const store = await open({ store: sqlite(file) });
const session = agentsSession(await store.session('chat'));
const agent = session.durable(new Agent({ name: 'A', model: new ScriptedModel(), tools: [quick, slow, pay] }));
const runner = new Runner({ tracingDisabled: true });

async function inputOf() {
  if (task === 'tool' || task === 'approval') return 'Go.';
  if (!serialized) return [];
  const state = await RunState.fromString(agent, serialized);
  for (const interruption of state.getInterruptions()) state.approve(interruption);
  return state;
}

const result = await runner.run(agent, await inputOf(), { session });
process.send({
  output: result.finalOutput,
  interruptions: result.interruptions.length,
  state: result.state.toString(),
  items: await session.getItems(),
  requests,
  ran,
});
