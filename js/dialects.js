// The dialects, for code that must know them before the wasm is loaded.

/**
 * The member of a request body that contains the conversation, by dialect.
 *
 * @satisfies {Record<import('./types.js').Dialect, string>}
 */
export const CONVERSATION_MEMBERS = {
  'openai-chat': 'messages', 'openai-responses': 'input', anthropic: 'messages', gemini: 'contents', mistral: 'messages',
};
export const DIALECTS = Object.keys(CONVERSATION_MEMBERS);
