// Random answers as chunks of the `ai` package, of every type.

const WORDS = ['Hello', ' world', '', ' 🦀', '.\n', '"x"'];
const providerMetadata = { anthropic: { signature: 'c2ln' } };

function words(random, type, id) {
  const deltas = Array.from({ length: 1 + random.below(4) }, () => random.one(WORDS));
  return [
    { type: `${type}-start`, id, ...random.maybe(() => ({ providerMetadata })) },
    ...deltas.map((delta) => ({ type: `${type}-delta`, id, delta })),
    { type: `${type}-end`, id, ...random.maybe(() => ({ providerMetadata })) },
  ];
}

function output(random, toolCallId, approvalId) {
  const outputs = [
    () => [],
    () => [
      {
        type: 'tool-output-available',
        toolCallId,
        output: { n: random.below(9) },
        ...random.maybe(() => ({ providerMetadata })),
      },
    ],
    () => [
      { type: 'tool-output-available', toolCallId, output: 'half', preliminary: true },
      { type: 'tool-output-available', toolCallId, output: 'whole' },
    ],
    () => [{ type: 'tool-output-error', toolCallId, errorText: 'broken' }],
    () => [{ type: 'tool-approval-request', toolCallId, approvalId, signature: 'c2ln' }],
    () => [
      { type: 'tool-approval-request', toolCallId, approvalId, isAutomatic: true },
      { type: 'tool-approval-response', approvalId, approved: false, reason: 'no' },
      { type: 'tool-output-denied', toolCallId },
    ],
    () => [
      { type: 'tool-approval-request', toolCallId, approvalId, reason: 'why' },
      { type: 'tool-approval-response', approvalId, approved: true },
      { type: 'tool-output-available', toolCallId, output: null },
    ],
  ];
  return random.one(outputs)();
}

function tool(random, name) {
  const call = { toolCallId: `call-${name}`, toolName: 'look', ...random.one([{}, { dynamic: true }]) };
  const input = { of: random.below(9), text: 'x' };
  const json = JSON.stringify(input);
  const begun = [
    { type: 'tool-input-start', ...call, ...random.maybe(() => ({ title: 'Look' })) },
    { type: 'tool-input-delta', toolCallId: call.toolCallId, inputTextDelta: json.slice(0, 6) },
    { type: 'tool-input-delta', toolCallId: call.toolCallId, inputTextDelta: json.slice(6) },
  ];
  if (!random.below(6))
    return [...begun, { type: 'tool-input-error', ...call, input: 'no JSON', errorText: 'wrong input' }];
  return [
    ...(random.below(3) ? begun : []),
    {
      type: 'tool-input-available',
      ...call,
      input,
      ...random.maybe(() => ({ providerMetadata })),
      ...random.maybe(() => ({ providerExecuted: true })),
    },
    ...output(random, call.toolCallId, `approval-${name}`),
  ];
}

/** The chunks of one step. `version`: those that this one of `ai` knows. */
function stepOf(random, name, version) {
  const kinds = [
    () => words(random, 'text', `t-${name}`),
    () => words(random, 'reasoning', `r-${name}`),
    () => tool(random, name),
    () => tool(random, name),
    () => [{ type: 'source-url', sourceId: 's', url: 'https://example.com', title: 'Title' }],
    () => [{ type: 'source-document', sourceId: 's', mediaType: 'text/plain', title: 'Title' }],
    () => [{ type: 'file', mediaType: 'image/png', url: 'data:image/png;base64,AAAA' }],
    () => [
      { type: 'data-progress', id: 'p', data: random.below(100) },
      { type: 'data-note', data: 'seen', transient: true },
      { type: 'data-note', data: 'kept' },
    ],
    () => [{ type: 'message-metadata', messageMetadata: { [random.one(['a', 'b'])]: random.below(9) } }],
  ];
  if (version === 7)
    kinds.push(
      () => [{ type: 'custom', kind: 'openai.compaction', providerMetadata }],
      () => [{ type: 'reasoning-file', mediaType: 'image/png', url: 'data:image/png;base64,AAAA' }],
      () => [{ type: 'steering-message', id: 'u', parts: [{ type: 'text', text: 'also' }] }],
      () => [...words(random, 'text', `lost-${name}`), { type: 'reset-step' }],
    );
  const chunks = Array.from({ length: 1 + random.below(4) }, (_, at) => [random.one(kinds), `${name}-${at}`]).flatMap(
    ([make, id]) => renamed(make(), id),
  );
  return [{ type: 'start-step' }, ...chunks, ...words(random, 'text', `last-${name}`), { type: 'finish-step' }];
}

/** Ids are unique in an answer: texts and calls get the name of their place. */
function renamed(chunks, name) {
  return chunks.map((chunk) => ({
    ...chunk,
    ...(/^(text|reasoning)-/.test(chunk.type) ? { id: `${chunk.id}-${name}` } : {}),
    ...(chunk.toolCallId ? { toolCallId: `${chunk.toolCallId}-${name}` } : {}),
    ...(chunk.approvalId ? { approvalId: `${chunk.approvalId}-${name}` } : {}),
  }));
}

/** A whole answer. */
export function answerOf(random, messageId, version) {
  const steps = Array.from({ length: 1 + random.below(3) }, (_, at) => stepOf(random, `${messageId}-${at}`, version));
  return [
    { type: 'start', messageId, ...random.maybe(() => ({ messageMetadata: { a: 0 } })) },
    ...steps.flat(),
    { type: 'finish', finishReason: 'stop', ...random.maybe(() => ({ messageMetadata: { tokens: 7 } })) },
  ];
}
