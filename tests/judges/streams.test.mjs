// The providers' own clients and our assembler read every recorded stream alike; where not, the reason stands here.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { StreamAssembler } from 'rethread';
import { streams } from './recorded.mjs';
import { sdks } from './sdks.mjs';

/** The dialects, and how many recordings each has at least. */
const LEAST = { 'openai-chat': 110, 'openai-responses': 55, anthropic: 50, gemini: 30, mistral: 10 };

/** Where the two may differ: in which dialect, why, when that is so, and what is not compared then. Where their client
 *  throws there is nothing to compare, and `when` says what ours makes of it. */
const DIFFERENCES = [
  {
    dialect: 'openai-chat',
    why: 'a stream without a finish_reason: their client throws, ours gives what came and calls it truncated',
    when: ({ own, theirs }) => /missing finish_reason/.test(theirs.thrown) && own.status === 'truncated',
  },
  ...['openai-chat', 'openai-responses'].map((dialect) => ({
    dialect,
    why: 'an error in the stream: their client throws it, ours gives it beside what came before',
    when: ({ own, theirs }) => own.status === 'failed' && theirs.thrown?.includes(own.error.message),
  })),
  {
    dialect: 'anthropic',
    why: 'a stream that ends before its message does: their client throws, ours calls it truncated',
    when: ({ own, theirs }) => /stream ended without producing/.test(theirs.thrown) && own.status === 'truncated',
  },
];

function ours(dialect, bytes) {
  const assembler = new StreamAssembler(dialect);
  assembler.push(bytes);
  const found = assembler.finish();
  return {
    text: found.text,
    calls: found.toolCalls.map((call) => {
      let value = call.arguments;
      try {
        value = JSON.parse(value || '{}');
      } catch {
        /* as it is */
      }
      return { id: call.callId, name: call.name, arguments: value };
    }),
    reason: found.finishReason,
    usage: found.usage ? [found.usage.inputTokens, found.usage.outputTokens] : null,
    status: found.status,
    error: found.error,
    wire: found.wire,
  };
}

for (const dialect of Object.keys(LEAST)) {
  test(`r44 ${dialect}: the provider's own client and StreamAssembler read the same message`, async (t) => {
    const used = new Set();
    const wrong = [];
    let same = 0;
    const files = streams(dialect);
    for (const { name, entry, bytes } of files) {
      const own = ours(dialect, bytes);
      let theirs;
      try {
        theirs = await sdks[dialect](bytes);
      } catch (error) {
        theirs = { thrown: String(error?.message ?? error) };
      }
      const known = DIFFERENCES.filter((row) => row.dialect === dialect && row.when({ name, entry, own, theirs }));
      known.forEach((row) => used.add(row));
      if (theirs.thrown) {
        if (!known.length) wrong.push(`${name}: their client throws: ${theirs.thrown.slice(0, 200)}`);
        continue;
      }
      const skipped = new Set(known.flatMap((row) => row.skip ?? []));
      const fields = ['text', 'calls', 'reason', 'usage'].filter(
        (field) => !skipped.has(field) && !(field === 'reason' && dialect === 'openai-responses'),
      );
      for (const field of fields) {
        try {
          assert.deepEqual(own[field], theirs[field]);
        } catch {
          wrong.push(
            `${name}: ${field}: ours ${JSON.stringify(own[field])?.slice(0, 300)}, theirs ${JSON.stringify(theirs[field])?.slice(0, 300)}`,
          );
        }
      }
      if (theirs.thinking) {
        const kept = own.wire?.content.filter((block) => /thinking/.test(block.type)) ?? [];
        if (JSON.stringify(kept) !== JSON.stringify(theirs.thinking)) wrong.push(`${name}: thinking`);
      }
      if (!known.length) same += 1;
    }
    [...used].forEach((row) => t.diagnostic(`listed: ${row.why}`));
    t.diagnostic(`${dialect}: ${files.length} streams, ${same} alike in everything, ${files.length - same} as listed`);
    assert.deepEqual(wrong, []);
    assert.ok(files.length >= LEAST[dialect], `${files.length} recorded streams, ${LEAST[dialect]} at least`);
    // A difference that is none any more must not stand here.
    if (!process.env.RETHREAD_DATA)
      assert.deepEqual(
        DIFFERENCES.filter((row) => row.dialect === dialect && !used.has(row)).map((row) => row.why),
        [],
      );
  });
}
