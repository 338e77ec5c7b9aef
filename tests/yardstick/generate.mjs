// Writes tests/yardstick/vectors.jsonl from docs/rules and tests/bodies.
//
//   node tests/yardstick/generate.mjs

import { readFileSync, writeFileSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import { fileURLToPath } from 'node:url';
import { commonFacts, factsOf, leaves } from './facts.mjs';
import { neutralOf } from './neutral.mjs';
import { bodiesOfToday, DIALECTS, pageExamples } from './pages.mjs';

const file = new URL('vectors.jsonl', import.meta.url);
/** The models of URLs: the bodies of these dialects have none. */
const MODELS = { gemini: 'gemini-2.5-flash', bedrock: 'us.anthropic.claude-haiku-4-5-20251001-v1:0' };

const slug = (title) =>
  title
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '');

/** The tools that the conversation has called, or the one whose results it has: an application declares them. */
function toolsOf(messages) {
  const names = messages.flatMap(({ parts }) =>
    parts.flatMap((part) => (part.type === 'call' || part.type === 'result' ? (part.name ?? []) : [])),
  );
  const hasResults = messages.some(({ role }) => role === 'tool');
  return [...new Set(names.length || !hasResults ? names : ['get_weather'])];
}

function given(body, dialect) {
  const { model, modelId, ...rest } = body;
  const read = neutralOf(body, dialect);
  const isNamedInAddress = dialect in MODELS;
  return {
    model: model ?? modelId ?? MODELS[dialect],
    body: isNamedInAddress ? rest : body,
    ...read,
    ...(read.messages && { tools: toolsOf(read.messages) }),
  };
}

/** What must be true of what is sent. `body` is one way to do it, as it is sent. */
function right(kind, { before, after }, dialect) {
  if (kind === 'refused') return { outcome: 'nothing_to_send', keeps: { texts: [], calls: [] } };
  if (kind === 'fragile' || kind === 'valid') return { outcome: 'unchanged', keeps: factsOf(before) };
  const { model, modelId, ...rest } = after ?? before;
  const body = dialect in MODELS ? rest : after;
  if (kind === 'broken') return { outcome: 'accepted', keeps: commonFacts(before, after), body };
  if (!after) return { outcome: 'not_repeated', keeps: factsOf(before) };
  return { outcome: 'healed', keeps: commonFacts(before, after), atMost: withheld(before, after), body };
}

/** How often each value may stand in the repeated request that stood in the first one more often. */
function withheld(before, after) {
  const left = leaves(after);
  const less = [...leaves(before)].filter(([leaf, times]) => (left.get(leaf) ?? 0) < times);
  return Object.fromEntries(less.map(([leaf]) => [leaf, left.get(leaf) ?? 0]));
}

/** Of several results of one call any one may be sent: `[[text, text], …]`. */
function alternatives(messages = []) {
  const texts = new Map();
  for (const { parts } of messages)
    for (const { type, id, text } of parts) if (type === 'result') texts.set(id, [...(texts.get(id) ?? []), text]);
  return [...texts.values()].filter((list) => list.length > 1);
}

function withAlternatives(vector) {
  if (vector.rule !== 'duplicate_result') return vector;
  const oneOf = alternatives(vector.given.messages);
  const { keeps } = vector.right;
  const texts = keeps.texts.filter((text) => !oneOf.flat().includes(text));
  return { ...vector, right: { ...vector.right, keeps: { ...keeps, texts, oneOf } } };
}

function fromPage(dialect) {
  return pageExamples(dialect).map(({ rule, title, says, source, kind, blocks }) => ({
    id: [dialect, rule, title && slug(title)].filter(Boolean).join('/'),
    dialect,
    rule,
    ...(title && { title }),
    given: given(blocks[kind], dialect),
    provider: {
      accepts: kind === 'fragile',
      ...(says && { says }),
      ...(blocks.answer && { answer: blocks.answer }),
    },
    right: right(kind, { before: blocks[kind], after: blocks.repaired ?? blocks.healed }, dialect),
    source,
    page: `docs/rules/${dialect}.md`,
  }));
}

function fromBodies(dialect) {
  return bodiesOfToday(dialect).map(({ name, source, body, found, warned, repaired, refused }) => {
    const kind = refused ? 'refused' : found ? 'broken' : 'valid';
    return {
      id: [dialect, '2026-11', slug(name)].join('/'),
      dialect,
      rule: (found ?? warned)?.[0] ?? 'valid',
      title: name,
      given: given(body, dialect),
      provider: { accepts: !found },
      right: right(kind, { before: body, after: repaired }, dialect),
      source,
      page: `tests/bodies/${dialect}.json`,
    };
  });
}

/** What a source says of a rule that is from a schema or an SDK. */
const UNCONFIRMED = /not confirmed by a recorded refusal|wording of a refusal is not recorded/;

/** Says of a refusal that nobody has recorded that it is so. */
function withConfirmation(vector) {
  if (vector.provider.accepts || !UNCONFIRMED.test(vector.source)) return vector;
  return { ...vector, provider: { ...vector.provider, unconfirmed: true } };
}

/** Ids that occur twice get a number. */
function numbered(vectors) {
  const seen = new Map();
  return vectors.map((vector) => {
    const times = (seen.get(vector.id) ?? 0) + 1;
    seen.set(vector.id, times);
    return times > 1 ? { ...vector, id: `${vector.id}-${times}` } : vector;
  });
}

export const readVectors = () =>
  readFileSync(file, 'utf8')
    .trim()
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line));

/** All vectors. One that says what it said `before` keeps its date; another gets `today`. */
export function makeVectors(before, today) {
  const old = new Map(before.map(({ date, ...vector }) => [vector.id, { date, vector }]));
  const made = numbered(Object.keys(DIALECTS).flatMap((dialect) => [...fromPage(dialect), ...fromBodies(dialect)]));
  return made.map((one) => {
    const vector = JSON.parse(JSON.stringify(withConfirmation(withAlternatives(one))));
    const known = old.get(vector.id);
    return { ...vector, date: known && isDeepStrictEqual(known.vector, vector) ? known.date : today };
  });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  let before = [];
  try {
    before = readVectors();
  } catch (error) {
    if (error.code !== 'ENOENT') throw error;
  }
  const vectors = makeVectors(before, new Date().toISOString().slice(0, 10));
  writeFileSync(file, `${vectors.map((vector) => JSON.stringify(vector)).join('\n')}\n`);
  const asMessages = vectors.filter(({ given: { messages } }) => messages).length;
  console.log(`${vectors.length} vectors, ${asMessages} of them as neutral messages too`);
}
