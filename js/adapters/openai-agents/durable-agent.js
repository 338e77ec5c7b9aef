// An agent whose answers with calls, and whose results, are in the session before the next thing happens. The SDK's
// runner stores a turn when it is over.

import { RethreadError } from '../../error.js';
import { INTERRUPTED } from '../interrupted.js';
import { asStored } from '../message-record.js';
import { resultItem } from './items.js';
import { storedItem } from './run-items.js';

const isAgent = (value) => typeof value?.clone === 'function' && Array.isArray(value.tools);
const hasCalls = (items) => items.some(({ type }) => type === 'function_call');

/** The calls whose tools run in this process. */
const running = new Set();

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
    if (hasCalls(output)) await this.#store(input, output);
  }

  async #store(input, output) {
    const { store } = this.#session;
    await store.inTurn(async () => {
      const run = this.#session.runOf();
      const known = (await store.read()).items;
      const items = asStored([...run.unstored(asStored(input), known), ...output.map(storedItem)]);
      await store.change((history) => ({ messages: items.length ? history.appended(items) : [] }));
      run.addEarly(items);
    });
  }
}

/** Stores that the call starts. Returns the result that it has already: of an earlier process, which may have died in
 *  it. */
function begin(session, { callId }) {
  const { store } = session;
  return store.inTurn(async () => {
    const history = await store.read();
    const result = history.calls.get(callId)?.result ?? null;
    if (result !== null) return result.content;
    if (history.started.has(callId) && !running.has(callId)) return INTERRUPTED;
    running.add(callId);
    await store.setStarted((started) => started.add(callId));
    await store.save();
    return undefined;
  });
}

/** The text of an output, as the runner writes it; undefined for what it writes in another way. */
function textOf(output) {
  if (typeof output === 'string') return output;
  if (typeof output !== 'object' || output === null || Array.isArray(output) || 'type' in output) return undefined;
  return JSON.stringify(output);
}

/** Stores the result of a call, in the form in which the runner will store it. Of another form it is the runner's to
 *  store; until then the call may have run. */
function end(session, run, { callId, name, namespace, caller }, text) {
  const { store } = session;
  const more = { ...(typeof namespace === 'string' && { namespace }), ...(caller && { caller }) };
  return store.inTurn(async () => {
    const item = { ...resultItem({ callId, name, result: { content: text } }), ...more };
    const history = await store.read();
    if (history.calls.has(callId) && !history.openCalls.has(callId)) return;
    await store.setStarted((started) => started.delete(callId));
    // Without its call the result would be no part of the history: the run has no session.
    if (!history.calls.has(callId)) return;
    await store.change((newest) => ({ messages: newest.appended([item]) }));
    run.addEarly([item]);
  });
}

function durableTool(tool, session) {
  if (tool?.type !== 'function' || typeof tool.invoke !== 'function') return tool;
  // A guardrail may replace the output.
  const isGuarded = tool.outputGuardrails?.length > 0;
  const invoke = async (runContext, input, details) => {
    const call = details?.toolCall;
    if (typeof call?.callId !== 'string') return tool.invoke(runContext, input, details);
    const run = session.runOf(runContext);
    const known = await begin(session, call);
    if (known !== undefined) return known;
    try {
      const output = await tool.invoke(runContext, input, details);
      const text = isGuarded ? undefined : textOf(output);
      if (text !== undefined) await end(session, run, call, text);
      return output;
    } finally {
      running.delete(call.callId);
    }
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
    copy.tools = original.tools.map((tool) => durableTool(tool, session));
    copy.handoffs = original.handoffs.map((handoff) => (isAgent(handoff) ? durable(handoff) : handoff));
    return copy;
  };
  if (!isAgent(agent)) throw new RethreadError('config_invalid', '`durable` takes an Agent of @openai/agents');
  return durable(agent);
}
