// r64: which URLs are inspected, and which never are.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { repairing } from '../../js/entry/fetch-node.js';
import { BROKEN, spy } from './bodies.mjs';

/** The dialect in which a request to the address is repaired, or null: it is tried with a broken body of each. */
async function repairedAs(url, options = {}, headers = {}) {
  const found = new Set();
  for (const body of Object.values(BROKEN)) {
    const { fetch, calls } = spy();
    const init = { method: 'POST', body: JSON.stringify(body), headers };
    await repairing({ ...options, fetch, onRepair: (info) => found.add(info.dialect) })(url, init);
    if (!found.size) assert.deepEqual(calls, [[url, init]]);
  }
  assert.ok(found.size < 2, [...found].join());
  return [...found][0] ?? null;
}

const VERTEX = 'https://europe-west1-aiplatform.googleapis.com/v1/projects/p/locations/europe-west1';
const CHAT = {
  'openai-chat': [
    'https://api.openai.com/v1/chat/completions',
    'https://res.openai.azure.com/openai/deployments/my-gpt/chat/completions?api-version=2025-04-01-preview',
    'https://res.openai.azure.com/openai/v1/chat/completions?api-version=preview',
    'https://res.services.ai.azure.com/models/chat/completions?api-version=2024-05-01-preview',
    'https://openrouter.ai/api/v1/chat/completions',
    'https://api.groq.com/openai/v1/chat/completions',
    'https://api.together.xyz/v1/chat/completions',
    'https://api.deepseek.com/chat/completions',
    'https://api.x.ai/v1/chat/completions/',
    'http://localhost:8000/v1/chat/completions',
    'http://127.0.0.1:11434/v1/chat/completions',
    'https://generativelanguage.googleapis.com/v1beta/openai/chat/completions',
    `${VERTEX}/endpoints/openapi/chat/completions`,
    'https://gateway.ai.cloudflare.com/v1/account/gateway/openai/chat/completions',
  ],
  'openai-responses': [
    'https://api.openai.com/v1/responses',
    'https://res.openai.azure.com/openai/v1/responses',
    'https://res.openai.azure.com/openai/responses?api-version=2025-04-01-preview',
    'https://openrouter.ai/api/v1/responses',
  ],
  anthropic: [
    'https://api.anthropic.com/v1/messages',
    'https://api.anthropic.com/v1/messages?beta=true',
    'https://api.deepseek.com/anthropic/v1/messages',
    'https://res.services.ai.azure.com/anthropic/v1/messages',
    `${VERTEX}/publishers/anthropic/models/claude-sonnet-5:rawPredict`,
    `${VERTEX}/publishers/anthropic/models/claude-sonnet-5@20250929:streamRawPredict`,
    'https://bedrock-runtime.us-east-1.amazonaws.com/model/anthropic.claude-3-5-sonnet-20240620-v1%3A0/invoke',
    'https://bedrock-runtime.us-east-1.amazonaws.com/model/eu.anthropic.claude-sonnet-5/invoke-with-response-stream',
  ],
  'gemini-interactions': [
    'https://generativelanguage.googleapis.com/v1beta/interactions',
    `${VERTEX.replace('/v1/', '/v1beta1/')}/interactions`,
  ],
  bedrock: [
    'https://bedrock-runtime.us-east-1.amazonaws.com/model/us.amazon.nova-2-lite-v1%3A0/converse',
    'https://bedrock-runtime.us-east-1.amazonaws.com/model/eu.anthropic.claude-sonnet-5/converse-stream',
    'https://gateway.example.com/bedrock/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Ainference-profile%2Fx/converse',
  ],
  gemini: [
    'https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-flash:generateContent',
    'https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse',
    'https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-flash%3AgenerateContent?key=AIza',
    `${VERTEX}/publishers/google/models/gemini-2.5-pro:streamGenerateContent?alt=sse`,
    `${VERTEX}/endpoints/123456:generateContent`,
  ],
  mistral: [
    'https://api.mistral.ai/v1/chat/completions',
    'https://codestral.mistral.ai/v1/chat/completions',
    'https://api.mistral.ai/v1/agents/completions',
    'https://gateway.ai.cloudflare.com/v1/account/gateway/mistral/v1/chat/completions',
    `${VERTEX}/publishers/mistralai/models/mistral-small:streamRawPredict`,
  ],
  'mistral-conversations': [
    'https://api.mistral.ai/v1/conversations',
    'https://api.mistral.ai/v1/conversations/conv_1',
    'https://api.mistral.ai/v1/conversations/conv_1/restart',
  ],
};
const NEVER = [
  'https://api.openai.com/v1/embeddings',
  'https://api.openai.com/v1/moderations',
  'https://api.openai.com/v1/batches',
  'https://api.openai.com/v1/files',
  'https://api.openai.com/v1/threads',
  'https://api.openai.com/v1/responses/input_tokens',
  'https://api.openai.com/v1/responses/compact',
  'https://api.anthropic.com/v1/messages/count_tokens',
  'https://api.anthropic.com/v1/messages/batches',
  `${VERTEX}/publishers/anthropic/models/count-tokens:rawPredict`,
  'https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-flash:countTokens',
  'https://generativelanguage.googleapis.com/v1beta/models/gemini-embedding-001:embedContent',
  'https://generativelanguage.googleapis.com/v1beta/models/gemini-embedding-001:batchEmbedContents',
  'https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-flash:batchGenerateContent',
  'https://generativelanguage.googleapis.com/v1beta/cachedContents',
];
const ELSEWHERE = [
  'https://api.openai.com/v1/conversations',
  'https://api.openai.com/v1/responses/resp_1/cancel',
  'https://api.openai.com/v1/chat/completions/chatcmpl_1',
  'https://example.com/api/messages',
  'https://example.com/llm',
];

describe('r64: addresses', () => {
  for (const [dialect, urls] of Object.entries(CHAT)) {
    // The body of another dialect that shares the list, too: it is repaired as the address says.
    for (const url of urls) test(`${dialect}: ${url}`, async () => assert.equal(await repairedAs(url), dialect));
  }
  for (const url of NEVER) {
    test(`never: ${url}`, async () => {
      assert.equal(await repairedAs(url), null);
      for (const dialect of Object.keys(BROKEN)) assert.equal(await repairedAs(url, { dialect }), null);
      let asked = 0;
      await repairedAs(url, {
        dialect: () => {
          asked += 1;
        },
      });
      assert.equal(asked, 0, 'the function is not asked');
    });
  }
  for (const url of ELSEWHERE) test(`not by itself: ${url}`, async () => assert.equal(await repairedAs(url), null));

  test('a common path such as /responses also needs a model or a prompt', async () => {
    const { fetch, calls } = spy();
    const init = { method: 'POST', body: JSON.stringify({ input: BROKEN['openai-responses'].input }) };
    await repairing({ fetch })('https://survey.example/api/responses', init);
    assert.equal(calls[0][1], init);
  });

  test('a request with a signed body is not changed', async () => {
    const url = CHAT.anthropic.at(-1);
    assert.equal(await repairedAs(url, {}, { authorization: 'Bearer key' }), 'anthropic');
    assert.equal(await repairedAs(url, {}, { authorization: 'AWS4-HMAC-SHA256 Credential=…' }), null);
    assert.equal(await repairedAs(url, { dialect: 'anthropic' }, { 'x-amz-content-sha256': 'abc' }), null);
  });

  test('Gemini 3 is recognized by its URL: a call without its signature gets the placeholder', async () => {
    const body = {
      contents: [
        { role: 'user', parts: [{ text: 'q' }] },
        { role: 'model', parts: [{ functionCall: { name: 'f', args: {} } }] },
        { role: 'user', parts: [{ functionResponse: { name: 'f', response: {} } }] },
      ],
    };
    const sent = async (model) => {
      const { fetch, calls } = spy();
      await repairing({ fetch })(`https://generativelanguage.googleapis.com/v1beta/models/${model}:generateContent`, {
        method: 'POST',
        body: ` ${JSON.stringify(body)}\n`,
      });
      return calls[0][1].body;
    };
    assert.equal(await sent('gemini-2.5-pro'), ` ${JSON.stringify(body)}\n`);
    const third = await sent('gemini-3-pro-preview');
    assert.ok(JSON.parse(third).contents[1].parts[0].thoughtSignature);
    assert.deepEqual(Object.keys(JSON.parse(third)), ['contents'], 'the model stays in the address');
  });
});
