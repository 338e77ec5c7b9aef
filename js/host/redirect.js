// Redirects are not followed: they could send the credentials to another host.

import { redactedError } from './redacted-error.js';

const REDIRECT_CODE = 'redirect';
const NO_REDIRECT =
  'redirects are not followed, because the request contains credentials; set `provider.url` to the target of the redirect';

let supportedMode;
/** The redirect mode for `fetch`: "error", or "manual" where that mode does not exist (workerd); then the redirect is
 *  the response. */
export function redirectMode() {
  try {
    supportedMode ??= new Request('http://localhost/', { redirect: 'error' }).redirect;
  } catch {
    supportedMode = 'manual';
  }
  return supportedMode;
}

/** Throws if the response is a redirect. */
export function rejectRedirect({ type, status }) {
  if (type !== 'opaqueredirect' && ![301, 302, 303, 307, 308].includes(status)) return;
  throw Object.assign(new Error(`the server answered with a redirect: ${NO_REDIRECT}`), { code: REDIRECT_CODE });
}

/** The messages of browsers for any failed fetch, including redirects. */
const NO_REASON = /^(?:Failed to fetch|NetworkError when attempting to fetch resource\.?|Load failed)$/;

/** The error of a failed fetch, with a note about redirects where one may be the reason. */
export function fetchError(error, options) {
  const reported = redactedError(error, options);
  // Node's message, from the cause.
  if (/\bunexpected redirect\b/.test(reported.message))
    return { code: REDIRECT_CODE, message: `the server answered with a redirect: ${NO_REDIRECT}` };
  return NO_REASON.test(reported.message)
    ? { ...reported, message: `${reported.message} (if the server redirects: ${NO_REDIRECT})` }
    : reported;
}
