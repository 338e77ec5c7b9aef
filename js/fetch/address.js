// Maps the URLs of chat endpoints to dialects.

/**
 * Path patterns, most specific first. A capture group is the model.
 *
 * @type {[RegExp, string][]}
 */
const CHAT = [
  // Gateways put the provider's name before Mistral's path, which is OpenAI's.
  [/\/mistral\/v1\/chat\/completions$/, 'mistral'],
  // OpenAI and Azure (deployments and v1), OpenRouter, Groq, Together, vLLM, and the compatible endpoints of Gemini and Vertex.
  [/\/chat\/completions$/, 'openai-chat'],
  [/\/responses$/, 'openai-responses'],
  [/\/(?:v1|anthropic)\/messages$/, 'anthropic'],
  // `count-tokens` is Vertex's pseudo-model for counting tokens.
  [/\/publishers\/anthropic\/models\/(?!count-tokens:)([^/:]+):(?:streamR|r)awPredict$/, 'anthropic'],
  [/\/publishers\/mistralai\/models\/([^/:]+):(?:streamR|r)awPredict$/, 'mistral'],
  // Bedrock: `anthropic.claude-…`, or a region's `eu.anthropic.claude-…`.
  [/\/model\/((?:[\w-]+\.)?anthropic\.[^/]+)\/invoke(?:-with-response-stream)?$/, 'anthropic'],
  [/\/(?:models|tunedModels|endpoints)\/([^/:]+):(?:generateContent|streamGenerateContent)$/, 'gemini'],
];
const MISTRAL_PATH = /\/v1\/(?:chat|agents)\/completions$/;

/** Other endpoints whose bodies look like a conversation. They are never inspected, whatever the options. */
const OTHER = new RegExp(
  `[/:](?:${[
    'count[-_]?tokens', 'input_tokens', 'compact', 'tokenize', 'embeddings', 'moderations', 'classifications', 'embedContent',
    'batchEmbedContents', 'batchGenerateContent', 'batches', 'cachedContents', 'files', 'v1\\/threads', 'predict',
  ].join('|')})(?:$|:)`, 'i');

const isMistral = (host) => host === 'mistral.ai' || host.endsWith('.mistral.ai');

/** The path with unescaped colons and no trailing slash. */
const plainPath = ({ pathname }) => pathname.replace(/%3a/gi, ':').replace(/\/+$/, '');

export const isOtherService = (url) => OTHER.test(plainPath(url));

/** {dialect, model?} of a chat URL, or null for any other URL. */
export function chatAddress(url) {
  const path = plainPath(url);
  if (isMistral(url.hostname) && MISTRAL_PATH.test(path)) return { dialect: 'mistral' };
  for (const [pattern, dialect] of CHAT) {
    const found = pattern.exec(path);
    if (found) return { dialect, model: found[1] };
  }
  return null;
}

/** Query parameters that carry a key or a signature. */
const KEYS = /^(?:key|api[-_]?key|subscription-key|access_token|token|auth|sig|signature|code|x-amz-.*|x-goog-.*)$/i;

/** The URL without keys, user name and password, which must not reach a log. */
export function publicUrl(original) {
  const url = new URL(original);
  const secrets = [...url.searchParams.keys()].filter((name) => KEYS.test(name));
  if (!secrets.length && !url.username && !url.password) return original.href;
  for (const name of secrets) url.searchParams.delete(name);
  url.username = '';
  url.password = '';
  return url.href;
}
