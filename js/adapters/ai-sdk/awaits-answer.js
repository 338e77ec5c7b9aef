// Whether a stored chat waits for an answer of the model.

import { RethreadError } from '../../error.js';
import { readMessages } from '../session-messages.js';
import { heldAnswer, isUnderWay } from './answer-hold.js';
import { loadUIMessages } from './load.js';
import { arriving } from './marks.js';
import { readEntries } from './read.js';
import { isToolPart, nameOf } from './tools.js';
import { liveAnswerOf } from './under-way.js';
import { checkSession } from './session-argument.js';

/** Statuses of an answer that others than the model have ended. */
const CUT = ['stopped', 'failed', 'streaming'];

/** True for parts that are no content of an answer. */
const isAside = ({ type }) => type === 'step-start' || type.startsWith('source-') || type.startsWith('data-');

/** True if the call waits for a person, or for the application: it has the tools without `execute`. */
function waitsElsewhere(part, tools) {
  if (part.state === 'approval-requested') return true;
  const name = nameOf(part);
  const isOfApplication = Object.hasOwn(tools, name) && typeof tools[name]?.execute !== 'function';
  return part.state === 'input-available' && part.providerExecuted !== true && isOfApplication;
}

/** True for the result of a tool of the provider, whose model goes on in the same answer, or is done. */
const isProvidersResult = (part) =>
  part.providerExecuted === true && part.state.startsWith('output-') && part.preliminary !== true;

/** The parts of the last step that has content. */
function lastStep(parts) {
  const end = parts.findLastIndex((part) => !isAside(part)) + 1;
  const before = parts.slice(0, end);
  return before.slice(before.findLastIndex(({ type }) => type === 'step-start') + 1);
}

/** True if the model gets the result of a call of the step in its next request. */
const hasCallToTell = (step) => step.some((part) => isToolPart(part) && !isProvidersResult(part));

function isUnanswered({ parts }, tools, isCut) {
  if (parts.some((part) => isToolPart(part) && waitsElsewhere(part, tools))) return false;
  const step = lastStep(parts);
  const last = step.at(-1);
  if (!last || last.type === 'reasoning') return true;
  return isCut || (isToolPart(last) ? hasCallToTell(step) : last.state === 'streaming');
}

/** @type {typeof import('../ai-sdk.d.ts').awaitsAnswer} */
export async function awaitsAnswer(session, { tools = {}, ...options } = {}) {
  checkSession(session, 'awaitsAnswer');
  const [unknown] = Object.keys(options);
  if (unknown !== undefined) throw new RethreadError('config_invalid', `\`awaitsAnswer\` has no option ${unknown}`);
  const last = (await loadUIMessages(session)).at(-1);
  if (liveAnswerOf(session) || isUnderWay(heldAnswer(session))) return false;
  if (last?.role !== 'assistant') return last?.role === 'user';
  const { messages } = await readMessages(session);
  const entries = readEntries(messages);
  const isCut = CUT.includes(entries.at(-1)?.status ?? '') || arriving.cut(session, entries, messages) !== undefined;
  return isUnanswered(last, tools, isCut);
}
