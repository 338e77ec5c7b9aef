// What the tests of `rethread/openai-agents` share: items, a model that answers from a list, a tool, other processes.

import { tool, Usage } from '@openai/agents';
import { open } from 'rethread';
import { agentsSession } from 'rethread/openai-agents';

export const user = (content) => ({ type: 'message', role: 'user', content });
export const said = (text, more) => ({
  type: 'message',
  role: 'assistant',
  status: 'completed',
  content: [{ type: 'output_text', text }],
  ...more,
});
export const call = (callId, more) => ({
  type: 'function_call',
  callId,
  name: 'look',
  status: 'completed',
  arguments: '{}',
  ...more,
});
export const result = (callId, output = { type: 'text', text: `result of ${callId}` }) => ({
  type: 'function_call_result',
  name: 'look',
  callId,
  status: 'completed',
  output,
});
export async function newSession() {
  const store = await open();
  const session = await store.session('chat');
  return { session, agents: agentsSession(session) };
}

/** The session as another process has it. `before` is awaited before each append. */
export function elsewhere(session, before = async () => {}) {
  return new Proxy(session, {
    get(target, name) {
      const member = target[name];
      if (name === 'id') return `${member} elsewhere`;
      if (typeof member !== 'function') return member;
      if (name !== 'append') return member.bind(target);
      return async (...args) => {
        await before(args[0]);
        return target.append(...args);
      };
    },
  });
}

/** The session, of which somebody else is first when it appends for the first time. */
export function beaten(session, first) {
  let isFirst = true;
  return elsewhere(session, async () => {
    if (!isFirst) return;
    isFirst = false;
    await first();
  });
}

/** Answers with the next outputs; an error is thrown. */
export class ScriptedModel {
  requests = [];
  constructor(answers) {
    this.answers = [...answers];
  }
  async getResponse({ input }) {
    this.requests.push(structuredClone(input));
    const output = this.answers.shift();
    if (output instanceof Error) throw output;
    return { usage: new Usage(), output, responseId: 'resp_1' };
  }
  async *getStreamedResponse(request) {
    const response = await this.getResponse(request);
    yield { type: 'response_done', response: { id: 'resp_1', usage: {}, ...response } };
  }
}

export function lookTool(ran, more) {
  return tool({
    name: 'look',
    description: '',
    strict: true,
    parameters: { type: 'object', properties: {}, required: [], additionalProperties: false },
    execute: async () => {
      ran.push('look');
      return 'seen';
    },
    ...more,
  });
}
