// An agent whose answers with calls, and whose results, are in the session before the next thing happens. The SDK's
// runner stores a turn when it is over.

import { RethreadError } from '../../error.js';
import { INTERRUPTED } from '../interrupted.js';
import { asStored } from '../message-record.js';
import { ToolRun } from '../tool-run.js';
import { RUN } from './history.js';
import { resultItem } from './items.js';
import { hasOpenCalls } from './pairs.js';
import { storedItem } from './run-items.js';
import { RunsOfSession } from './run-sessions.js';

const isAgent = (value) => typeof value?.clone === 'function' && Array.isArray(value.tools);

class DurableModel {
  #model;
  #session;
  #isGuarded;

  constructor(model, session, isGuarded) {
    this.#model = model;
    this.#session = session;
    this.#isGuarded = isGuarded;
    if (model.supportsPromptModelSelection) this.supportsPromptModelSelection = true;
    if (model.getRetryAdvice) this.getRetryAdvice = (args) => model.getRetryAdvice(args);
  }

  async getResponse(request) {
    const input = await this.#storeInput(request);
    const response = await this.#model.getResponse(request);
    await this.#storeAnswer(input, response.output);
    return response;
  }

  async *getStreamedResponse(request) {
    const input = await this.#storeInput(request);
    for await (const event of this.#model.getStreamedResponse(request)) {
      if (event.type === 'response_done') await this.#storeAnswer(input, event.response.output);
      yield event;
    }
  }

  /** Stores what is new in the input. What a guardrail may still reject waits for the answer. */
  async #storeInput({ input }) {
    const items = typeof input === 'string' ? [{ type: 'message', role: 'user', content: input }] : input;
    if (this.#isGuarded) return items;
    await this.#store(items, []);
    return [];
  }

  /** An answer without calls is the runner's to store: a guardrail may reject it. */
  async #storeAnswer(input, output) {
    if (hasOpenCalls(output)) await this.#store(input, output);
  }

  async #store(input, output) {
    const { store } = this.#session;
    await store.queued(async () => {
      const run = this.#session.runOf();
      const known = (await store.read()).items;
      const items = asStored([...run.unstored(asStored(input), known), ...output.map(storedItem)]);
      await store.change(async (history) => {
        await store.completeAnswered(history, items);
        return history.retold(items, store.executed) ?? history.appended(history.sourced(items, RUN));
      });
      run.addEarly(items);
    });
  }
}

/** Stores that the call starts, in an append that fails if another process was first. If the call has started already,
 *  returns the execution that is under way in this process, or its outcome, as `known`. */
async function begin(session, { callId }, own) {
  const { store } = session;
  const id = await session.getSessionId();
  const decide = async (history) => {
    own.release();
    const call = history.call(callId);
    const key = JSON.stringify([id, call?.invocation]);
    if (call && !call.result && !history.started.has(callId) && !ToolRun.under(key)) {
      const damage = await store.completeStarts(history, ({ invocation }) => invocation === call.invocation);
      if (damage) throw damage;
    }
    const known = call && ToolRun.under(key);
    if (known) return { messages: [], known };
    const outcome = call?.result ? call.result.content : INTERRUPTED;
    if (call?.result || history.started.has(callId)) return { messages: [], known: { outcome } };
    if (call) own.claim(key);
    return { messages: history.starting(callId), invocation: call?.invocation };
  };
  return (await store.queued(() => store.change(decide))).made;
}

/** The text of an output, as the runner writes it; undefined for what it writes in another way. */
function textOf(output) {
  if (typeof output === 'string') return output;
  if (typeof output !== 'object' || output === null || Array.isArray(output) || 'type' in output) return undefined;
  return JSON.stringify(output);
}

/** Stores the result of a call, in the form in which the runner will store it. Of another form it is the runner's to
 *  store; until then the call may have run. Where another process has stored that it was interrupted, it takes that
 *  one's place. */
function end(session, run, { call: { callId, name, namespace, caller }, invocation }, text) {
  const { store } = session;
  const more = { ...(typeof namespace === 'string' && { namespace }), ...(caller && { caller }) };
  return store.queued(async () => {
    const item = { ...resultItem({ callId, name, result: { content: text } }), ...more };
    const { made } = await store.change((history) => {
      const call = history.call(callId);
      if (call?.result?.content === INTERRUPTED) return { ...history.answered(item), early: [] };
      // Without its call the result would be no part of the history: the run has no session, or another branch has it.
      if (!call) return { messages: [], early: [], isElsewhere: true, item };
      if (call.result !== null) return { messages: [], early: [] };
      return { ...history.appended(history.sourced([item], RUN)), early: [item] };
    });
    run.addEarly(made.early);
    if (made.isElsewhere && invocation) await store.answerElsewhere(invocation, made.item, text);
  });
}

/** Executes the tool, unless it has been started. */
async function invokeOnce(session, own, { run, call, invoke, isGuarded }) {
  const { known, invocation } = await begin(session, call, own);
  if (known) return known.outcome;
  const output = await invoke();
  const text = isGuarded ? undefined : textOf(output);
  if (text !== undefined) await end(session, run, { call, invocation }, text);
  return output;
}

function durableTool(tool, session, runs) {
  if (tool?.type !== 'function' || typeof tool.invoke !== 'function') return tool;
  // A guardrail may replace the output.
  const isGuarded = tool.outputGuardrails?.length > 0;
  const invoke = async (runContext, input, details) => {
    const call = details?.toolCall;
    if (typeof call?.callId !== 'string') return tool.invoke(runContext, input, details);
    await runs.check(runContext, call.callId);
    const run = session.runOf(runContext);
    const original = () => tool.invoke(runContext, input, details);
    return new ToolRun().perform((own) => invokeOnce(session, own, { run, call, invoke: original, isGuarded }));
  };
  return { ...tool, invoke };
}

/** Resolves a model by name when it is asked first. */
class NamedModel {
  #provider;
  #name;
  #model;

  constructor(provider, name) {
    this.#provider = provider;
    this.#name = name;
  }

  async getResponse(request) {
    return (await this.#resolve()).getResponse(request);
  }

  async *getStreamedResponse(request) {
    yield* (await this.#resolve()).getStreamedResponse(request);
  }

  async getRetryAdvice(args) {
    return (await this.#resolve()).getRetryAdvice?.(args);
  }

  #resolve() {
    this.#model ??= Promise.resolve(this.#provider.getModel(this.#name || undefined));
    return this.#model;
  }
}

function modelOf(agent, provider) {
  if (typeof agent.model === 'object' && agent.model !== null) return agent.model;
  if (typeof provider?.getModel === 'function') return new NamedModel(provider, agent.model);
  throw new RethreadError(
    'config_invalid',
    `the agent ${agent.name} has a model's name: pass { modelProvider: new OpenAIProvider() }, or give the agent a Model`,
  );
}

/** @param {any} agent @param {import('./session.js').AgentsSession} session @param {{ modelProvider?: any }} [options] */
export function durableAgent(agent, session, options) {
  const copies = new Map();
  const runs = new RunsOfSession(session);
  const durable = (original) => {
    const known = copies.get(original);
    if (known) return known;
    const copy = original.clone({ handoffs: [] });
    copies.set(original, copy);
    copy.model = new DurableModel(
      modelOf(original, options?.modelProvider),
      session,
      original.inputGuardrails.length > 0,
    );
    // A model is not told which run asks it; a run that goes on from a state may read no items before.
    const systemPrompt = copy.getSystemPrompt.bind(copy);
    copy.on('agent_start', (runContext, _agent, input) => runs.hasBegun(runContext, input));
    copy.getSystemPrompt = async (runContext) => {
      await runs.check(runContext);
      session.runOf(runContext);
      return systemPrompt(runContext);
    };
    copy.tools = original.tools.map((tool) => durableTool(tool, session, runs));
    copy.handoffs = original.handoffs.map((handoff) => (isAgent(handoff) ? durable(handoff) : handoff));
    return copy;
  };
  if (!isAgent(agent)) throw new RethreadError('config_invalid', '`durable` takes an Agent of @openai/agents');
  return durable(agent);
}
