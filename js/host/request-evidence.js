// What a failed `fetch` shows about its request.

/** The codes of errors that occur before a connection is ready, so that no byte of the request was sent. */
const NOT_CONNECTED = new Set([
  'ENOTFOUND', 'EAI_AGAIN', 'EAI_FAIL', 'EAI_NODATA', 'EAI_NONAME', 'ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH', 'EADDRNOTAVAIL',
  'UND_ERR_CONNECT_TIMEOUT', 'CERT_HAS_EXPIRED', 'DEPTH_ZERO_SELF_SIGNED_CERT', 'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'UNABLE_TO_GET_ISSUER_CERT_LOCALLY', 'ERR_TLS_CERT_ALTNAME_INVALID', 'ERR_SSL_WRONG_VERSION_NUMBER',
]);
/** System calls before a connection is ready. */
const CONNECTING = new Set(['connect', 'getaddrinfo']);

/**
 * Whether any byte of the request may have reached the service; undefined if the error does not say. Browsers and workerd do not say why a
 * `fetch` failed. A custom `fetch` may have sent the request more than once, and its error is about the last time.
 */
export function wasSent(error, { fetch }) {
  if (fetch !== undefined && fetch !== globalThis.fetch) return undefined;
  try {
    for (let cause = error, depth = 0; cause !== undefined && cause !== null && depth < 4; cause = cause.cause, depth += 1) {
      if (NOT_CONNECTED.has(cause.code) || CONNECTING.has(cause.syscall)) return false;
    }
  } catch {
    // an error that cannot be read says nothing
  }
  return undefined;
}
