// The parts of a UI message as neutral parts, and back.

import { filePart, neutralFile } from './files.js';
import { MARK } from './marks.js';
import { isSame, without } from '../plain.js';
import { isToolPart, neutralCall, restOfCall, toolPart } from './tools.js';

const DATA = 'data-';
/** The part that carries one which the reader's version of `ai` does not know. */
const CARRIER = 'data-rethread-part';
const NEW_IN_7 = ['custom', 'reasoning-file', 'steering-message'];
const OF_6 = ['text', 'reasoning', 'source-url', 'source-document', 'file', 'step-start'];

const isData = ({ type }) => typeof type === 'string' && type.startsWith(DATA);

/** The neutral form of a part and the mark of it; without a neutral form, undefined.
 *  @returns {{ neutral: any, kept: any } | undefined} */
export function neutralOf(part, role) {
  const { type } = part;
  if ((type === 'text' || (type === 'reasoning' && role === 'assistant')) && typeof part.text === 'string')
    return { neutral: { type, text: part.text }, kept: { rest: without(part, 'type', 'text') } };
  if (type === 'file' && role !== 'system') {
    const file = neutralFile(part);
    return file && { neutral: file.neutral, kept: { rest: file.rest } };
  }
  if (isToolPart(part) && role === 'assistant') {
    const neutral = neutralCall(part);
    return neutral && { neutral, kept: restOfCall(part) };
  }
  const name = isData(part) ? type.slice(DATA.length) : '';
  if (!name || name === MARK || !('data' in part)) return undefined;
  return { neutral: { type: 'data', name, value: part.data }, kept: { rest: without(part, 'type', 'data') } };
}

/** The call of a part of `append`, as a view has it. */
const asCall = ({ callId, name, arguments: argumentsText, result, isError = false }) => ({
  callId,
  name,
  argumentsText,
  result: result === undefined ? null : { content: result, isError },
});

/**
 * The neutral form of a part, with the mark that it needs to come back as it is.
 *
 * @returns {{ neutral: any, kept?: any } | undefined} Undefined if the part has none.
 */
export function writtenPart(part, role) {
  const written = neutralOf(part, role);
  if (!written) return undefined;
  const { neutral } = written;
  const stored = neutral.type === 'tool' ? { type: 'tool', call: asCall(neutral) } : neutral;
  return isSame(uiPart(stored, role), part) ? { neutral } : written;
}

/** The part of a neutral one, as a message of the store has it; `kept` is the value of its mark. */
export function uiPart(part, role, kept) {
  switch (part.type) {
    case 'text':
    case 'refusal':
      return { type: 'text', text: part.text, ...(kept?.rest ?? (role === 'assistant' ? { state: 'done' } : {})) };
    case 'reasoning':
      return { type: 'reasoning', text: part.text, ...(kept?.rest ?? { state: 'done' }) };
    case 'image':
    case 'file':
      return filePart(part, kept?.rest);
    case 'data':
      return { type: `${DATA}${part.name}`, ...kept?.rest, data: part.value };
    case 'tool':
      return toolPart(part.call, kept);
    case 'tool_call':
      return part.name === undefined ? undefined : toolPart(part, kept);
    default:
      // Blocks of one dialect are for requests alone.
      return undefined;
  }
}

/** A part that the version of `ai` knows: one of a newer version is carried by a data part. */
export function readablePart(part, version) {
  const known = version === 6 ? OF_6 : [...OF_6, ...NEW_IN_7];
  if (version === undefined || known.includes(part.type) || isData(part) || isToolPart(part)) return part;
  return { type: CARRIER, data: part };
}

/** The part that a data part carries, or the part itself. */
export const carriedPart = (part) =>
  part?.type === CARRIER && typeof part.data?.type === 'string' && part.data.type !== CARRIER ? part.data : part;
