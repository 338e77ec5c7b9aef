// The result that a call gets whose tool may have run. The core has the same text (`src/synthetic_result.rs`):
// wherever it comes back, a result of the tool takes its place.

export const INTERRUPTED =
  'Interrupted: this call has no recorded result. It may or may not have run; check before relying on it or repeating it.';
