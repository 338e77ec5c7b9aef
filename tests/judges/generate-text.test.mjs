// The `ai` package takes what a repair gives: its `generateText` refuses unanswered and displaced calls by rules of its
// own.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { generateText } from 'ai';
import { MockLanguageModelV3 } from 'ai/test';
import { convert, repair } from 'rethread';
import { brokenBody } from './broken.mjs';
import { messagesOf } from './messages.mjs';
import { requests } from './recorded.mjs';

/** The dialects, and how many recorded requests each has at least. */
const LEAST = { 'openai-chat': 170, 'openai-responses': 130, anthropic: 120, gemini: 100, mistral: 30 };
const DIALECTS = Object.keys(LEAST);
const CASES = Number(process.env.RETHREAD_CASES ?? (process.env.RETHREAD_LONG ? 2000 : 500));
const SEED = Number(process.env.RETHREAD_SEED ?? 20261121);

/** The member of a body that holds its messages. */
const LIST = {
  'openai-chat': 'messages',
  'openai-responses': 'input',
  anthropic: 'messages',
  gemini: 'contents',
  mistral: 'messages',
};

/** True if a repair left no message. An empty list breaks no rule, so `ai` cannot tell. */
const isEmptied = (body, from, repaired, to) => body[LIST[from]].length > 0 && repaired[LIST[to]].length === 0;

const isResult = ({ role, type, functionResponse }) =>
  role === 'tool' || role === 'function' || /_(?:output|result)$/.test(type) || Boolean(functionResponse);

/** True if somebody says something in a message: results without their calls are not sent, and nor is a body of nothing
 *  else. */
function saysSomething(value) {
  if (typeof value !== 'object' || value === null || isResult(value)) return false;
  const { role, content, text } = value;
  const isSaid = (words) => typeof words === 'string' && words.trim() !== '';
  return isSaid(text) || (typeof role === 'string' && isSaid(content)) || Object.values(value).some(saysSomething);
}

/** Bodies that their own provider takes and `ai` does not, and why. */
const REFUSED = [
  {
    dialect: 'gemini',
    why: 'Gemini counts the responses of a content, and takes words in it; `ai` wants every result before the next words',
    when: ({ body, why }) =>
      /MissingToolResults/.test(why) &&
      body.contents.some(({ parts }) => {
        const kinds = parts.map((part) => 'functionResponse' in part);
        return kinds.indexOf(false) >= 0 && kinds.indexOf(false) < kinds.lastIndexOf(true);
      }),
  },
];

const model = new MockLanguageModelV3({
  supportedUrls: { '*/*': [/.*/] },
  doGenerate: async () => ({
    content: [{ type: 'text', text: 'taken' }],
    finishReason: { unified: 'stop', raw: undefined },
    usage: {
      inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
      outputTokens: { total: 1, text: 1, reasoning: 0 },
    },
    warnings: [],
  }),
});

/** Why `ai` refuses a body; nothing where it takes it. */
async function verdict(dialect, body) {
  let messages;
  try {
    messages = messagesOf[dialect](body);
  } catch (error) {
    return `cannot be mapped: ${error.message}`;
  }
  if (!messages.length) return null;
  try {
    await generateText({ model, messages, allowSystemInMessages: true, maxRetries: 0 });
    return null;
  } catch (error) {
    return `${error.name}: ${error.message}`;
  }
}

async function judge(t, dialect, bodies, from = dialect) {
  const wrong = [];
  const [taken, before, emptied] = [[], [], []];
  const used = new Set();
  for (const { name, body } of bodies) {
    if (await verdict(from, body)) before.push(name);
    let mended;
    try {
      mended = from === dialect ? repair(body, dialect).body : convert(body, from, dialect).body;
    } catch (error) {
      // Calls and results without each other, and nothing else.
      if (!/^Nothing would be left/.test(error.message) || saysSomething(body[LIST[from]])) throw error;
      emptied.push(name);
      continue;
    }
    const isEmpty = isEmptied(body, from, mended, dialect);
    if (isEmpty && !saysSomething(body[LIST[from]])) {
      emptied.push(name);
      continue;
    }
    const why = isEmpty ? 'no message is left' : await verdict(dialect, mended);
    const known = why && REFUSED.find((row) => row.dialect === dialect && row.when({ name, why, body: mended }));
    if (known) used.add(known);
    else if (why) wrong.push(`${name}: ${why.slice(0, 300)}\n${JSON.stringify(mended).slice(0, 1500)}`);
    else taken.push(name);
  }
  t.diagnostic(
    `${dialect}: ${bodies.length} bodies, ${before.length} refused as they were, ${taken.length} taken afterwards, ${bodies.length - taken.length - wrong.length - emptied.length} refused as listed, ${emptied.length} had nothing to send`,
  );
  assert.equal(wrong.length, 0, `${wrong.length} refused:\n${wrong.slice(0, 5).join('\n')}`);
  return { before, used };
}

for (const dialect of DIALECTS) {
  test(`r41 ${dialect}: every broken body is accepted after repair`, async (t) => {
    t.diagnostic(`RETHREAD_SEED=${SEED}`);
    const bodies = Array.from({ length: CASES }, (_, at) => ({
      name: `seed ${SEED + at}`,
      body: brokenBody(dialect, SEED + at),
    }));
    const { before } = await judge(t, dialect, bodies);
    // A judge that refuses nothing says nothing.
    assert.ok(before.length > CASES / 10, 'the bodies are not broken enough');
  });

  test(`r40 ${dialect}: every recorded request is accepted`, async (t) => {
    const recorded = requests(dialect);
    assert.ok(recorded.length >= LEAST[dialect], `${recorded.length} recorded requests, ${LEAST[dialect]} at least`);
    await judge(t, dialect, recorded);
  });

  for (const from of DIALECTS.filter((other) => other !== dialect)) {
    test(`r42 ${dialect}: a conversion from ${from} is accepted`, async (t) => {
      const broken = Array.from({ length: CASES / 8 }, (_, at) => ({
        name: `seed ${SEED + at}`,
        body: brokenBody(from, SEED + at),
      }));
      await judge(t, dialect, [...broken, ...requests(from)], from);
    });
  }
}
