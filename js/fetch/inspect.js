// Finds the problems of a request body and makes the repaired body.

import { CONVERSATION_MEMBERS } from '../dialects.js';
import { RethreadError } from '../error.js';
import { repair, validate } from '../formats-api.js';
import { publicUrl } from './address.js';
import { knownDialect } from './options.js';

/** {info, body} of a conversation with errors; null for a valid one and for any other body. */
export function inspect(text, { url, address }, options) {
  const value = parsed(text);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return null;
  const dialect = dialectOf(value, url, address, options);
  if (!dialect || !Array.isArray(value[CONVERSATION_MEMBERS[dialect]])) return null;
  // Some rules depend on the model, which Google's addresses name instead of the body.
  const model = Object.hasOwn(value, 'model') ? undefined : address?.model;
  const { body, report } = repaired(text, dialect, model, options);
  if (!report.some(({ severity }) => severity === 'error')) return null;
  // A repair that removes every message is not applied: the provider's error describes the original conversation better.
  const isEmptied = body !== text && !parsed(body)?.[CONVERSATION_MEMBERS[dialect]]?.length;
  return { info: { url: publicUrl(url), dialect, report }, body: isEmptied ? text : body };
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** The dialect from the options, else from the URL; null if the request is not inspected. */
function dialectOf(body, url, address, { dialect: option }) {
  const dialect = typeof option === 'function' ? knownDialect(option({ url: publicUrl(url), body })) : option;
  if (dialect !== undefined) return dialect;
  // `/responses` is a common path; only OpenAI's takes a model or a prompt.
  if (address?.dialect === 'openai-responses' && !body.model && !body.prompt) return null;
  return address?.dialect ?? null;
}

/** The nearest valid body and the report. A body that cannot be repaired (`invalid_input`) is returned unchanged. */
function repaired(text, dialect, model, { danglingCalls, danglingText }) {
  const options = { danglingCalls, danglingText };
  try {
    if (model === undefined) return repair(text, dialect, options);
    const head = `{"model":${JSON.stringify(decodeURIComponent(model))},`;
    const open = text.indexOf('{') + 1;
    const { body, report } = repair(head + text.slice(open), dialect, options);
    return body.startsWith(head) ? { body: text.slice(0, open) + body.slice(head.length), report } : repair(text, dialect, options);
  } catch (error) {
    if (error?.code !== 'invalid_input') throw error;
    return { body: text, report: validate(text, dialect) };
  }
}

/** The error that mode "reject" throws. */
export function rejection({ info }) {
  const [first, ...others] = info.report.filter(({ severity }) => severity === 'error');
  const more = others.length ? ` (and ${others.length} more)` : '';
  const message = `the request was not sent, because ${info.dialect} would reject it: ${first.code}: ${first.message}${more}; send the body that \`repair\` returns`;
  return new RethreadError('invalid_input', message, info);
}
