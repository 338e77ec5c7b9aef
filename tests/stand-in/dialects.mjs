// Each dialect: the rules and the wire of each, and the addresses that speak it.

import * as anthropicRules from './rules-anthropic.mjs';
import * as bedrockRules from './rules-bedrock.mjs';
import * as geminiRules from './rules-gemini.mjs';
import * as geminiInteractionsRules from './rules-gemini-interactions.mjs';
import * as mistralConversationsRules from './rules-mistral-conversations.mjs';
import * as mistralRules from './rules-mistral.mjs';
import * as chatRules from './rules-openai-chat.mjs';
import * as responsesRules from './rules-openai-responses.mjs';
import * as anthropicWire from './wire-anthropic.mjs';
import * as bedrockWire from './wire-bedrock.mjs';
import * as geminiWire from './wire-gemini.mjs';
import * as geminiInteractionsWire from './wire-gemini-interactions.mjs';
import * as mistralConversationsWire from './wire-mistral-conversations.mjs';
import * as mistralWire from './wire-mistral.mjs';
import * as chatWire from './wire-openai-chat.mjs';
import * as responsesWire from './wire-openai-responses.mjs';

export const DIALECTS = {
  'openai-chat': { check: chatRules.check, wire: chatWire, requestId: 'x-request-id' },
  'openai-responses': { check: responsesRules.check, wire: responsesWire, requestId: 'x-request-id' },
  anthropic: { check: anthropicRules.check, wire: anthropicWire, requestId: 'request-id' },
  gemini: { check: geminiRules.check, wire: geminiWire, requestId: 'x-request-id' },
  mistral: { check: mistralRules.check, wire: mistralWire, requestId: 'x-request-id' },
  bedrock: { check: bedrockRules.check, wire: bedrockWire, requestId: 'x-amzn-requestid' },
  'mistral-conversations': {
    check: mistralConversationsRules.check,
    wire: mistralConversationsWire,
    requestId: 'x-request-id',
  },
  'gemini-interactions': {
    check: geminiInteractionsRules.check,
    wire: geminiInteractionsWire,
    requestId: 'x-request-id',
  },
};

/** Mistral's path is OpenAI's, so its own begins with /mistral. Azure and the compatible servers have paths of their
 *  own. */
const ADDRESSES = [
  [/^mistral\/v1\/chat\/completions$/, 'mistral'],
  [/^mistral\/v1\/conversations(?:\/[^/]+(?:\/restart)?)?$/, 'mistral-conversations'],
  [/^(?:(?:openai|api)\/)?v1\/chat\/completions$|^openai\/deployments\/[^/]+\/chat\/completions$/, 'openai-chat'],
  [/^(?:openai\/)?v1\/responses$/, 'openai-responses'],
  [
    /^v1\/messages$|^v1\/projects\/[^/]+\/locations\/[^/]+\/publishers\/anthropic\/models\/[^/]+:(?:streamR|r)awPredict$/,
    'anthropic',
  ],
  [
    /^v1(?:alpha|beta1?)?\/(?:projects\/[^/]+\/locations\/[^/]+\/publishers\/google\/)?models\/([^/]+):(generateContent|streamGenerateContent)$/,
    'gemini',
  ],
  [/^v1(?:alpha|beta1?)?\/interactions$/, 'gemini-interactions'],
  [/^model\/([^/]+)\/(converse|converse-stream)$/, 'bedrock'],
];

/** {dialect, vertex?, model?, stream?, sse?} of a path without its lane, or null. What is not given stands in the
 *  body. */
export function addressOf(path, query) {
  const found = ADDRESSES.map(([pattern, dialect]) => [pattern.exec(path), dialect]).find(([match]) => match);
  if (!found) return null;
  const [[, model, method], dialect] = found;
  if (dialect === 'bedrock') return { dialect, model: decodeURIComponent(model), stream: method === 'converse-stream' };
  if (dialect !== 'gemini') return { dialect, vertex: path.includes('/publishers/') };
  return {
    dialect,
    model: decodeURIComponent(model),
    stream: method === 'streamGenerateContent',
    sse: query.get('alt') === 'sse',
  };
}
