// How TanStack's messages are written.

import { RethreadError } from '../../error.js';
import { ArrivingAnswers } from '../arriving-answers.js';
import { isObject, plain, without } from '../plain.js';
import { unwrittenPart, writtenPart } from './parts.js';
import { isCall, isResult } from './tools.js';

const NAME = 'rethread/tanstack-ai';
const ROLES = ['system', 'user', 'assistant'];

export const arriving = new ArrivingAnswers(NAME);

/** The key of `session.state` that has the resume snapshot. */
export const RESUME = `${NAME}:resume`;

const timeOf = ({ createdAt }) => (typeof createdAt === 'string' ? Date.parse(createdAt) : Number.NaN);

/** What the stored message cannot have. */
function ownMembers(message) {
  const extra = without(message, 'id', 'role', 'parts', 'metadata', 'createdAt');
  return {
    ...(Object.keys(extra).length ? { extra } : {}),
    ...(message.metadata === null ? { metadata: null } : {}),
    ...(Number.isNaN(timeOf(message)) ? { undated: true } : {}),
  };
}

function storedMembers(message) {
  const { metadata } = message;
  const createdAt = timeOf(message);
  return {
    ...(Number.isNaN(createdAt) ? {} : { createdAt }),
    ...(metadata === undefined || metadata === null ? {} : { metadata }),
  };
}

/** An answer ends at what the model wrote after a result. */
function beginsAnswer(_part, neutral, { isAnswered, parts }) {
  if (neutral === undefined) return false;
  return parts.some(isResult) || (isAnswered && neutral.type !== 'tool');
}

/** @type {import('../marks.js').MarkFormat} */
export const FORMAT = {
  name: NAME,
  writtenPart,
  unwrittenPart,
  beginsAnswer,
  ownMembers,
  storedMembers,
  isBegunCall: () => false,
};

function invalid(what) {
  return new RethreadError('invalid_input', `this is no state of a chat: ${what}`);
}

/** A plain copy of a message. Times are texts in it. */
export function checkedMessage(message) {
  const isPart = (part) => isObject(part) && typeof part.type === 'string';
  if (!isObject(message) || typeof message.id !== 'string' || !ROLES.includes(message.role))
    throw invalid('each message has an `id` and a `role`, which is "system", "user" or "assistant"');
  if (!Array.isArray(message.parts) || !message.parts.every(isPart))
    throw invalid(`\`parts\` of the message ${message.id} is a list of objects with a \`type\``);
  try {
    return plain(message);
  } catch (cause) {
    throw new RethreadError('invalid_input', `the message ${message.id} cannot be written as JSON`, {}, { cause });
  }
}

/** The messages of a state. */
export function checkedState(state) {
  if (!isObject(state) || !Array.isArray(state.messages)) throw invalid('`messages` is a list');
  for (const message of state.messages) if (!isObject(message)) throw invalid('a message is an object');
  return state;
}

/** True if the run is under way that the snapshot names: it does not wait for an answer of the user. */
export const isRunning = (resume) => isObject(resume) && !resume.pendingInterrupts?.length;

export { isCall, isResult };
