// Recognizes what was pasted: a request body, messages, or what a provider said.

import { guessDialect } from '/node_modules/rethread/js/cli/dialect.js';
import { CONVERSATION_MEMBERS } from '/node_modules/rethread/js/dialects.js';

const LISTS = [...new Set(Object.values(CONVERSATION_MEMBERS))];
/** Members of an entry of a log that contain the body of a request. */
const INNER = ['body', 'request', 'params', 'payload'];

const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);
const hasList = (value) => isObject(value) && LISTS.some((member) => Array.isArray(value[member]));
const isMessage = (value) =>
  isObject(value) && !hasList(value) && (typeof value.role === 'string' || ('type' in value && value.type !== 'error'));

const parsed = (text) => {
  try {
    return { value: JSON.parse(text) };
  } catch {
    return null;
  }
};

/** The messages of JSON Lines, or null. */
function messageLines(text) {
  const lines = text.split('\n').filter((line) => line.trim());
  const values = lines.map((line) => parsed(line)?.value);
  return values.length && values.every(isMessage) ? { text: `[${lines.join(',')}]`, items: values } : null;
}

function recognize(text) {
  const whole = parsed(text);
  if (!whole) {
    const lines = messageLines(text);
    if (lines) return { form: 'list', ...lines };
    return { form: /^[{[]/.test(text) ? 'broken' : 'error', text };
  }
  const { value } = whole;
  if (Array.isArray(value)) return { form: 'list', text, items: value };
  if (hasList(value)) return { form: 'body', text, value };
  if (isMessage(value)) return { form: 'list', text: `[${text}]`, items: [value] };
  const inner = isObject(value) ? INNER.map((member) => value[member]).find(hasList) : undefined;
  if (inner) return { form: 'body', text: JSON.stringify(inner), value: inner };
  return { form: 'error', text };
}

/** `{ form: "body", text, dialect, why }`, where lists of messages became a body, `{ form: "unknown" }` for a chat whose
 *  wire format cannot be recognized, `{ form: "broken" }` for JSON with a syntax error, or `{ form: "error", text }` for
 *  anything else: what a provider said. `chosen`: the dialect, if it is known. */
export function readPasted(pasted, chosen) {
  const found = recognize(pasted.replace(/^\ufeff/, '').trim());
  if (found.form === 'error' || found.form === 'broken') return found;
  const guess = chosen ? { dialect: chosen, why: null } : guessDialect(found);
  if (!guess) return { form: 'unknown' };
  const text = found.form === 'body' ? found.text : `{"${CONVERSATION_MEMBERS[guess.dialect]}":${found.text}}`;
  return { form: 'body', text, ...guess };
}
