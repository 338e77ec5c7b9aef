// Random UI messages of the `ai` package, with parts of every type and calls in every state.

/** Numbers below 2^32 from a seed (mulberry32). */
export function seeded(seed) {
  let state = seed >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return (mixed ^ (mixed >>> 14)) >>> 0;
  };
  const below = (limit) => next() % limit;
  const one = (list) => list[below(list.length)];
  return { below, one, maybe: (make) => (below(2) ? make() : {}) };
}

const TEXTS = ['', 'Hello', 'Grüße 🦀', ' two\nlines ', '"quoted" \\ {', 'The answer is 42.'];
const NAMES = ['look', 'get_weather', 'mcp__server__tool', 'Größe'];

function jsonOf(random, depth = 0) {
  const { below, one } = random;
  const kind = below(depth > 2 ? 5 : 7);
  if (kind === 5) return Array.from({ length: below(3) }, () => jsonOf(random, depth + 1));
  if (kind === 6)
    return Object.fromEntries(['a', 'type', 'text'].slice(below(4)).map((key) => [key, jsonOf(random, depth + 1)]));
  return [one(TEXTS), below(1000), -1.5e21, null, below(2) === 1][kind];
}

const objectOf = (random) => ({ given: jsonOf(random) });
const providerOf = (random) => ({ anthropic: { signature: random.one(TEXTS), nested: { at: random.below(9) } } });

function approvalOf(random, answer) {
  const { one, maybe } = random;
  return {
    id: `approval-${random.below(1e9)}`,
    ...maybe(() => ({ descriptor: objectOf(random) })),
    ...maybe(() => ({ requestReason: one(TEXTS) })),
    ...maybe(() => ({ isAutomatic: random.below(2) === 1 })),
    ...maybe(() => ({ signature: 'c2lnbmF0dXJl' })),
    ...maybe(() => ({ inputSchemaInput: objectOf(random) })),
    ...(answer === undefined ? {} : { approved: answer, ...maybe(() => ({ reason: one(TEXTS) })) }),
  };
}

const STATES = {
  'input-streaming': (random) => ({
    ...random.maybe(() => ({ input: objectOf(random) })),
    ...random.maybe(() => ({ rawInput: '{"given": "ha', inputEncoding: 'json' })),
  }),
  'input-available': (random) => ({ input: jsonOf(random) }),
  'approval-requested': (random) => ({ input: objectOf(random), approval: approvalOf(random) }),
  'approval-responded': (random) => ({ input: objectOf(random), approval: approvalOf(random, random.below(2) === 1) }),
  'output-available': (random) => ({
    input: jsonOf(random),
    output: jsonOf(random),
    ...random.maybe(() => ({ preliminary: random.below(2) === 1 })),
    ...random.maybe(() => ({ resultProviderMetadata: providerOf(random) })),
    ...random.maybe(() => ({ approval: approvalOf(random, true) })),
  }),
  'output-error': (random) => ({
    ...random.one([{ input: objectOf(random) }, { rawInput: '{"given": "ha' }, { rawInput: objectOf(random) }]),
    errorText: random.one(TEXTS),
    ...random.maybe(() => ({ approval: approvalOf(random, true) })),
  }),
  'output-denied': (random) => ({ input: objectOf(random), approval: approvalOf(random, false) }),
};
export const TOOL_STATES = Object.keys(STATES);

function toolOf(random, state = random.one(TOOL_STATES)) {
  const { one, maybe } = random;
  const name = one(NAMES);
  return {
    ...(random.below(2)
      ? { type: `tool-${name}` }
      : { type: 'dynamic-tool', toolName: name, ...maybe(() => ({ dynamic: false })) }),
    toolCallId: `call-${random.below(1e9)}`,
    state,
    ...maybe(() => ({ title: one(TEXTS) })),
    ...maybe(() => ({ toolMetadata: objectOf(random) })),
    ...maybe(() => ({ providerExecuted: random.below(2) === 1 })),
    ...maybe(() => ({ callProviderMetadata: providerOf(random) })),
    ...STATES[state](random),
  };
}

const textOf = (random) => ({
  type: 'text',
  text: random.one(TEXTS),
  ...random.maybe(() => ({ state: random.one(['streaming', 'done']) })),
  ...random.maybe(() => ({ providerMetadata: providerOf(random) })),
});

const URLS = [
  'https://example.com/a.png',
  'data:image/png;base64,iVBORw0KGgo=',
  'data:image/svg+xml;charset=utf-8;base64,PHN2Zy8+',
  'data:text/plain,hello%20there',
];

const fileOf = (random) => ({
  type: 'file',
  mediaType: random.one(['image/png', 'image', 'application/pdf', 'text/plain']),
  url: random.one(URLS),
  ...random.maybe(() => ({ filename: 'a.png' })),
  ...random.maybe(() => ({ providerReference: { openai: 'file-1' } })),
  ...random.maybe(() => ({ providerMetadata: providerOf(random) })),
});

const dataOf = (random) => ({
  type: `data-${random.one(['weather', 'rethread/ai-sdk', 'x'])}`,
  ...random.maybe(() => ({ id: 'd1' })),
  data: jsonOf(random),
});

/** The parts that each version of `ai` knows. */
const PARTS = {
  6: {
    text: textOf,
    reasoning: (random) => ({ ...textOf(random), type: 'reasoning', ...random.maybe(() => ({ id: 'r1' })) }),
    tool: (random) => toolOf(random),
    'source-url': (random) => ({
      type: 'source-url',
      sourceId: 's',
      url: 'https://example.com',
      ...random.maybe(() => ({ title: random.one(TEXTS) })),
    }),
    'source-document': (random) => ({
      type: 'source-document',
      sourceId: 's',
      mediaType: 'text/plain',
      title: random.one(TEXTS),
      ...random.maybe(() => ({ filename: 'f' })),
    }),
    file: fileOf,
    data: dataOf,
    'step-start': () => ({ type: 'step-start' }),
  },
  7: {
    custom: (random) => ({ type: 'custom', kind: 'openai.compaction', providerMetadata: providerOf(random) }),
    'reasoning-file': () => ({ type: 'reasoning-file', mediaType: 'image/png', url: URLS[1] }),
    'steering-message': (random) => ({
      type: 'steering-message',
      id: 'u',
      parts: [{ type: 'text', text: random.one(TEXTS) }],
    }),
  },
  /** A version that is still to come. */
  8: { hologram: (random) => ({ type: 'hologram', depth: jsonOf(random), state: 'done' }) },
};

/** A message with one to nine parts of those that `version` knows. */
function messageOf(random, at, version) {
  const { below, one, maybe } = random;
  const role = at === 0 && !below(4) ? 'system' : one(['user', 'assistant', 'assistant']);
  const kinds = Object.assign({}, ...[6, 7, 8].filter((known) => known <= version).map((known) => PARTS[known]));
  const ofRole = role === 'assistant' ? Object.values(kinds) : role === 'user' ? [textOf, fileOf, dataOf] : [textOf];
  return {
    id: `message-${at}-${below(1e6)}`,
    role,
    ...maybe(() => ({ metadata: one([objectOf(random), null, 'a text']) })),
    parts: Array.from({ length: 1 + below(9) }, () => one(ofRole)(random)),
  };
}

/** A chat of UI messages that `ai` of the version takes. */
export const chatOf = (random, version) =>
  Array.from({ length: 1 + random.below(5) }, (_, at) => messageOf(random, at, version));

/** A message with a call in each state, as a static and as a dynamic tool. */
export const everyState = (random) => TOOL_STATES.flatMap((state) => [0, 1, 2, 3].map(() => toolOf(random, state)));
