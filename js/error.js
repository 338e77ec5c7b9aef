// The class of every error.

/**
 * The class of every error that rethread throws. `code` is stable; `details` are facts for programs.
 *
 * @template {import('./types.js').ErrorCode} [Code=import('./types.js').ErrorCode]
 */
export class RethreadError extends Error {
  /**
   * @param {Code} code
   * @param {string} message
   * @param {import('./types.js').ErrorDetails<Code>} [details]
   * @param {ErrorOptions} [options]
   */
  constructor(code, message, details = /** @type {import('./types.js').ErrorDetails<Code>} */ ({}), options) {
    super(message, options);
    this.name = /** @type {const} */ ('RethreadError');
    this.code = code;
    this.details = details;
  }
}
