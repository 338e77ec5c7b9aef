// A server of the tests of `rethread/ai-sdk`: node ai-sdk-served-program.mjs <driver> <its place> <version of ai>
// <leaseMs>. It sends its origin, and what happens in it; a place of an answer is passed when it gets { open: place }.
//
//   "tool"      a call of `look`, which ends at the place "tool", then "Hello", of which "lo" follows the place "text"
//   "hang"      "Hel", and no more
//   "pay"       a call of `pay`, which never ends
//   any other   that word

import { open } from 'rethread';
import { chatHandler, loadUIMessages } from 'rethread/ai-sdk';
import { z } from 'zod';
import { HANGS, VERSIONS, called, inShort, modelOf, said } from '../judges/ai-sdk-models.mjs';
import { serveRequests } from './chat-server.mjs';
import { openDriver } from './drivers.mjs';

const [name, at, version, leaseMs] = process.argv.slice(2);
const [, ai, Model] = VERSIONS.find(([known]) => String(known) === version);
const { driver } = await openDriver(name, at);
const store = await open({ store: driver, leaseMs: Number(leaseMs) });

const places = new Map();
function place(name) {
  if (!places.has(name)) {
    let pass;
    const passed = new Promise((resolve) => (pass = resolve));
    places.set(name, { passed, pass });
  }
  return places.get(name);
}
process.on('message', ({ open: name }) => place(name).pass());

const half = [
  { type: 'text-start', id: 't' },
  { type: 'text-delta', id: 't', delta: 'Hel' },
];
const counts = new Map();
function answerTo(prompt, id) {
  const question = prompt.findLast(({ role }) => role === 'user').content[0].text;
  const isAfterTool = prompt.at(-1).role === 'tool';
  if (question === 'tool' && !isAfterTool) return called([`${id}-c1`, 'look']);
  if (question === 'tool')
    return [...half, place(`${id} text`).passed, { type: 'text-delta', id: 't', delta: 'lo' }, ...said('').slice(2)];
  if (question === 'hang') return [...half, HANGS];
  if (question === 'pay' && !isAfterTool) return called([`${id}-p1`, 'pay']);
  counts.set(id, (counts.get(id) ?? 0) + 1);
  return said(`${question} ${version}.${counts.get(id)}`);
}

const tool = (execute) => ({ inputSchema: z.object({}).loose(), execute });
const tools = {
  look: tool(async (_, { toolCallId }) => {
    process.send({ ran: toolCallId });
    await place(`${toolCallId.slice(0, -'-c1'.length)} tool`).passed;
    return 'seen';
  }),
  pay: tool((_, { toolCallId }) => {
    process.send({ ran: toolCallId });
    return new Promise(() => {});
  }),
};

const handler = chatHandler({
  session: (id) => store.session(id),
  tools,
  answer: async ({ messages, tools: durable, abortSignal, session }) => {
    abortSignal.addEventListener('abort', () => process.send({ aborted: session.id }));
    const prompt = await ai.convertToModelMessages(messages, { tools: durable });
    const doStream = (options) => {
      process.send({ prompt: inShort(options.prompt), chat: session.id });
      return modelOf(Model, [answerTo(options.prompt, session.id)]).model.doStream(options);
    };
    return ai.streamText({
      model: new Model({ doStream }),
      tools: durable,
      messages: prompt,
      abortSignal,
      stopWhen: ai.stepCountIs(5),
      maxRetries: 0,
      onError: () => {},
    });
  },
});

const { origin } = await serveRequests(async (request) => {
  const [, id] = /^\/messages\/(.+)$/.exec(new URL(request.url).pathname) ?? [];
  return id ? Response.json(await loadUIMessages(await store.session(id))) : handler(request);
});
process.send({ origin });
