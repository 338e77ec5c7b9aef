// The bodies of tests/bodies through `repairing()`, sent by the vendors' SDKs in their newest versions.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import { test } from 'node:test';
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { repairing } from '../../js/entry/fetch-node.js';

const bodiesOf = (dialect) => JSON.parse(fs.readFileSync(new URL(`../bodies/${dialect}.json`, import.meta.url), 'utf8'));
const apiKey = 'test-key';

/** Sends a body with a dialect's SDK; the answer is not read. */
const SEND = {
  anthropic: (fetch, body) => new Anthropic({ apiKey, maxRetries: 0, fetch }).messages.create(body),
  'openai-responses': (fetch, body) => new OpenAI({ apiKey, maxRetries: 0, fetch }).responses.create(body),
};

for (const [dialect, send] of Object.entries(SEND)) {
  for (const { name, body, found, refused, repaired } of bodiesOf(dialect)) {
    test(`r73 ${dialect}: ${name} ${found && !refused ? 'is repaired' : 'passes unchanged'}`, async () => {
      const sent = [];
      const reports = [];
      const provider = async (input, init) => {
        sent.push(init?.body ?? (await input.text()));
        return Response.json({ output: [], content: [] });
      };
      const given = [];
      const inner = repairing({ fetch: provider, onRepair: (info) => reports.push(info) });
      await send(async (input, init) => {
        given.push(init.body);
        return inner(input, init);
      }, body);
      const text = typeof sent[0] === 'string' ? sent[0] : new TextDecoder().decode(sent[0]);
      assert.deepEqual(JSON.parse(given[0]), body, 'the SDK sends the body as it is');
      if (!found || refused) {
        assert.equal(text, given[0]);
      } else {
        assert.deepEqual(JSON.parse(text), repaired);
        assert.ok(reports.length, 'the repair is reported');
      }
    });
  }
}
