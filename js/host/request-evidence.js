// What a failed `fetch` shows about its request.

/** The runtime's own `fetch`. One that an application installs later may send a request more than once. */
const runtimeFetch = globalThis.fetch;

/** Codes of errors that occur before a connection is ready only, so that no byte of the request was sent. */
const NOT_CONNECTED = new Set([
  'ENOTFOUND',
  'EAI_AGAIN',
  'EAI_FAIL',
  'EAI_NODATA',
  'EAI_NONAME',
  'UND_ERR_CONNECT_TIMEOUT',
  'CERT_HAS_EXPIRED',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'ERR_TLS_CERT_ALTNAME_INVALID',
]);
/** System calls before a connection is ready. Codes such as ECONNREFUSED count with these only: on Linux `read` can
 *  fail with them too. */
const CONNECTING = new Set(['connect', 'getaddrinfo']);
const MAX_DEPTH = 4;

/**
 * Whether any byte of the request may have reached the service; undefined if the error does not say. Browsers and
 * workerd do not say why a `fetch` failed. A `fetch` of the application may have sent the request more than once, and
 * its error is about the last time.
 */
export function wasSent(error, fetch) {
  if (fetch !== runtimeFetch) return undefined;
  try {
    return isConnectError(error) ? false : undefined;
  } catch {
    return undefined; // an error that cannot be read says nothing
  }
}

/** True if the error or one of its causes shows that no connection became ready. Node joins the errors of several
 *  addresses in one. */
function isConnectError(error, depth = 0) {
  if (error === undefined || error === null || depth === MAX_DEPTH) return false;
  if (NOT_CONNECTED.has(error.code) || CONNECTING.has(error.syscall)) return true;
  if (error.errors?.length > 0) return [...error.errors].every((each) => isConnectError(each, depth + 1));
  return isConnectError(error.cause, depth + 1);
}
