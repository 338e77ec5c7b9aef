// Arguments of a call: a text of JSON, as providers write them, or the value itself.

/** The value of arguments that are a text of JSON, as providers write them; others as they are. */
export function argumentValue(args) {
  if (typeof args !== 'string') return args;
  try {
    return JSON.parse(args);
  } catch {
    return args;
  }
}

/** True for a text of JSON. */
export function isJsonText(text) {
  if (typeof text !== 'string') return false;
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
