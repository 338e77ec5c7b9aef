// A second judge beside the `ai` package: the rules of the stand-in, which share no code with the core. What `repair`
// makes of a broken body it takes, and what `validate` finds nothing in it takes as well.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { repair } from '../../js/entry/formats-node.js';
import { DIALECTS } from '../stand-in/dialects.mjs';
import { brokenBody } from './broken.mjs';

const CASES = process.env.RETHREAD_LONG ? 1500 : 400;
/** The models of dialects whose URL names them. Some of Bedrock's accept nothing beside results. */
const MODELS = {
  gemini: ['gemini-2.5-flash'],
  bedrock: ['us.anthropic.claude-haiku-4-5-20251001-v1:0', 'us.meta.llama3-3-70b-instruct-v1:0'],
};

/** The model of a case. A body for Bedrock names it to us, not to the service. */
function modelOf(dialect, seed) {
  const models = MODELS[dialect];
  return models?.[seed % models.length];
}

/** What no repair can mend, and what the core keeps because a provider may have got it since: members and types of
 *  items that it does not know, and a signature of a thought that is no text. */
const NOT_OURS =
  /at least one message|Value '\[\]' at 'messages'|empty array|contents is not specified|Unknown parameter|Extra inputs are not permitted|Supported values are: 'additional_tools'|Invalid value at 'input\[\d+\]\.signature'/;

/** Anthropic reads user messages in a row as one. */
function asRead(dialect, body) {
  if (dialect !== 'anthropic') return body;
  const messages = [];
  const blocks = (content) => (typeof content === 'string' ? [{ type: 'text', text: content }] : content);
  for (const message of body.messages) {
    const before = messages.at(-1);
    if (before?.role === 'user' && message.role === 'user')
      before.content = [...blocks(before.content), ...blocks(message.content)];
    else messages.push({ ...message });
  }
  return { ...body, messages };
}

const sentenceOf = (refused) => JSON.stringify(refused.error.error?.message ?? refused.error.message);

for (const dialect of Object.keys(DIALECTS)) {
  test(`r41 r64: ${dialect}, repaired bodies are accepted by rules that share no code with the core`, (t) => {
    const { check } = DIALECTS[dialect];
    let mended = 0;
    for (let seed = 1; seed <= CASES; seed += 1) {
      const model = modelOf(dialect, seed);
      const text = JSON.stringify({ ...(dialect === 'bedrock' && { modelId: model }), ...brokenBody(dialect, seed) });
      let repaired;
      try {
        repaired = repair(text, dialect);
      } catch (error) {
        // A body that a mutation has given another shape is refused, not mended.
        assert.equal(error.code, 'invalid_input', `seed ${seed}`);
        continue;
      }
      const { modelId, ...sent } = JSON.parse(repaired.body);
      const refused = check(asRead(dialect, sent), { model });
      assert.ok(
        !refused || NOT_OURS.test(sentenceOf(refused)),
        `seed ${seed}: ${refused && sentenceOf(refused)}\n${repaired.body}`,
      );
      if (repaired.body !== text) mended += 1;
    }
    assert.ok(mended > CASES / 5, `${mended} of ${CASES} were mended`);
    t.diagnostic(`${mended} of ${CASES} mended`);
  });
}
