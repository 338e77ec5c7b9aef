// Whether values are items of the Agents SDK. Messages of another format would be stored, and come back without their
// calls.

import { RethreadError } from '../../error.js';
import { asStored } from '../message-record.js';
import { isPaired } from './pairs.js';

const ADVICE = {
  chat: 'append them with `session.append({ messages }, "openai-chat")`',
  anthropic: 'append them with `session.append({ messages }, "anthropic")`',
  responses: 'append them with `session.append({ input }, "openai-responses")`',
  ui: 'append them with `session.append(fromUIMessages(messages))` of "rethread/ai-sdk"',
  own: 'append them with `session.append(messages)`',
  unknown: 'an item has a `type`, or is a message of the role "user", "assistant" or "system"',
};

const contentTypes = ({ content }) => (Array.isArray(content) ? content.map((part) => part?.type) : []);

/** The format that a message has which is none of the SDK's. @returns {[string, string] | null} name and advice */
function formatOfMessage(item) {
  if (Array.isArray(item.parts)) {
    const isStored = item.parts.some((part) => part?.type === 'tool' || part?.type === 'tool_call');
    return isStored ? ['a message of this session', ADVICE.own] : ['a UIMessage of the AI SDK', ADVICE.ui];
  }
  const types = contentTypes(item);
  if (types.includes('tool_use') || types.includes('tool_result')) return ['a message of Anthropic', ADVICE.anthropic];
  const isChat =
    'tool_calls' in item || 'tool_call_id' in item || types.includes('text') || types.includes('image_url');
  const isForeign = isChat || (item.role === 'assistant' && typeof item.content === 'string');
  if (isForeign || ['tool', 'developer', 'function'].includes(item.role))
    return ['a message of OpenAI Chat Completions', ADVICE.chat];
  return ['user', 'assistant', 'system'].includes(item.role) ? null : ['no message of the SDK', ADVICE.unknown];
}

/** @returns {[string, string] | null} */
function foreignFormat(item) {
  if (item.type === undefined || item.type === 'message') return formatOfMessage(item);
  if (typeof item.type !== 'string') return ['no item', ADVICE.unknown];
  // Only the search for tools keeps the service's own name of it.
  if ('call_id' in item && !item.type.startsWith('tool_search_'))
    return ['an item of the Responses API', ADVICE.responses];
  return isPaired(item) && typeof item.callId !== 'string' ? ['an item without `callId`', ADVICE.unknown] : null;
}

const invalid = (message) => new RethreadError('invalid_input', message);

/** Returns the items as they are stored. @param {any} items @param {string} what */
export function checkedItems(items, what) {
  if (!Array.isArray(items) || items.some((item) => typeof item !== 'object' || item === null))
    throw invalid(`${what} must be a list of items`);
  for (const [at, item] of items.entries()) {
    const [format, advice] = foreignFormat(item) ?? [];
    if (format) throw invalid(`${what}: [${at}] is ${format}, not an item of the OpenAI Agents SDK: ${advice}`);
  }
  return asStored(items);
}
