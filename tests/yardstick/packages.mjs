// The libraries that the yardstick measures, with the versions of their packages: the newest on the day of the table.

/** `names` are those of the table, `how` is how the library is used, in two lines. */
export const PEERS = [
  {
    name: 'ai',
    program: 'peers/ai.mjs',
    npm: {
      ai: '7.0.173',
      '@ai-sdk/openai': '4.0.118',
      '@ai-sdk/anthropic': '4.0.105',
      '@ai-sdk/google': '4.0.121',
      '@ai-sdk/mistral': '4.0.87',
      '@ai-sdk/amazon-bedrock': '5.0.101',
      '@ai-sdk/openai-compatible': '3.0.92',
    },
    how: [
      '`generateText({ model, messages, tools })` with `ModelMessage`s and the provider package of each format; for',
      "`openai-chat` models that are not OpenAI's, `@ai-sdk/openai-compatible`. OpenAI's options have `store: false`.",
    ],
  },
  {
    name: '@openai/agents',
    program: 'peers/openai-agents.mjs',
    npm: { '@openai/agents': '0.20.0' },
    how: [
      '`run(agent, question, { session })` with a `MemorySession` that has the history as `AgentInputItem`s, on',
      '`OpenAIResponsesModel` and `OpenAIChatCompletionsModel`. Of other providers it has no models: through `ai` it would be that row.',
    ],
  },
  {
    name: '@langchain/core',
    program: 'peers/langchain.mjs',
    npm: {
      '@langchain/core': '1.4.0',
      '@langchain/openai': '1.6.0',
      '@langchain/anthropic': '1.5.11',
      '@langchain/google': '0.2.6',
      '@langchain/mistralai': '1.2.0',
      '@langchain/aws': '1.4.5',
    },
    how: [
      '`model.bindTools(tools).invoke(messages)` with `HumanMessage`, `AIMessage` and `ToolMessage`, on `ChatOpenAI`',
      '(`useResponsesApi` for Responses), `ChatAnthropic`, `ChatGoogle`, `ChatMistralAI` and `ChatBedrockConverse`.',
    ],
  },
  {
    name: '@tanstack/ai',
    program: 'peers/tanstack-ai.mjs',
    npm: {
      '@tanstack/ai': '0.58.0',
      '@tanstack/ai-openai': '0.23.1',
      '@tanstack/ai-anthropic': '0.18.11',
      '@tanstack/ai-gemini': '0.32.0',
      '@tanstack/ai-mistral': '0.6.7',
    },
    how: [
      '`chat({ adapter, messages, tools, systemPrompts })` with `ModelMessage`s and the adapter package of each format;',
      'tools are server tools. There is no package for Bedrock.',
    ],
  },
  {
    name: 'litellm',
    program: 'peers/litellm_peer.py',
    pip: { litellm: '1.110.2', boto3: '1.44.8' },
    how: [
      "`litellm.completion(model, messages, tools)`, `litellm.responses` for Responses, with messages in OpenAI's format",
      'and `litellm.modify_params = True`, by which its documentation lets it repair messages.',
    ],
  },
  {
    name: 'pydantic-ai',
    program: 'peers/pydantic_ai_peer.py',
    pip: { 'pydantic-ai-slim[openai,anthropic,google,mistral,bedrock]': '2.68.0' },
    how: [
      '`Agent(model, tools).run(question, message_history=…)` with `ModelRequest` and `ModelResponse`, on the model class of',
      'each format; `repair_messages` before a question, as its documentation asks where a call may be open.',
    ],
  },
];

/** This library, of the working tree. */
export const RETHREAD = {
  name: 'rethread',
  how: [
    '`repair(body, dialect)` on the body, and `heal(body, dialect, answer)` after the error of a vector that has one: what',
    '`repairing()` does to each request. It takes bodies, so that it needs no types.',
  ],
};
