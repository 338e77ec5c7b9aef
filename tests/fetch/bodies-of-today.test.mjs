// The bodies of tests/bodies through `repairing()`, sent by the vendors' SDKs in their newest versions.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import { test } from 'node:test';
import Anthropic from '@anthropic-ai/sdk';
import { GoogleGenAI } from '@google/genai';
import { Mistral } from '@mistralai/mistralai';
import { HTTPClient } from '@mistralai/mistralai/lib/http.js';
import OpenAI from 'openai';
import { repairing } from '../../js/entry/fetch-node.js';

const bodiesOf = (dialect) =>
  JSON.parse(fs.readFileSync(new URL(`../bodies/${dialect}.json`, import.meta.url), 'utf8'));
const apiKey = 'test-key';

/** The names that Mistral's SDK has for the members of a message. */
const MISTRAL_NAMES = { tool_calls: 'toolCalls', tool_call_id: 'toolCallId' };
const toMistral = (message) =>
  Object.fromEntries(Object.entries(message).map(([key, value]) => [MISTRAL_NAMES[key] ?? key, value]));

/** Sends a body with a dialect's SDK; the answer is not read. */
const SEND = {
  anthropic: (fetch, body) => new Anthropic({ apiKey, maxRetries: 0, fetch }).messages.create(body),
  'openai-responses': (fetch, body) => new OpenAI({ apiKey, maxRetries: 0, fetch }).responses.create(body),
  'openai-chat': (fetch, body) => new OpenAI({ apiKey, maxRetries: 0, fetch }).chat.completions.create(body),
  gemini: (fetch, body) => new GoogleGenAI({ apiKey, httpOptions: { fetch } }).models.generateContent(body),
  mistral: (fetch, { messages, ...body }) => {
    const httpClient = new HTTPClient({ fetcher: fetch });
    return new Mistral({ apiKey, httpClient, retryConfig: { strategy: 'none' } }).chat.complete({
      ...body,
      messages: messages.map(toMistral),
    });
  },
};
/** SDKs that write a body of their own: the model into the URL, defaults into messages. */
const WRITES_ITS_OWN = ['gemini', 'mistral'];

const ANSWER = {
  output: [],
  content: [],
  candidates: [],
  id: 'a',
  object: 'chat.completion',
  model: 'm',
  created: 1,
  choices: [],
  usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
};

const textOf = async (input, init) => {
  const body = init?.body ?? (await input.clone().text());
  return typeof body === 'string' ? body : new TextDecoder().decode(body);
};

/** What the SDK gives to `fetch` for a body. */
async function written(send, body) {
  let text = null;
  await send(async (input, init) => {
    text = await textOf(input, init);
    return Response.json(ANSWER);
  }, body);
  return text;
}

for (const [dialect, send] of Object.entries(SEND)) {
  const bodies = bodiesOf(dialect);
  test(`r73 there are bodies of ${dialect}`, () => assert.ok(bodies.length));
  for (const { name, body, found, warned, refused, repaired } of bodies) {
    test(`r73 ${dialect}: ${name} ${found && !refused ? 'is repaired' : 'passes unchanged'}`, async () => {
      const given = await written(send, body);
      if (!WRITES_ITS_OWN.includes(dialect))
        assert.deepEqual(JSON.parse(given), body, 'the SDK sends the body as it is');
      const sent = [];
      const reports = [];
      const provider = async (input, init) => {
        sent.push(await textOf(input, init));
        return Response.json(ANSWER);
      };
      await send(repairing({ fetch: provider, onRepair: (info) => reports.push(info) }), body);
      assert.equal(sent.length, 1);
      if (!found || refused) {
        assert.equal(sent[0], given);
      } else {
        assert.deepEqual(JSON.parse(sent[0]), JSON.parse(await written(send, repaired)));
      }
      const codes = reports.flatMap(({ report }) => report.map(({ code }) => code));
      // Of a body that is not repaired, nothing is reported: `validate` finds warnings.
      for (const code of found && !refused ? [...found, ...(warned ?? [])] : [])
        assert.ok(codes.includes(code), `${codes}`);
    });
  }
}
