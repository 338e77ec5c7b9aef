// Finds the problems of a request body and makes the repaired body.

import { CONVERSATION_MEMBERS } from '../dialects.js';
import { RethreadError } from '../error.js';
import { repair, validate } from '../formats-api.js';
import { publicUrl } from './address.js';
import { knownDialect } from './options.js';

/** {dialect, model, info, body, isRepairable} of a conversation; `model` is the URL's, and `info` null if nothing is
 *  reported. Null for any other body. */
export function inspect(text, { url, address }, options, refusedBy) {
  const value = parsed(text);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return null;
  const dialect = dialectOf(value, url, address, options);
  if (!dialect || !Array.isArray(value[CONVERSATION_MEMBERS[dialect]])) return null;
  // Some rules depend on the model, which Google's addresses name instead of the body.
  const model = Object.hasOwn(value, 'model') ? undefined : address?.model;
  const {
    body,
    report,
    isRepairable = true,
  } = repaired(text, dialect, model, { ...options, refused: refusedBy(dialect) });
  const isReported = ({ severity, code }) => severity === 'error' || code === 'healed' || code === 'missing_reasoning';
  if (!report.some(isReported)) return { dialect, model, info: null, body: text, isRepairable };
  // A repair that removes every message is not applied: the provider's error describes the original conversation
  // better.
  const isEmptied = body !== text && !parsed(body)?.[CONVERSATION_MEMBERS[dialect]]?.length;
  return {
    dialect,
    model,
    info: { url: publicUrl(url), dialect, report },
    body: isEmptied ? text : body,
    isRepairable,
  };
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
function repaired(text, dialect, model, { danglingCalls, danglingText, refused }) {
  const options = { danglingCalls, danglingText, refused };
  try {
    return withModel(text, model, (body) => repair(body, dialect, options));
  } catch (error) {
    if (error?.code !== 'invalid_input') throw error;
    const report = validate(text, dialect).map((finding) => ({ ...finding, action: 'kept' }));
    return { body: text, report, isRepairable: false };
  }
}

/** The result of `work`, which gets the body with the model that the URL names, and returns {body}, without that model,
 *  or null. */
export function withModel(text, model, work) {
  if (model === undefined) return work(text);
  const head = `{"model":${JSON.stringify(decodeURIComponent(model))},`;
  const open = text.indexOf('{') + 1;
  const done = work(head + text.slice(open));
  if (!done) return null;
  return done.body.startsWith(head)
    ? { ...done, body: text.slice(0, open) + done.body.slice(head.length) }
    : work(text);
}

/** The error that mode "reject" throws. */
export function rejection({ info, isRepairable }) {
  const [first, ...others] = info.report.filter(({ severity }) => severity === 'error');
  const more = others.length ? ` (and ${others.length} more)` : '';
  const what = `${first.code}: ${first.message.replace(/\.$/, '')}${more}`;
  // Of a body in another format the finding says what to do.
  const advice = isRepairable ? '; send the body that `repair` returns' : '';
  const message = `the request was not sent, because ${info.dialect} would reject it: ${what}${advice}`;
  return new RethreadError('invalid_input', message, info);
}
