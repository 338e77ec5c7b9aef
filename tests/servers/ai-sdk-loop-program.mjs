// A process of the tests of `rethread/ai-sdk`: node ai-sdk-loop-program.mjs <SQLite file> <version of ai> <where it
// hangs, or "nowhere"> <a tool that may run again, or ""> <"loop", "bare" for one without `durableTools`, or "page" for one
// that a page asks>. What happens is written to <SQLite file>.log, a line each; it sends where it hangs, and at the end
// the text and what is stored.

import { appendFileSync } from 'node:fs';
import { open } from 'rethread';
import {
  durableTools,
  historyMiddleware,
  loadUIMessages,
  resumeUIMessages,
  sessionTransport,
  toUIMessages,
} from 'rethread/ai-sdk';
import { sqlite } from 'rethread/sqlite';
import { z } from 'zod';
import { VERSIONS, called, inShort, modelOf, said } from '../judges/ai-sdk-models.mjs';
import { pageOf } from '../judges/ai-sdk-page.mjs';

const [file, version, place, rerun, kind] = process.argv.slice(2);
const [, ai, Model] = VERSIONS.find(([known]) => String(known) === version);
const log = (line) => appendFileSync(`${file}.log`, `${line}\n`);

/** Notes that something happens; the process ends there if that is the place. */
async function happens(line) {
  log(line);
  if (line !== place) return;
  process.send({ hangs: line });
  await new Promise(() => setInterval(() => {}, 60_000));
}

const ROUNDS = [called(['c1', 'look'], ['c2', 'pay']), called(['c3', 'look']), said('Done.')];
/** Answers by what the prompt has: as many rounds as it has answers. */
function answerTo(prompt) {
  const round = prompt.filter(({ role }) => role === 'assistant').length;
  return ROUNDS[Math.min(round, ROUNDS.length - 1)];
}

const { model: scripted } = modelOf(Model, []);
const model = new Model({
  doStream: async (options) => {
    const round = options.prompt.filter(({ role }) => role === 'assistant').length;
    log(`prompt ${JSON.stringify(inShort(options.prompt))}`);
    await happens(`model ${round}`);
    const parts = [{ type: 'stream-start', warnings: [] }, ...answerTo(options.prompt)];
    return { stream: ReadableStream.from(parts) };
  },
  doGenerate: scripted.doGenerate,
});

const store = await open({ store: sqlite(file) });
const session = await store.session('chat');
const tool = (name) => ({
  inputSchema: z.object({}),
  execute: async (_, { toolCallId }) => {
    // The other tool of the round has its result by then.
    if (place === `${name} ${toolCallId}`) await new Promise((resolve) => setTimeout(resolve, 200));
    await happens(`${name} ${toolCallId}`);
    return `${name} result`;
  },
});
const onInterrupted = rerun ? { [rerun]: 'rerun' } : {};
const tools = { look: tool('look'), pay: tool('pay') };

async function loop() {
  const durable = kind === 'bare' ? tools : durableTools(tools, session, { onInterrupted });
  const messages = await ai.convertToModelMessages(await resumeUIMessages(session, { tools: durable }));
  const result = ai.streamText({
    model: ai.wrapLanguageModel({ model, middleware: historyMiddleware(session) }),
    tools: durable,
    messages: messages.length ? messages : [{ role: 'user', content: 'Go.' }],
    stopWhen: ai.stepCountIs(6),
    maxRetries: 0,
  });
  return result.text;
}

async function page() {
  const answer = async ({ messages, tools: durable, abortSignal }) =>
    ai.streamText({
      model,
      tools: durable,
      messages: await ai.convertToModelMessages(messages),
      abortSignal,
      stopWhen: ai.stepCountIs(6),
    });
  const transport = sessionTransport(session, { tools, onInterrupted, answer });
  const chat = pageOf(ai, { transport, messages: await loadUIMessages(session) });
  await chat.sendMessage(chat.messages.length ? undefined : { text: 'Go.' });
  return chat.error ? String(chat.error) : chat.messages.at(-1).parts.at(-1).text;
}

const text = await (kind === 'page' ? page() : loop());
const { items } = await session.messages({ limit: 1000 });
const calls = (await session.invocations({ payload: true })).items;
process.send({ text, stored: toUIMessages(items), calls: calls.map(({ callId, status }) => [callId, status]).sort() });
