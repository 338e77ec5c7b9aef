// Chats of TanStack AI for tests: a client whose answers are scripts of chunks, on sessions of a store.

import { chat } from '@tanstack/ai';
import { ChatClient } from '@tanstack/ai-client';
import { open } from 'rethread';
import { chatPersistence } from 'rethread/tanstack-ai';
import { MemoryLogStore } from '../packaging/projects/store/memory-log-store.js';

export const settled = (milliseconds = 0) => new Promise((resolve) => setTimeout(resolve, milliseconds));

/** Resolves once the condition holds. */
export async function until(condition, what = String(condition)) {
  for (let attempt = 0; attempt < 400; attempt += 1) {
    if (await condition()) return;
    await settled(10);
  }
  throw new Error(`it never came to: ${what}`);
}

export const started = (runId) => ({ type: 'RUN_STARTED', runId, threadId: 'chat' });
export const finished = (runId, more = {}) => ({ type: 'RUN_FINISHED', runId, threadId: 'chat', ...more });
export const says = (messageId, ...deltas) => [
  { type: 'TEXT_MESSAGE_START', messageId, role: 'assistant' },
  ...deltas.map((delta) => ({ type: 'TEXT_MESSAGE_CONTENT', messageId, delta })),
  { type: 'TEXT_MESSAGE_END', messageId },
];
export const calls = (parentMessageId, toolCallId, toolCallName, args) => [
  { type: 'TOOL_CALL_START', toolCallId, toolCallName, parentMessageId },
  { type: 'TOOL_CALL_ARGS', toolCallId, delta: JSON.stringify(args) },
  { type: 'TOOL_CALL_END', toolCallId, toolCallName, input: args },
];
/** A whole answer. */
export const answer = (runId, ...chunks) => [started(runId), ...chunks.flat(), finished(runId)];

/** A connection whose answers are the next of `answers`: lists of chunks and of promises that a stream waits for. */
export function connection(answers, joined) {
  const sent = [];
  async function* play(chunks, signal) {
    for (const chunk of chunks) {
      if (signal?.aborted) return;
      const next = typeof chunk === 'function' ? await Promise.race([chunk(), aborted(signal)]) : chunk;
      if (next) yield next;
    }
  }
  return {
    sent,
    connect(messages, _data, signal, context) {
      sent.push({ messages, context });
      return play(answers.shift() ?? answer('none'), signal);
    },
    ...(joined && { joinRun: (runId, signal) => play(joined(runId), signal) }),
  };
}

const aborted = (signal) => new Promise((resolve) => signal?.addEventListener('abort', () => resolve(undefined)));

/** A place in an answer where it waits until it is opened. */
export function gate() {
  let openGate;
  const opened = new Promise((resolve) => (openGate = resolve));
  return { wait: () => opened, open: () => openGate(undefined) };
}

/** A page: a client with its own persistence. */
export function page(store, { answers = [], joined, errors = [], persistence, ...options } = {}) {
  const kept =
    persistence ?? chatPersistence(store, { onError: (error, context) => errors.push({ error, ...context }) });
  const server = connection(answers, joined);
  const client = new ChatClient({ threadId: 'chat', persistence: kept, connection: server, ...options });
  client.attach();
  return { client, kept, errors, sent: server.sent };
}

/** A page that has loaded its messages. */
export async function loadedPage(store, options) {
  const loaded = page(store, options);
  await settled(20);
  return loaded;
}

export const shownPart = (part) => part.content ?? part.raw ?? `${part.name}(${part.arguments}) ${part.state}`;
export const shown = (messages) => messages.map(({ role, parts }) => `${role}: ${parts.map(shownPart).join(' ')}`);

/** What a new page finds. */
export const found = async (store) => (await chatPersistence(store).getItem('chat'))?.messages ?? [];

/** The stored messages, without times. */
export async function stored(store, branch) {
  const session = await store.session('chat');
  await session.refresh();
  return (await session.messages(branch ? { branch } : {})).items;
}

/** A store that tabs of a browser have in common. While `fails.reads` or `fails.writes` is true, it fails to. */
export function sharedStore() {
  const fails = { reads: false, writes: false, written: 0 };
  const kept = new MemoryLogStore();
  const store = new Proxy(kept, {
    get(target, name) {
      const member = target[name];
      if (typeof member !== 'function') return member;
      if (name === 'capabilities') return member.bind(target);
      return async (...args) => {
        const isWrite = name === 'append';
        if (isWrite ? fails.writes : fails.reads)
          throw Object.assign(new Error('the disk is full'), { code: 'quota_exceeded' });
        if (isWrite) fails.written += 1;
        return member.apply(target, args);
      };
    },
  });
  return { fails, tab: () => open({ store, replay: { freshness: Number.POSITIVE_INFINITY } }) };
}

/** A model whose answers are the next of `scripts`: lists of chunks. */
export function scripted(scripts) {
  const sent = [];
  const adapter = {
    kind: 'text',
    name: 'scripted',
    model: 'm',
    async *chatStream({ runId, messages }) {
      sent.push(messages);
      const chunks = (scripts.shift() ?? []).flat();
      const finishReason = chunks.some(({ type }) => type === 'TOOL_CALL_START') ? 'tool_calls' : 'stop';
      yield { ...started(runId), model: 'm', timestamp: 1 };
      for (const chunk of chunks) yield { ...chunk, model: 'm', timestamp: 1 };
      yield { ...finished(runId, { finishReason }), model: 'm', timestamp: 1 };
    },
  };
  return { sent, adapter };
}

/** A connection to TanStack's own loop with such a model. */
export function loop(scripts, tools) {
  const { sent, adapter } = scripted(scripts);
  const connect = (messages, _data, signal, { threadId, runId, parentRunId, resume }) => {
    const abortController = new AbortController();
    signal?.addEventListener('abort', () => abortController.abort());
    return chat({ adapter, messages, tools, threadId, runId, parentRunId, resume, abortController });
  };
  return { sent, connection: { connect } };
}
