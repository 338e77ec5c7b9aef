// What is wrong with the body of a request, and what would go out instead of it.

import { RethreadError } from '../error.js';
import { repair, validate } from '../formats-api.js';
import { publicUrl } from './address.js';
import { knownDialect, LISTS } from './options.js';

/** {info, body} of a conversation that the provider refuses; null for one that it takes, and for what is none. */
export function inspect(text, { url, address }, options) {
  const value = parsed(text);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return null;
  const dialect = dialectOf(value, url, address, options);
  if (!dialect || !Array.isArray(value[LISTS[dialect]])) return null;
  // Some rules depend on the model, which Google's addresses name instead of the body.
  const model = Object.hasOwn(value, 'model') ? undefined : address?.model;
  const { body, report } = repaired(text, dialect, model, options);
  if (!report.some(({ severity }) => severity === 'error')) return null;
  // A conversation of which nothing is left is not repaired: the provider says what is wrong with the one that there is.
  const isEmptied = body !== text && !parsed(body)?.[LISTS[dialect]]?.length;
  return { info: { url: publicUrl(url), dialect, report }, body: isEmptied ? text : body };
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** What the options say, else what the address says; null where the request is left alone. */
function dialectOf(body, url, address, { dialect: given }) {
  const dialect = typeof given === 'function' ? knownDialect(given({ url: publicUrl(url), body })) : given;
  if (dialect !== undefined) return dialect;
  // `/responses` is no rare name: one that takes a model or a prompt is OpenAI's.
  if (address?.dialect === 'openai-responses' && !body.model && !body.prompt) return null;
  return address?.dialect ?? null;
}

/** The nearest valid body, with what was done. A body of another shape has none: it stays as it is. */
function repaired(text, dialect, model, { danglingCalls, danglingText }) {
  const how = { danglingCalls, danglingText };
  try {
    if (model === undefined) return repair(text, dialect, how);
    const head = `{"model":${JSON.stringify(decodeURIComponent(model))},`;
    const open = text.indexOf('{') + 1;
    const { body, report } = repair(head + text.slice(open), dialect, how);
    return body.startsWith(head) ? { body: text.slice(0, open) + body.slice(head.length), report } : repair(text, dialect, how);
  } catch (error) {
    if (error?.code !== 'invalid_input') throw error;
    return { body: text, report: validate(text, dialect) };
  }
}

/** The error of a request that must not go out. */
export function rejection({ info }) {
  const [first, ...others] = info.report.filter(({ severity }) => severity === 'error');
  const more = others.length ? ` (and ${others.length} more)` : '';
  const message = `the request was not sent, since ${info.dialect} would refuse it: ${first.code}: ${first.message}${more}; send what \`repair\` makes of it`;
  return new RethreadError('invalid_input', message, info);
}
