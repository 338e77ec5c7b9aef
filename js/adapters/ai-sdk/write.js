// UI messages as messages for `append`.

import { RethreadError } from '../../error.js';
import { mark } from './marks.js';
import { carriedPart, writtenPart } from './parts.js';
import { isObject, plain, without } from './plain.js';

const ROLES = ['system', 'user', 'assistant'];

function invalid(at, what) {
  return new RethreadError('invalid_input', `message ${at} is no UI message: ${what}`);
}

/** A plain copy of a UI message, with the parts that other parts carry. */
function checked(message, at) {
  if (!isObject(message)) throw invalid(at, 'it is no object');
  const { role, parts } = message;
  if (!ROLES.includes(role)) throw invalid(at, 'its `role` is "system", "user" or "assistant"');
  const isPart = (part) => isObject(part) && typeof part.type === 'string';
  if (!Array.isArray(parts) || !parts.every(isPart))
    throw invalid(at, '`parts` is a list of objects with a `type`; convert messages of `ai` 4 first');
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

/**
 * The parts of a UI message as lists, of which each is a stored message: one answer of the model, up to the next step
 * or to what the model wrote after a result.
 */
function answersOf(parts, role) {
  const answers = [/** @type {any[]} */ ([])];
  let [hasContent, isAnswered] = [false, false];
  const begin = () => {
    answers.push([]);
    [hasContent, isAnswered] = [false, false];
  };
  for (const part of parts) {
    if (part.type === 'step-start' && role === 'assistant' && hasContent) begin();
    const written = writtenPart(part, role);
    if (!written) {
      answers.at(-1)?.push(mark({ part }));
      continue;
    }
    const { neutral, kept } = written;
    const [isCall, isData] = [neutral.type === 'tool', neutral.type === 'data'];
    if (isAnswered && !isCall && !isData) begin();
    answers.at(-1)?.push(neutral, ...(kept ? [mark(kept)] : []));
    hasContent ||= !isData;
    isAnswered ||= isCall && neutral.result !== undefined;
  }
  return answers;
}

/** What the stored message cannot have of a UI message. */
function headOf(message, id) {
  const extra = without(message, 'id', 'role', 'parts', 'metadata');
  return {
    ...(message.id === id ? {} : { id: message.id }),
    ...(Object.keys(extra).length ? { extra } : {}),
    ...(message.metadata === null ? { metadata: null } : {}),
  };
}

const metadataOf = ({ metadata }) => (metadata === undefined || metadata === null ? {} : { metadata });

/** A UI message that is not stored yet, as messages for `append`. `id`: that of the first one, if it is not taken. */
export function newMessages(message, id) {
  const { role } = message;
  return answersOf(message.parts, role).map((parts, at) => {
    if (at) return { role, parts: [mark({ of: message.id }), ...parts] };
    const head = headOf(message, id);
    const own = Object.keys(head).length ? [mark(head), ...parts] : parts;
    return { ...(id === undefined ? {} : { id }), role, ...metadataOf(message), parts: own };
  });
}

/**
 * What continues a stored UI message, as messages for `append`.
 *
 * @param {{ id: string, role: string }} message
 * @param {{ changes?: any[], parts?: any[], metadata?: any }} more `changes` are neutral parts and marks of parts
 *   that are stored.
 */
export function continuation({ id, role }, { changes = [], parts = [], metadata = undefined }) {
  const answers = answersOf(parts, role);
  if (!answers[0].length) answers.shift();
  if (changes.length || !answers.length) answers.unshift(changes);
  return answers.map((own, at) => ({
    role,
    ...(at ? {} : metadataOf({ metadata })),
    parts: [mark({ of: id }), ...own],
  }));
}

/** @type {typeof import('../ai-sdk.d.ts').fromUIMessages} */
export function fromUIMessages(messages) {
  const ids = new Set();
  return checkedMessages(messages).flatMap((message) => {
    const isFree = typeof message.id === 'string' && message.id !== '' && !ids.has(message.id);
    ids.add(message.id);
    return newMessages(message, isFree ? message.id : undefined);
  });
}
