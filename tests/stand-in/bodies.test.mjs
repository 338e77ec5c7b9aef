// The bodies of tests/bodies, judged by the stand-in.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import test from 'node:test';
import { check as anthropic } from './rules-anthropic.mjs';
import { check as bedrock } from './rules-bedrock.mjs';
import { check as gemini } from './rules-gemini.mjs';
import { check as geminiInteractions } from './rules-gemini-interactions.mjs';
import { check as mistral } from './rules-mistral.mjs';
import { check as mistralConversations } from './rules-mistral-conversations.mjs';
import { check as openaiChat } from './rules-openai-chat.mjs';
import { check as openaiResponses } from './rules-openai-responses.mjs';

const CHECKS = {
  anthropic,
  bedrock,
  gemini,
  'gemini-interactions': geminiInteractions,
  mistral,
  'mistral-conversations': mistralConversations,
  'openai-chat': openaiChat,
  'openai-responses': openaiResponses,
};

for (const [dialect, check] of Object.entries(CHECKS)) {
  const bodies = JSON.parse(fs.readFileSync(new URL(`../bodies/${dialect}.json`, import.meta.url), 'utf8'));
  for (const { name, body, found, repaired } of bodies) {
    test(`r73 ${dialect} ${found ? 'rejects' : 'accepts'} ${name}`, () => {
      const address = { model: body.model };
      const refusal = check(body, address);
      // Mistral refuses what does not fit its schema with 422.
      assert.ok(found ? [400, 422].includes(refusal?.status) : !refusal, JSON.stringify(refusal?.error));
      if (repaired) assert.equal(check(repaired, address), null);
    });
  }
}
