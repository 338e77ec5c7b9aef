// Threads of assistant-ui's own runtime over sessions, for the tests of `rethread/assistant-ui`.

import { AssistantRuntimeImpl, LocalRuntimeCore } from '@assistant-ui/core/internal';
import { open } from 'rethread';

export const client = await open();

let sessions = 0;
export const newSession = () => client.session(`assistant-ui-${(sessions += 1)}`);

/** A copy of the session as another program reads it. */
export async function reloaded(session) {
  const other = await open();
  return other.restore(await session.serialize());
}

export async function until(isTrue) {
  for (const end = Date.now() + 10_000; !(await isTrue()); ) {
    if (Date.now() > end) throw new Error(`it does not come true: ${isTrue}`);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

/** A thread whose model gives these answers, loaded from a history. `failed` has the failures of its writes. */
export async function threadOf(history, answers = []) {
  const chatModel = {
    async run() {
      const answer = answers.shift();
      return typeof answer === 'string' ? { content: [{ type: 'text', text: answer }] } : answer;
    },
  };
  const core = new LocalRuntimeCore({ adapters: { chatModel, history } });
  const inner = core.threads.getMainThreadRuntimeCore();
  const failed = [];
  inner.unstable_on('historyWriteError', (event) => failed.push(event));
  await inner.__internal_load();
  const { thread } = new AssistantRuntimeImpl(core);
  // An answer is there before it is written.
  const isIdle = async () => {
    await until(() => !thread.getState().isRunning);
    await history.load();
  };
  const send = async (message) => {
    await inner
      .append(typeof message === 'string' ? question(message, thread.getState().messages.at(-1)?.id) : message)
      .catch(() => {});
    await isIdle();
  };
  return { thread, inner, failed, send, isIdle, answers };
}

export const question = (text, parentId = null) => ({
  role: 'user',
  content: [{ type: 'text', text }],
  attachments: [],
  metadata: { custom: {} },
  createdAt: new Date(),
  parentId,
  sourceId: null,
  runConfig: {},
});

export const words = ({ content }) =>
  content
    .map((part) => (part.type === 'tool-call' ? `${part.toolName}=${JSON.stringify(part.result)}` : part.text))
    .join('|');

/** What a thread shows. */
export const shown = ({ thread }) => thread.getState().messages.map(words);

export const all = async (session, branch) => (await session.messages({ branch, limit: 1000 })).items;

/** The body of the next request. */
export const bodyOf = async (session, dialect = 'openai-chat') =>
  JSON.parse(new TextDecoder().decode((await session.render({ dialect, params: { model: 'm' } })).body));
