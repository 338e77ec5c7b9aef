// The results that calls get which have none. The core has the first two (`src/synthetic_result.rs`): wherever they
// come back, a result of the tool takes their place.

/** Of a call whose tool may have run. */
export const INTERRUPTED =
  'Interrupted: this call has no recorded result. It may or may not have run; check before relying on it or repeating it.';

/** Of a call whose tool was not started. */
export const NOT_RUN = 'Not run: this call was cancelled before it started.';

/** Of a call whose arguments no tool can take: the model can make it again. */
export const UNREADABLE =
  'Not run: the arguments of this call are not valid JSON. Make the call again with all of its arguments.';

/** True for the stored result of a call that says that it has none. */
export const isMissingResult = ({ content }) => content === INTERRUPTED || content === NOT_RUN;
