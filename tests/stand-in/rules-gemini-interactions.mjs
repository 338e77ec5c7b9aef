// What Gemini's Interactions API refuses. Shares no code with the engine. The schema is that of @google/genai 3.1.0
// (read on 2026-11-28); the pairs of calls and results are those of generateContent, whose sentences the same service
// gives. Not checked, since no body says who made it: that a signed thought precedes each call of the current turn.

import { forged } from './signature.mjs';

const NAME = /^[a-zA-Z0-9_.:-]{1,128}$/;
const CONTENTS = new Set(['text', 'image', 'audio', 'video', 'document']);
const COUNT =
  'Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.';

class Refusal extends Error {}
const refuse = (message) => {
  throw new Refusal(message);
};
const isSet = (v) => v !== undefined && v !== null;
const isObject = (v) => typeof v === 'object' && v !== null && !Array.isArray(v);
const isText = (v) => typeof v === 'string' && v !== '';

export const errorBody = (message, code = 'invalid_request') => ({ error: { message, code } });

/** What the signature of a thought covers. */
export const signed = ({ summary }) => (summary ?? []).map(({ text }) => text ?? '').join('');

function checkContent(content, at) {
  if (!isObject(content)) refuse(`Invalid value at '${at}'`);
  if (content.type === 'function_result' || content.type === 'function_call')
    refuse(`Invalid value at '${at}.type', "${content.type}"`);
  if (content.type === 'text' && typeof content.text !== 'string') refuse(`Invalid value at '${at}.text'`);
}

function checkContents(contents, at) {
  if (!isSet(contents)) return;
  if (!Array.isArray(contents)) refuse(`Invalid value at '${at}'`);
  contents.forEach((content, k) => checkContent(content, `${at}[${k}]`));
}

/** `isOld`: a model before Gemini 3, which takes no list. */
function checkResult(step, at, isOld) {
  const { call_id: id, result } = step;
  if (!isText(id)) refuse(`Invalid value at '${at}.call_id'`);
  if (!isSet(result) || !['string', 'object'].includes(typeof result)) refuse(`Invalid value at '${at}.result'`);
  if (!Array.isArray(result)) return;
  if (isOld) refuse('Request contains an invalid argument.');
  result.forEach((content, k) => checkContent(content, `${at}.result[${k}]`));
}

function checkCall(step, at) {
  if (!isText(step.id)) refuse(`Invalid value at '${at}.id'`);
  if (typeof step.name !== 'string' || !NAME.test(step.name)) refuse(`Invalid function name at '${at}.name'`);
  if (!isObject(step.arguments)) refuse(`Invalid value at '${at}.arguments'`);
}

function checkStep(step, i, isOld) {
  const at = `input[${i}]`;
  if (!isObject(step)) refuse(`Invalid value at '${at}'`);
  if (isSet(step.role)) refuse(`Invalid JSON payload received. Unknown name "role" at '${at}'`);
  if (!isText(step.type)) refuse(`Invalid value at '${at}.type'`);
  if (CONTENTS.has(step.type)) refuse(`Invalid value at '${at}.type', "${step.type}"`);
  switch (step.type) {
    case 'user_input':
    case 'model_output':
      return checkContents(step.content, `${at}.content`);
    case 'thought':
      checkContents(step.summary, `${at}.summary`);
      if (isSet(step.signature) && typeof step.signature !== 'string') refuse(`Invalid value at '${at}.signature'`);
      if (isText(step.signature) && forged(signed(step), step.signature)) refuse('Corrupted thought signature.');
      return;
    case 'function_call':
      return checkCall(step, at);
    case 'function_result':
      return checkResult(step, at, isOld);
    default:
  }
}

/** Results follow the steps of the model that have their calls, one for each. `continues`: Google may have the calls. */
function checkPairs(steps, continues) {
  // Those of all calls so far, and those of the newest answer, which differ.
  const known = new Set();
  let ids = new Set();
  const open = new Set();
  let hasResults = false;
  for (const { type, id, call_id: called } of steps) {
    if (type === 'function_result') {
      hasResults = true;
      if (!open.delete(called) && !(continues && !known.has(called))) refuse(`Function call not found: ${called}`);
      continue;
    }
    if (open.size && (hasResults || type === 'user_input')) refuse(COUNT);
    if (hasResults || type === 'user_input') ids = new Set();
    hasResults = false;
    if (type !== 'function_call') continue;
    if (ids.has(id)) refuse(`Duplicate function call id: ${id}`);
    ids.add(id);
    known.add(id);
    open.add(id);
  }
  if (open.size) refuse(COUNT);
}

/** null when Google would take the body, else the status and the error body it would answer. */
export function check(body) {
  try {
    if (!isObject(body)) refuse('Invalid JSON payload received. Expected an object.');
    const { input, model, previous_interaction_id: previous } = body;
    if (!isSet(input)) refuse('Invalid input received.');
    if (input.length === 0) refuse('Invalid input received: an empty array.');
    if (typeof input === 'string') return null;
    const list = [input].flat();
    if (list.every((item) => CONTENTS.has(item?.type))) {
      list.forEach((content, k) => checkContent(content, `input[${k}]`));
      return null;
    }
    const isOld = Number(/gemini-(\d+)/.exec(model ?? '')?.[1]) < 3;
    list.forEach((step, i) => checkStep(step, i, isOld));
    checkPairs(list, isText(previous));
    return null;
  } catch (e) {
    if (!(e instanceof Refusal)) throw e;
    return { status: 400, error: errorBody(e.message) };
  }
}
