// The one class of failure.

/** Every failure of rethread. `code` is stable; `details` are facts for programs. */
export class RethreadError extends Error {
  constructor(code, message, details = {}, options) {
    super(message, options);
    this.name = 'RethreadError';
    this.code = code;
    this.details = details;
  }
}
