// A process of the tests of docs/sent-twice.md: node once-program.mjs <section> <SQLite file> <mails file> <hang at>
// <URL of the model> <file with the code>. Runs the page's code of the section. Each mail that is sent is a line of
// the mails file. It sends a message to the test, and never goes on, at "tool" in the tool, and at "model" when the
// model is asked a second time; otherwise it sends what the code gave.

import { appendFileSync, readFileSync } from 'node:fs';
import { open } from 'rethread';
import { chatMessageHistory } from 'rethread/langchain';
import { once } from 'rethread/once';
import { sqlite } from 'rethread/sqlite';
import { z } from 'zod';
import { fileCheckpointer, langGraph } from './once-langgraph.mjs';
import { mcpServer } from './once-mcp.mjs';

const [section, file, mails, hangAt, url, code] = process.argv.slice(2);
const AsyncFunction = (async () => {}).constructor;

/** Runs the code with these names, and returns the values of `results`. */
function runSection(values, results) {
  const source = readFileSync(code, 'utf8');
  return new AsyncFunction(...Object.keys(values), `{ ${source}\nreturn { ${results.join(', ')} }; }`)(
    ...Object.values(values),
  );
}

function hang() {
  process.send?.('hangs');
  setInterval(() => {}, 60_000);
  return new Promise(() => {});
}

async function sendMail({ to }) {
  appendFileSync(mails, `${to}\n`);
  if (hangAt === 'tool') await hang();
  return `sent to ${to}`;
}

/** What a provider checks: that the results of an answer's calls follow it. */
function assertPaired(messages) {
  const open = new Set();
  for (const message of messages) {
    const isResult = message.getType() === 'tool';
    if (isResult ? !open.delete(message.tool_call_id) : open.size) throw new Error('400 calls without results');
    for (const { id } of message.tool_calls ?? []) open.add(id);
  }
  if (open.size) throw new Error('400 calls without results');
}

let asked = 0;
/** `fetch`, which never answers the second request. */
async function fetchModel(address, init) {
  asked += 1;
  return asked === 2 && hangAt === 'model' ? hang() : fetch(address, init);
}

const store = await open({ store: sqlite(file) });
const names = { store, once, sendMail, payInvoice: sendMail, z };
const parameters = { type: 'object', properties: { to: { type: 'string' } } };
const toolDefinitions = [{ type: 'function', function: { name: 'send_mail', parameters } }];

const sections = {
  async 'A loop over fetch'() {
    const chat = await store.session('chat-1');
    if (!chat.revision) await chat.append({ messages: [{ role: 'user', content: 'Write to Ann.' }] }, 'openai-chat');
    const headers = { 'content-type': 'application/json', authorization: 'Bearer sk-documents' };
    await runSection({ ...names, url: `${url}/chat/completions`, headers, toolDefinitions, fetch: fetchModel }, []);
    return (await chat.messages()).items.at(-1).parts[0].text;
  },
  async 'AI SDK'() {
    const [ai, { createOpenAI }] = await Promise.all([import('ai'), import('@ai-sdk/openai')]);
    const ownOpenAI = () => createOpenAI({ apiKey: 'sk-documents', baseURL: url, fetch: fetchModel });
    const values = { ...names, ...ai, createOpenAI: ownOpenAI, question: 'Write to Ann.' };
    return (await runSection(values, ['text'])).text;
  },
  async Mastra() {
    // The interface of @mastra/core 1.71, re-created from its types: the package takes 130 MB.
    const createTool = (tool) => tool;
    const { remind } = await runSection({ ...names, createTool }, ['remind']);
    // An agent that is asked again has another id for the call.
    const agent = { agentId: 'a', toolCallId: `call_${process.pid}`, messages: [], suspend: async () => {} };
    const outcome = remind.execute({ to: 'ann', invoice: '17' }, { agent });
    const text = await outcome.catch(({ message }) => message);
    return hangAt === 'model' ? hang() : text;
  },
  async LangGraph() {
    const packages = await langGraph();
    const checkpointer = fileCheckpointer(packages, `${file}.thread`);
    const isNew = !(await checkpointer.getTuple({ configurable: { thread_id: '1' } }));
    const chatModel = {
      async invoke(messages) {
        asked += 1;
        if (asked === 2 && hangAt === 'model') await hang();
        assertPaired(messages);
        const last = messages.at(-1);
        if (last.content === 'Hello?') return new packages.AIMessage('Hello.');
        if (last.getType() === 'tool') return new packages.AIMessage(`Done: ${last.content}`);
        return new packages.AIMessage({
          content: '',
          tool_calls: [{ id: 'call_1', name: 'send_mail', args: { to: 'ann' } }],
        });
      },
    };
    const values = {
      ...names,
      ...packages,
      open: async () => store,
      sqlite: () => {},
      chatMessageHistory,
      // The page's model and checkpointer.
      ChatOpenAI: class {
        bindTools = () => chatModel;
      },
      SqliteSaver: { fromConnString: () => checkpointer },
    };
    const { graph, history } = await runSection(values, ['graph', 'history']);
    const question = isNew ? 'Write to Ann.' : hangAt === 'another question' ? 'Hello?' : undefined;
    const input = question ? { messages: [new packages.HumanMessage(question)] } : null;
    const config = { configurable: { thread_id: '1' }, durability: 'sync' };
    const { __interrupt__: questions } = await graph.invoke(input, config);
    if (questions) await graph.invoke(new packages.Command({ resume: 'report' }), config);
    const stored = await history.getMessages();
    return { asked: questions?.map(({ value }) => value), stored: stored.map(({ content, type }) => [type, content]) };
  },
  async 'An MCP server'() {
    await runSection({ ...names, ...(await mcpServer()) }, []);
  },
};

const given = await sections[section]();
process.send?.({ given });
