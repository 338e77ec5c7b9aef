// The dialects, for code that must know them before the wasm is loaded.
// Made from spec.rs and recognition.rs of src/provider/*. Do not edit: `BLESS=1 cargo test --no-default-features --lib r65_` writes it.

/**
 * The member of a request body that contains the conversation, by dialect.
 *
 * @satisfies {Record<import('./types.js').Dialect, string>}
 */
export const CONVERSATION_MEMBERS = {
  'openai-chat': 'messages',
  'openai-responses': 'input',
  anthropic: 'messages',
  gemini: 'contents',
  mistral: 'messages',
  bedrock: 'messages',
  'mistral-conversations': 'inputs',
  'gemini-interactions': 'input',
};
export const DIALECTS = Object.keys(CONVERSATION_MEMBERS);

/**
 * The statuses of an answer that refuses a request, by dialect. Only such a request is healed.
 *
 * @satisfies {Record<import('./types.js').Dialect, number[]>}
 */
export const REFUSAL_STATUSES = {
  'openai-chat': [400],
  'openai-responses': [400],
  anthropic: [400],
  gemini: [400],
  mistral: [400],
  bedrock: [400],
  'mistral-conversations': [400, 422],
  'gemini-interactions': [400],
};

/** Members that contain a part of the conversation outside of that list. */
export const SYSTEM_MEMBERS = ['instructions', 'system', 'systemInstruction', 'system_instruction'];

/**
 * Paths of chat endpoints, most specific first, each with its dialect and the domain that it counts in. A group is
 * the model.
 *
 * @type {[RegExp, import('./types.js').Dialect, string?][]}
 */
export const CHAT_PATHS = [
  [/\/v1\/(?:chat|agents)\/completions$/, 'mistral', 'mistral.ai'],
  [/\/mistral\/v1\/chat\/completions$/, 'mistral'],
  [/\/publishers\/mistralai\/models\/([^/:]+):(?:streamR|r)awPredict$/, 'mistral'],
  [/\/chat\/completions$/, 'openai-chat'],
  [/\/responses$/, 'openai-responses'],
  [/\/(?:v1|anthropic)\/messages$/, 'anthropic'],
  [/\/publishers\/anthropic\/models\/(?!count-tokens:)([^/:]+):(?:streamR|r)awPredict$/, 'anthropic'],
  [/\/model\/((?:[\w-]+\.)?anthropic\.[^/]+)\/invoke(?:-with-response-stream)?$/, 'anthropic'],
  [/\/(?:models|tunedModels|endpoints)\/([^/:]+):(?:generateContent|streamGenerateContent)$/, 'gemini'],
  [/\/model\/([^/]+)\/converse(?:-stream)?$/, 'bedrock'],
  [/\/v1\/conversations(?:\/[^/]+(?:\/restart)?)?$/, 'mistral-conversations', 'mistral.ai'],
  [/\/v\d\w*\/(?:projects\/[^/]+\/locations\/[^/]+\/)?interactions$/, 'gemini-interactions'],
];
