// A middleware for `wrapLanguageModel`: each prompt is repaired, and what is new in it is stored before it is sent; each
// answer is stored before its tools run.

import { RethreadError } from '../../error.js';
import { findCall, resultItems, storeResult } from './calls.js';
import { durableNames } from './durable-tools.js';
import { newAnswer, newId } from './ids.js';
import { ModelAnswer } from './model-answer.js';
import { isSame, plain } from '../plain.js';
import { repairedPrompt, resultOf, uiParts } from './prompt.js';
import { messageOf } from './read.js';
import { storedChat } from './stored-chat.js';
import { beginAnswer, liveAnswerOf } from './under-way.js';
import { checkSession } from './session-argument.js';

const resultsOf = (prompt) =>
  prompt.flatMap(({ role, content }) =>
    role === 'tool' || role === 'assistant' ? content.filter(({ type }) => type === 'tool-result') : [],
  );

/** The messages at the end that no answer follows. */
const newestOf = (messages) => messages.slice(messages.findLastIndex(({ role }) => role !== 'user') + 1);

/** What tells questions from one another. Files may have been downloaded since. */
function questionOf(parts) {
  const said = parts.flatMap((part) => (part.type === 'text' ? [part.text] : []));
  return JSON.stringify([said, parts.filter(({ type }) => type === 'file').length]);
}

/** The questions of a prompt that are not stored. */
function newQuestions(entries, prompt) {
  const asked = newestOf(prompt).map((message) => uiParts(message));
  const stored = newestOf(entries).map((entry) => questionOf(messageOf(entry).parts));
  const keys = asked.map(questionOf);
  const most = Math.min(keys.length, stored.length);
  for (let known = most; known > 0; known -= 1)
    if (stored.slice(-known).every((key, at) => key === keys[at])) return asked.slice(known);
  return asked;
}

/** All messages of a prompt, as UI messages. */
function wholeConversation(prompt) {
  const results = new Map();
  for (const part of resultsOf(prompt)) results.set(part.toolCallId, [...(results.get(part.toolCallId) ?? []), part]);
  const messages = [];
  for (const message of prompt) {
    if (message.role === 'tool') continue;
    const parts = uiParts(message, results);
    const last = messages.at(-1);
    if (message.role === 'assistant' && last?.role === 'assistant') last.parts.push(...parts);
    else messages.push({ id: newId(), role: message.role, parts });
  }
  return messages.filter(({ role }) => role !== 'system');
}

/** The newest call of each id that has a result in a prompt. */
function answeredCalls(prompt) {
  const calls = new Map();
  for (const { content } of prompt)
    for (const part of Array.isArray(content) ? content : []) {
      const { type, toolCallId } = part;
      if (type === 'tool-call') calls.set(toolCallId, { input: part.input });
      if (type === 'tool-result' && calls.has(toolCallId)) calls.get(toolCallId).part ??= part;
    }
  return new Map([...calls].filter(([, { part }]) => part));
}

/** What `append` needs to have what is new in a prompt. */
function newItems(chat, entries, prompt) {
  if (!entries.length) return wholeConversation(prompt).flatMap((message) => chat.written(message));
  const results = [...answeredCalls(prompt)].flatMap(([callId, { input, part }]) => {
    const call = findCall(entries, callId)?.call;
    // The ids of calls come again.
    if (!call || call.result !== null || !isSame(plain(input ?? {}), call.arguments)) return [];
    return resultItems(callId, resultOf(part));
  });
  const questions = newQuestions(entries, prompt).map((parts) => ({ id: newId(), role: 'user', parts }));
  return [...results, ...questions.flatMap((message) => chat.written(message))];
}

/** The warning of a request that has no answer of the stored ones: nothing says that this is what the caller means. */
function warningsOf(session, entries, prompt) {
  const isAnswer = ({ role }) => role === 'assistant';
  if (prompt.some(isAnswer) || !entries.some(isAnswer)) return [];
  const sent = 'messages: [...(await convertToModelMessages(await resumeUIMessages(session))), question]';
  const message = `the session ${JSON.stringify(session.id)} has ${entries.length} earlier messages, and this request has none of its answers; send them before the question: ${sent}`;
  return [{ type: 'other', message }];
}

const withWarnings = (result, more) => ({ ...result, warnings: [...(result.warnings ?? []), ...more] });

const noFailure = () => undefined;
const asFailure = (error) => ({ error });

class ModelJournal {
  #session;
  #chat;

  constructor(session) {
    this.#session = session;
    this.#chat = storedChat(session);
  }

  /** Stores what is new in a prompt, and returns the warnings of the request. If that fails, nothing is sent. */
  async storePrompt(prompt) {
    for (const [invocation, result] of this.#chat.unstored) {
      await storeResult(this.#session, this.#chat, invocation, result);
      this.#chat.unstored.delete(invocation);
    }
    const { warnings } = await this.#chat.change((entries) => ({
      warnings: warningsOf(this.#session, entries, prompt),
      items: newItems(this.#chat, entries, prompt),
    }));
    return warnings;
  }

  /** An answer that follows what is stored. */
  async newAnswer() {
    const last = (await this.#chat.entries()).at(-1);
    return new ModelAnswer(last?.role === 'assistant' ? messageOf(last) : newAnswer(newId()));
  }

  /** Stores an answer. @param {ModelAnswer} answer @param {{ durable: Set<string>, status?: string }} options */
  async store(answer, { durable, status = answer.status }) {
    const { message } = answer;
    if (message) await this.#chat.storeAnswer(message, { status, isEnd: true, durable });
  }

  /** The transport stores what its pages are sent. */
  get isServed() {
    return liveAnswerOf(this.#session) !== undefined;
  }

  async generated(doGenerate, { tools, warnings }) {
    const end = beginAnswer(this.#session);
    try {
      const answer = await this.newAnswer();
      const result = await doGenerate();
      answer.addAll(result.content);
      answer.end(result);
      await this.store(answer, { durable: durableNames(tools) });
      return warnings.length ? withWarnings(result, warnings) : result;
    } finally {
      end();
    }
  }

  async streamed(doStream, { tools, warnings, abortSignal: signal }) {
    const end = beginAnswer(this.#session);
    try {
      const answer = await this.newAnswer();
      const result = await doStream();
      return {
        ...result,
        stream: this.#journaled(result.stream, { answer, end, signal, warnings, durable: durableNames(tools) }),
      };
    } catch (error) {
      end();
      throw error;
    }
  }

  /** A stream of the same parts. The answer is stored before its end is passed on, at which its tools begin. */
  #journaled(stream, { answer, end, signal, warnings, durable }) {
    const reader = stream.getReader();
    let isStored = false;
    const store = async (status) => {
      if (isStored) return;
      isStored = true;
      try {
        await this.store(answer, { durable, status });
      } finally {
        end();
      }
    };
    const cutStatus = () => (signal?.aborted ? 'stopped' : 'failed');
    const fail = (controller, error) => {
      controller.enqueue({ type: 'error', error });
      controller.close();
    };
    return new ReadableStream({
      async pull(controller) {
        const next = await reader.read().catch((error) => ({ error }));
        if (next.value) answer.add(next.value);
        const isEnd = next.value === undefined || next.value.type === 'finish';
        const status = next.value ? answer.status : cutStatus();
        const failure = isEnd ? await store(status).then(noFailure, asFailure) : undefined;
        // Without its end no tool of the answer begins.
        if (failure) fail(controller, failure.error);
        else if ('error' in next) controller.error(next.error);
        else if (next.done) controller.close();
        else if (warnings.length && next.value.type === 'stream-start')
          controller.enqueue(withWarnings(next.value, warnings));
        else controller.enqueue(next.value);
      },
      async cancel(reason) {
        await Promise.all([store('stopped'), reader.cancel(reason)]);
      },
    });
  }
}

/** @param {any} session @param {...any} more @returns {any} */
export function historyMiddleware(session, ...more) {
  checkSession(session, 'historyMiddleware');
  if (more.length) throw new RethreadError('config_invalid', '`historyMiddleware` takes a session alone');
  const journal = new ModelJournal(session);
  /** By the parameters of a request. @type {WeakMap<object, any[]>} */
  const warnings = new WeakMap();
  const withOwn = (params) => ({ ...params, warnings: warnings.get(params) ?? [] });
  return {
    specificationVersion: 'v3',
    async transformParams({ params }) {
      const own = journal.isServed ? [] : await journal.storePrompt(params.prompt);
      const sent = { ...params, prompt: repairedPrompt(params.prompt) };
      warnings.set(sent, own);
      return sent;
    },
    wrapGenerate: ({ doGenerate, params }) =>
      journal.isServed ? doGenerate() : journal.generated(doGenerate, withOwn(params)),
    wrapStream: ({ doStream, params }) => (journal.isServed ? doStream() : journal.streamed(doStream, withOwn(params))),
  };
}
