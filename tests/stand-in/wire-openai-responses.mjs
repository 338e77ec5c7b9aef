// The OpenAI responses shapes of an answer: named events of a stream, or one JSON body.

import { digest } from './signature.mjs';

export { notJson, statusBody } from './wire-openai-chat.mjs';

const now = () => Math.floor(Date.now() / 1000);
const usageOf = ({ usage, thinking }) => ({
  input_tokens: usage.input,
  input_tokens_details: { cached_tokens: 0 },
  output_tokens: usage.output,
  output_tokens_details: { reasoning_tokens: thinking ? 1 : 0 },
  total_tokens: usage.input + usage.output,
});

/** Output items as they are when whole. */
export function itemsOf(answer) {
  const idOf = (prefix, text) => `${prefix}_${digest(`${answer.id}:${text}`, 36)}`;
  const cut = answer.finish === 'max_output_tokens';
  const status = cut ? 'incomplete' : 'completed';
  const items = [];
  if (answer.thinking) {
    const reasoning = {
      id: idOf('rs', 'reasoning'),
      type: 'reasoning',
      summary: answer.thinking.text ? [{ type: 'summary_text', text: answer.thinking.text }] : [],
    };
    if (answer.body.include?.includes('reasoning.encrypted_content'))
      reasoning.encrypted_content = answer.thinking.redacted ?? answer.thinking.signature;
    items.push(reasoning);
  }
  if (answer.text) {
    items.push({
      id: idOf('msg', 'text'),
      type: 'message',
      status,
      role: 'assistant',
      content: [{ type: 'output_text', text: answer.text, annotations: [], logprobs: [] }],
    });
  }
  for (const [i, c] of answer.calls.entries()) {
    const item = {
      id: idOf('fc', `call:${i}`),
      type: 'function_call',
      status,
      call_id: c.id,
      name: c.name,
      arguments: c.text,
    };
    const isAsync = answer.body.tools?.some((tool) => tool.name === c.name && tool.async === true);
    items.push(isAsync ? { ...item, async: true } : item);
  }
  return items;
}

function responseOf(answer, { status, output, usage = null, error = null }) {
  const { body } = answer;
  return {
    id: answer.withoutId ? null : answer.id,
    object: 'response',
    created_at: now(),
    status,
    background: body.background === true,
    error,
    incomplete_details: status === 'incomplete' ? { reason: answer.finish } : null,
    instructions: body.instructions ?? null,
    max_output_tokens: body.max_output_tokens ?? null,
    max_tool_calls: null,
    model: answer.model,
    output,
    parallel_tool_calls: body.parallel_tool_calls ?? true,
    conversation: answer.conversation && { id: answer.conversation },
    previous_response_id: body.previous_response_id ?? null,
    reasoning: { effort: body.reasoning?.effort ?? null, summary: body.reasoning?.summary ?? null },
    safety_identifier: null,
    service_tier: 'default',
    store: body.store ?? true,
    temperature: 1,
    text: { format: { type: 'text' }, verbosity: 'medium' },
    tool_choice: body.tool_choice ?? 'auto',
    tools: body.tools ?? [],
    top_logprobs: 0,
    top_p: 1,
    truncation: 'disabled',
    usage,
    user: null,
    metadata: body.metadata ?? {},
    ...(answer.transformations && { input_transformations: answer.transformations }),
  };
}

const wholeStatus = ({ finish }) => (finish === 'completed' ? 'completed' : 'incomplete');

/** The events between the first and the last of one item, without their common members; `piece` marks those that carry
 *  content. */
function* innerEvents(item, answer) {
  const { id: item_id } = item;
  if (item.type === 'reasoning') {
    const [part] = item.summary;
    if (!part) return;
    const at = { item_id, summary_index: 0 };
    yield { type: 'response.reasoning_summary_part.added', ...at, part: { type: 'summary_text', text: '' } };
    for (const delta of answer.thinkingPieces)
      yield { type: 'response.reasoning_summary_text.delta', ...at, delta, piece: true };
    yield { type: 'response.reasoning_summary_text.done', ...at, text: part.text };
    yield { type: 'response.reasoning_summary_part.done', ...at, part };
  } else if (item.type === 'message') {
    const [part] = item.content;
    const at = { item_id, content_index: 0 };
    yield { type: 'response.content_part.added', ...at, part: { ...part, text: '' } };
    for (const delta of answer.pieces)
      yield { type: 'response.output_text.delta', ...at, delta, logprobs: [], piece: true };
    yield { type: 'response.output_text.done', ...at, text: part.text, logprobs: [] };
    yield { type: 'response.content_part.done', ...at, part };
  } else {
    const { pieces } = answer.calls.find((c) => c.id === item.call_id);
    for (const delta of pieces) yield { type: 'response.function_call_arguments.delta', item_id, delta, piece: true };
    yield { type: 'response.function_call_arguments.done', item_id, name: item.name, arguments: item.arguments };
  }
}

/** An item as it is when it begins. */
function begun(item) {
  if (item.type === 'reasoning') return { ...item, summary: [] };
  if (item.type === 'message') return { ...item, status: 'in_progress', content: [] };
  return { ...item, status: 'in_progress', arguments: '' };
}

/** Frames in order; `piece` marks those that carry content, `done` has the item that a frame ends. `terminal: false`
 *  leaves the end away. */
export function* frames(answer, { terminal = true } = {}) {
  let sequence = 0;
  const frame = ({ piece = false, done, ...data }) => {
    const numbered = { ...data, sequence_number: sequence };
    sequence += 1;
    return { piece, done, bytes: Buffer.from(`event: ${data.type}\ndata: ${JSON.stringify(numbered)}\n\n`) };
  };
  const opening = responseOf(answer, { status: 'in_progress', output: [] });
  yield frame({ type: 'response.created', response: opening });
  yield frame({ type: 'response.in_progress', response: opening });
  const items = itemsOf(answer);
  for (const [output_index, item] of items.entries()) {
    yield frame({ type: 'response.output_item.added', output_index, item: begun(item) });
    for (const event of innerEvents(item, answer)) yield frame({ output_index, ...event });
    if (!terminal && output_index === items.length - 1) return; // an error comes while it is being written
    yield frame({ type: 'response.output_item.done', output_index, item, done: item });
  }
  if (!terminal) return;
  const status = wholeStatus(answer);
  yield frame({
    type: `response.${status}`,
    response: responseOf(answer, { status, output: items, usage: usageOf(answer) }),
  });
}

export function whole(answer) {
  return responseOf(answer, { status: wholeStatus(answer), output: itemsOf(answer), usage: usageOf(answer) });
}

/** A background response on which the service works. */
export const background = (answer, status) => responseOf(answer, { status, output: [] });

export const inBandError = (given) => {
  const data = {
    type: 'error',
    sequence_number: 99,
    code: 'server_error',
    message: 'The server had an error while processing your request. Sorry about that!',
    param: null,
    ...given,
  };
  return { piece: false, bytes: Buffer.from(`event: error\ndata: ${JSON.stringify(data)}\n\n`) };
};
