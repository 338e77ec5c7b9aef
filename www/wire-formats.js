// The wire formats of the demo. `path`: where the stand-in speaks it, and the beginning of a provider's address of the
// same shape. `keepsConversations`: a service of it can own a conversation.

export const WIRE_FORMATS = {
  'openai-chat': { name: 'OpenAI chat', path: 'v1/chat/completions' },
  'openai-responses': { name: 'OpenAI Responses', path: 'v1/responses', keepsConversations: true },
  anthropic: {
    name: 'Anthropic',
    path: 'v1/messages',
    params: { max_tokens: 2048 },
    headers: (key) => ({ 'x-api-key': key, 'anthropic-dangerous-direct-browser-access': 'true' }),
  },
  gemini: {
    name: 'Gemini',
    path: 'v1beta/models',
    endpointHint:
      'Otherwise the address without a model, such as https://generativelanguage.googleapis.com/v1beta/models.',
    /** The address names the model and selects streaming. */
    url(endpoint, { model, stream }) {
      if (!URL.canParse(endpoint)) return endpoint; // the run reports it
      const url = new URL(endpoint);
      const name = encodeURIComponent(model.replace(/^models\//, ''));
      url.pathname = `${url.pathname.replace(/\/$/, '')}/${name}:${stream ? 'streamGenerateContent' : 'generateContent'}`;
      if (stream) url.searchParams.set('alt', 'sse');
      return url.href;
    },
    headers: (key) => ({ 'x-goog-api-key': key }),
  },
  mistral: { name: 'Mistral', path: 'mistral/v1/chat/completions' },
};
