// Models of `ai` 6 and 7 that answer from a list, and a session for them.

import * as ai6 from 'ai';
import * as ai7 from 'ai-7';
import { MockLanguageModelV4 } from 'ai-7/test';
import { MockLanguageModelV3 } from 'ai/test';
import { open } from 'rethread';

/** The versions, each with the class of its models. */
export const VERSIONS = [
  [6, ai6, MockLanguageModelV3],
  [7, ai7, MockLanguageModelV4],
];

const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };
export const finish = (unified = 'stop') => ({
  type: 'finish',
  finishReason: { unified, raw: undefined },
  usage,
});
export const said = (delta, id = 't') => [
  { type: 'text-start', id },
  { type: 'text-delta', id, delta },
  { type: 'text-end', id },
  finish(),
];
export const called = (...calls) => [
  ...calls.map(([toolCallId, toolName, input = '{}']) => ({ type: 'tool-call', toolCallId, toolName, input })),
  finish('tool-calls'),
];

/** Stands for a place in an answer at which it stays until it is aborted. */
export const HANGS = Symbol('hangs');

const aborted = (signal, controller) =>
  new Promise((resolve) => {
    // Keeps the process alive.
    const timer = setTimeout(() => {}, 60_000);
    signal?.addEventListener('abort', () => {
      clearTimeout(timer);
      controller.error(signal.reason);
      resolve();
    });
  });

/** A model that gives these answers, each a list of the parts of a stream, and what it was sent. */
export function modelOf(Model, answers) {
  const prompts = [];
  const next = ({ prompt }) => {
    prompts.push(prompt);
    const answer = answers.shift();
    if (answer instanceof Error) throw answer;
    return answer ?? said('no answer');
  };
  const model = new Model({
    doStream: async (options) => {
      const parts = [{ type: 'stream-start', warnings: [] }, ...next(options)];
      let at = 0;
      const pull = (controller) => {
        const part = parts[at];
        at += 1;
        if (part === undefined) controller.close();
        else if (part instanceof Error) controller.error(part);
        else if (part instanceof Promise) return part.then(() => pull(controller));
        else if (part === HANGS) return aborted(options.abortSignal, controller);
        else controller.enqueue(part);
        return undefined;
      };
      return { stream: new ReadableStream({ pull }, { highWaterMark: 0 }) };
    },
    doGenerate: async (options) => {
      const parts = next(options);
      const { finishReason } = parts.at(-1);
      const content = parts.flatMap((part) => {
        if (part.type === 'text-delta') return [{ type: 'text', text: part.delta }];
        return part.type === 'tool-call' ? [part] : [];
      });
      return { content, finishReason, usage, warnings: [] };
    },
  });
  return { model, prompts };
}

let count = 0;
const client = await open({ store: 'memory' });
export const newSession = () => {
  count += 1;
  return client.session(`loop-${count}`);
};
/** The same session as another process would have it: another object of it. */
export const again = ({ id }) => client.session(id);

/** A prompt in short: roles, texts, calls and results. */
export const inShort = (prompt) =>
  prompt.map(({ role, content }) => {
    if (typeof content === 'string') return `${role}: ${content}`;
    const parts = content.map((part) => {
      if (part.type === 'tool-result') return `${part.toolCallId} = ${JSON.stringify(part.output.value)}`;
      return part.text ?? part.toolCallId ?? part.type;
    });
    return [role, ...parts].join(': ');
  });
