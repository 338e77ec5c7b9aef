// The Agents SDK and LangChain in a page, over sessions in IndexedDB, with a model that is a function.

import { Agent, Runner, setTracingDisabled, tool, Usage } from '@openai/agents';
import { AIMessage, HumanMessage, ToolMessage } from '@langchain/core/messages';
import { open } from 'rethread';
import { chatMessageHistory } from 'rethread/langchain';
import { agentsSession } from 'rethread/openai-agents';

setTracingDisabled(true);
const parameters = { type: 'object', properties: {}, required: [], additionalProperties: false };
const call = (name) => ({ type: 'function_call', callId: name, name, status: 'completed', arguments: '{}' });
const done = {
  type: 'message',
  role: 'assistant',
  status: 'completed',
  content: [{ type: 'output_text', text: 'Done.' }],
};

const store = await open();
const ran = [];

/** Resolves when the result of a tool is stored, a moment after the tool has returned. */
async function untilStored(tool) {
  for (;;) {
    const other = await open();
    const { items } = await (await other.session('agents')).invocations();
    await other.close();
    if (items.some(({ name, status }) => name === tool && status === 'ok')) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** Runs the agent; `hangs` is called in the tool that never ends, when the result of the other one is stored. */
globalThis.runAgent = async (input, hangs) => {
  const session = agentsSession(await store.session('agents'));
  const model = {
    async getResponse({ input: items }) {
      const hasResults = items.some(({ type }) => type === 'function_call_result');
      return { usage: new Usage(), output: hasResults ? [done] : [call('quick'), call('slow')] };
    },
  };
  const named = (name, execute) => tool({ name, description: '', parameters, strict: true, execute });
  const quick = named('quick', () => {
    ran.push('quick');
    return 'quick result';
  });
  const slow = named('slow', () => {
    ran.push('slow');
    untilStored('quick').then(hangs);
    return new Promise(() => {});
  });
  const agent = session.durable(new Agent({ name: 'A', model, tools: [quick, slow] }));
  const { finalOutput } = await new Runner({ tracingDisabled: true }).run(agent, input, { session });
  return { finalOutput, ran, items: await session.getItems() };
};

globalThis.killedInTool = () => new Promise((resolve) => globalThis.runAgent('Go.', () => resolve(ran)));

globalThis.addMessages = async () => {
  const asking = new AIMessage({ content: '', tool_calls: [{ id: 'a', name: 'look', args: {} }] });
  const seen = new ToolMessage({ content: 'seen', tool_call_id: 'a' });
  await chatMessageHistory(await store.session('langchain')).addMessages([new HumanMessage('Hi'), asking, seen]);
};

globalThis.messages = async () => {
  const messages = await chatMessageHistory(await store.session('langchain')).getMessages();
  return messages.map((message) => `${message.type}: ${message.tool_calls?.[0]?.id ?? message.content}`);
};

globalThis.isReady = true;
