// How UI messages are written.

import { without } from '../plain.js';
import { MARK } from './marks.js';
import { writtenPart } from './parts.js';
import { isToolPart } from './tools.js';

/** What the stored message cannot have of a UI message. */
function ownMembers(message) {
  const extra = without(message, 'id', 'role', 'parts', 'metadata');
  return {
    ...(Object.keys(extra).length ? { extra } : {}),
    ...(message.metadata === null ? { metadata: null } : {}),
  };
}

/** An answer ends at the next step, or at what the model wrote after a result. */
function beginsAnswer(part, neutral, { role, isAnswered }) {
  if (part.type === 'step-start' && role === 'assistant') return true;
  return isAnswered && neutral !== undefined && neutral.type !== 'tool' && neutral.type !== 'data';
}

/** @type {import('../marks.js').MarkFormat} */
export const FORMAT = {
  name: MARK,
  writtenPart,
  unwrittenPart: (part) => ({ part }),
  beginsAnswer,
  ownMembers,
  storedMembers: ({ metadata }) => (metadata === undefined || metadata === null ? {} : { metadata }),
  isBegunCall: (part, callId) => isToolPart(part) && part.state === 'input-streaming' && part.toolCallId === callId,
};
