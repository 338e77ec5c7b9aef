// Maps the URLs of chat endpoints to dialects.

import { CHAT_PATHS } from '../dialects.js';

/** Other endpoints whose bodies look like a conversation. They are never inspected, whatever the options. */
const OTHER = new RegExp(
  `[/:](?:${[
    'count[-_]?tokens',
    'input_tokens',
    'compact',
    'tokenize',
    'embeddings',
    'moderations',
    'classifications',
    'embedContent',
    'batchEmbedContents',
    'batchGenerateContent',
    'batches',
    'cachedContents',
    'files',
    'v1\\/threads',
    'predict',
  ].join('|')})(?:$|:)`,
  'i',
);

const isWithin = (host, domain) => host === domain || host.endsWith(`.${domain}`);

/** The path with unescaped colons and no trailing slash. */
const plainPath = ({ pathname }) => pathname.replace(/%3a/gi, ':').replace(/\/+$/, '');

export const isOtherService = (url) => OTHER.test(plainPath(url));

/** {dialect, model?} of a chat URL, or null for any other URL. */
export function chatAddress(url) {
  const path = plainPath(url);
  for (const [pattern, dialect, domain] of CHAT_PATHS) {
    const found = !domain || isWithin(url.hostname, domain) ? pattern.exec(path) : null;
    if (found) return { dialect, model: found[1] };
  }
  return null;
}

/** Query parameters that carry a key or a signature. */
const KEYS = /^(?:key|api[-_]?key|subscription-key|access_token|token|auth|sig|signature|code|x-amz-.*|x-goog-.*)$/i;

/** The URL without keys, user name and password, which must not reach a log. */
export function publicUrl(original) {
  const url = new URL(original);
  const secrets = [...url.searchParams.keys()].filter((name) => KEYS.test(name));
  if (!secrets.length && !url.username && !url.password) return original.href;
  for (const name of secrets) url.searchParams.delete(name);
  url.username = '';
  url.password = '';
  return url.href;
}
