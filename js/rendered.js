// `Rendered.json`: the body of a render, parsed for an application that calls the model with a provider's SDK.

/**
 * Adds `json` to what a render returned. It parses when it is read first, since a body for `fetch` is not needed as an
 * object, and is not enumerable, so that a copy or a comparison does not parse.
 */
export function withJson(rendered) {
  const { body } = rendered;
  let json;
  return Object.defineProperty(rendered, 'json', {
    get: () => (json ??= JSON.parse(new TextDecoder().decode(body))),
  });
}
