// Random messages of TanStack AI, with parts of every type and calls in every state.

const TEXTS = ['', 'Hello', 'Grüße 🦀', ' two\nlines ', '"quoted" \\ {', 'The answer is 42.'];
const NAMES = ['look', 'get_weather', 'mcp__server__tool'];
const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

const dateOf = ({ below }) => new Date(1_795_000_000_000 + below(1e9));

function someValue({ below, one }) {
  return [one(TEXTS), below(1000), null, { given: one(TEXTS), at: below(9) }, [1, one(TEXTS)]][below(5)];
}

/** A source of media: bytes, their data URL, an address, and what no provider can read. */
function sourceOf({ one, maybe }, mimeType) {
  return one([
    { type: 'data', value: PNG, mimeType },
    { type: 'url', value: `data:${mimeType};base64,${PNG}` },
    { type: 'url', value: 'https://example.com/a', ...maybe(() => ({ mimeType })) },
    { type: 'url', value: 'blob:https://example.com/1' },
    { type: 'data', value: 'no base64!', mimeType },
    { type: 'file-id', value: 'file_1', provider: 'p' },
  ]);
}

const MEDIA = { image: 'image/png', audio: 'audio/mpeg', video: 'video/mp4', document: 'application/pdf' };
const media = (type) => (random) => ({
  type,
  source: sourceOf(random, MEDIA[type]),
  ...random.maybe(() => ({ metadata: { detail: someValue(random) } })),
});

const textPart = (random) => ({
  type: 'text',
  content: random.one(TEXTS),
  ...random.maybe(() => ({ metadata: { cache: random.one(TEXTS) } })),
});

const CONTENT = { text: textPart, ...Object.fromEntries(Object.keys(MEDIA).map((type) => [type, media(type)])) };

const STATES = ['awaiting-input', 'input-streaming', 'input-complete', 'approval-requested', 'approval-responded'];

function openCall(random, call) {
  const state = random.one(STATES);
  const approval = { id: `approval_${call.id}`, needsApproval: true };
  if (state === 'approval-requested') return [{ ...call, state, approval }];
  if (state === 'approval-responded')
    return [{ ...call, state, approval: { ...approval, approved: random.below(2) === 1 } }];
  return [{ ...call, state, ...(random.below(2) && state.startsWith('input-s') ? { arguments: '{"gi' } : {}) }];
}

/** A result of a call: text, JSON of its output, parts, an error, one that is still arriving, or its output alone. */
function answeredCall(random, call) {
  const output = someValue(random);
  const result = { type: 'tool-result', toolCallId: call.id, ...random.maybe(() => ({ createdAt: dateOf(random) })) };
  const complete = { ...call, state: 'complete', output };
  const content = typeof output === 'string' ? output : JSON.stringify(output);
  return random.one([
    [complete, { ...result, content, state: 'complete' }],
    [
      { ...call, state: 'input-complete' },
      { ...result, content, state: 'complete', name: call.name },
    ],
    [
      { ...call, state: 'error', output: { error: 'no such city' } },
      { ...result, content: '{"error":"no such city"}', state: 'error', error: 'no such city' },
    ],
    [complete, { ...result, content: [textPart(random), CONTENT.image(random)], state: 'complete' }],
    [complete, { ...result, content: [textPart(random), textPart(random)], state: 'complete', metadata: { a: 1 } }],
    [
      { ...call, state: 'input-complete' },
      { ...result, content: 'arr', state: 'streaming' },
    ],
    [complete],
    [{ ...call, state: 'error', output: { error: 'broken' } }],
    [
      { ...complete, approval: { id: `approval_${call.id}`, needsApproval: true, approved: true } },
      { ...result, content, state: 'complete', id: `result_${call.id}` },
    ],
  ]);
}

function callParts(random, id) {
  const input = random.one([{}, { given: random.one(TEXTS) }, { given: random.below(9) }]);
  const call = {
    type: 'tool-call',
    id,
    name: random.one(NAMES),
    arguments: random.one([
      JSON.stringify(input),
      JSON.stringify(input, null, 1),
      Object.keys(input).length ? '{ }' : '',
    ]),
    ...random.maybe(() => ({ input })),
    ...random.maybe(() => ({ metadata: { thoughtSignature: 'c2ln', toolSource: { type: 'mcp' } } })),
  };
  return random.below(3) ? answeredCall(random, call) : openCall(random, call);
}

const structured = (random) =>
  random.one([
    { type: 'structured-output', status: 'complete', raw: '{"a":1}', data: { a: 1 }, partial: { a: 1 } },
    { type: 'structured-output', status: 'streaming', raw: '{"a":', partial: {} },
    { type: 'structured-output', status: 'error', raw: '', errorMessage: 'broken' },
  ]);
const resource = (random) => ({
  type: 'ui-resource',
  resource: { uri: 'ui://a/b', mimeType: 'text/html', text: random.one(TEXTS) },
  toolCallId: 'call_none',
  toolName: 'look',
});
const unknown = (random) => ({ type: random.one(['hologram', 'data']), name: 'x', value: someValue(random) });
const thinking = (random) => ({
  type: 'thinking',
  content: random.one(TEXTS),
  ...random.maybe(() => ({ stepId: 's1', signature: 'c2lnbmVk' })),
});

/** The parts of an answer. `id` names its calls. */
function answerParts(random, id) {
  const steps = Array.from({ length: random.below(6) }, (_, at) =>
    random.one([
      () => [textPart(random)],
      () => [thinking(random)],
      () => callParts(random, `${id}_${at}`),
      () => {
        const both = [callParts(random, `${id}_${at}a`), callParts(random, `${id}_${at}b`)];
        return [...both.map(([call]) => call), ...both.flatMap(([, ...results]) => results)];
      },
      () => [structured(random)],
      () => [resource(random)],
      () => [unknown(random)],
      () => [CONTENT.image(random)],
    ])(),
  );
  return steps.flat();
}

/** A random chat. */
export function chatOf(random) {
  const messages = Array.from({ length: 1 + random.below(7) }, (_, at) => {
    const role = at === 0 && random.below(4) === 0 ? 'system' : random.one(['user', 'assistant']);
    const parts =
      role === 'assistant'
        ? answerParts(random, `call_${at}`)
        : Array.from({ length: 1 + random.below(3) }, () =>
            role === 'system' ? textPart(random) : random.one(Object.values(CONTENT))(random),
          );
    return {
      id: `msg-${at}`,
      role,
      parts,
      ...random.maybe(() => ({ createdAt: dateOf(random) })),
      ...random.maybe(() => ({ name: random.one(['ada', 'bob']) })),
      ...random.maybe(() => ({ metadata: { author: someValue(random), tanstack: { model: 'm' } } })),
    };
  });
  return messages;
}
