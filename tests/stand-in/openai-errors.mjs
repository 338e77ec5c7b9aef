// Errors that both of OpenAI's endpoints report in the same words.

/** An error of a request: OpenAI's message, the parameter that it names, and its code. */
export class Refusal extends Error {
  constructor(message, param = null, code = null) {
    super(message);
    Object.assign(this, { param, code });
  }
}

export const isObject = (v) => typeof v === 'object' && v !== null && !Array.isArray(v);

export function nounOf(v) {
  if (v === null) return 'null';
  if (Array.isArray(v)) return 'an array';
  if (typeof v === 'object') return 'an object';
  if (typeof v === 'number') return Number.isInteger(v) ? 'an integer' : 'a decimal number';
  return `a ${typeof v}`;
}

export const refuse = (message, param, code) => {
  throw new Refusal(message, param, code);
};
export const missing = (path) => refuse(`Missing required parameter: '${path}'.`, path, 'missing_required_parameter');
export const wrongType = (path, expected, v) =>
  refuse(`Invalid type for '${path}': expected ${expected}, but got ${nounOf(v)} instead.`, path, 'invalid_type');
export const unknown = (path) => refuse(`Unknown parameter: '${path}'.`, path, 'unknown_parameter');
