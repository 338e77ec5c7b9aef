// UI messages as messages for `append`.

import { RethreadError } from '../../error.js';
import { newMessages } from '../marked-messages.js';
import { isObject, plain } from '../plain.js';
import { FORMAT } from './format.js';
import { carriedPart } from './parts.js';

const ROLES = ['system', 'user', 'assistant'];

function invalid(at, what) {
  return new RethreadError('invalid_input', `message ${at} is no UI message: ${what}`);
}

/** What a message without `parts` is, as far as it is known. */
function adviceFor({ id, role, content }) {
  const isModelMessage = Array.isArray(content) || (typeof content === 'string' && id === undefined);
  if (role === 'tool' || isModelMessage) return 'convert model messages with `fromModelMessages` of "rethread/ai-sdk"';
  return '`parts` is a list of objects with a `type`; convert messages of `ai` 4 first';
}

/** A plain copy of a UI message, with the parts that other parts carry. */
function checked(message, at) {
  if (!isObject(message)) throw invalid(at, 'it is no object');
  const { role, parts } = message;
  if (parts === undefined && role === 'tool') throw invalid(at, adviceFor(message));
  if (!ROLES.includes(role)) throw invalid(at, 'its `role` is "system", "user" or "assistant"');
  const isPart = (part) => isObject(part) && typeof part.type === 'string';
  if (!Array.isArray(parts) || !parts.every(isPart)) throw invalid(at, adviceFor(message));
  return { ...message, parts: parts.map(carriedPart) };
}

/** Plain copies of UI messages. */
export function checkedMessages(messages) {
  let copy;
  try {
    copy = plain(messages);
  } catch (cause) {
    throw new RethreadError('invalid_input', 'the UI messages cannot be written as JSON', {}, { cause });
  }
  if (!Array.isArray(copy)) throw new RethreadError('invalid_input', 'UI messages are a list');
  return copy.map(checked);
}

/** @type {typeof import('../ai-sdk.d.ts').fromUIMessages} */
export function fromUIMessages(messages) {
  const ids = new Set();
  return checkedMessages(messages).flatMap((message) => {
    const isFree = typeof message.id === 'string' && message.id !== '' && !ids.has(message.id);
    ids.add(message.id);
    return newMessages(FORMAT, message, isFree ? message.id : undefined);
  });
}
