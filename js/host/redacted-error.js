// Errors that a host reports to the run.

import { errorWords } from '../credentials.js';

/** Code and message of an error, without the credentials of this `drive`. */
export function redactedError(error, { credentials }) {
  return credentials.redactEach(errorWords(error));
}
