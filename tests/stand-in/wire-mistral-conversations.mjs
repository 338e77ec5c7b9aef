// The shapes of an answer of Mistral's conversations: events of a stream, or one JSON body (client-ts,
// `ConversationEventsData` and `ConversationResponse`, read on 2026-11-28). Recorded answers (braintrust-sdk-python,
// 2026) also have `function` in executions and `closed` in reasoning, which no schema of a request has.

export { notJson, statusBody } from './wire-mistral.mjs';

const frame = (data, piece = false) => ({
  piece,
  bytes: Buffer.from(`event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`),
});
const usageOf = ({ usage }) => ({
  prompt_tokens: usage.input,
  completion_tokens: usage.output,
  total_tokens: usage.input + usage.output,
});
const thinkingChunk = (text) => ({ type: 'thinking', thinking: [{ type: 'text', text }], closed: true });
/** What precedes the message of an answer: a handoff, and executions of Mistral's own tools. */
const entriesBefore = ({ id, handoff, executions }) => [
  ...(handoff
    ? [
        {
          type: 'agent.handoff',
          id: `handoff_${id}`,
          begin: { previous_agent_id: `ag_${handoff.from}`, previous_agent_name: handoff.from },
          end: { next_agent_id: `ag_${handoff.to}`, next_agent_name: handoff.to },
        },
      ]
    : []),
  ...executions.map(({ name, arguments: given, info }, at) => ({
    type: 'tool.execution',
    id: `tool_${at}_${id}`,
    begin: { name, function: name },
    pieces: [JSON.stringify(given).slice(0, 4), JSON.stringify(given).slice(4)],
    end: { info },
  })),
];
const now = () => new Date().toISOString();
const conversationOf = (answer) => `conv_${answer.id}`;

/** Frames in order; `piece` marks those that carry content. `terminal: false` leaves the end away. */
export function* frames(answer, { terminal = true } = {}) {
  const at = { created_at: now(), model: answer.model };
  yield frame({
    type: 'conversation.response.started',
    created_at: at.created_at,
    conversation_id: conversationOf(answer),
  });
  const before = entriesBefore(answer);
  for (const [output_index, { type, id, begin, pieces = [], end }] of before.entries()) {
    const isExecution = type === 'tool.execution';
    // A handoff names no model.
    const entry = { created_at: at.created_at, ...(isExecution && { model: at.model }), output_index, id };
    const open = isExecution ? { ...begin, arguments: '' } : begin;
    yield frame({ type: `${type}.started`, ...entry, ...open });
    for (const piece of pieces) yield frame({ type: `${type}.delta`, ...entry, ...begin, arguments: piece });
    yield frame({ type: `${type}.done`, ...entry, ...(isExecution && begin), ...end });
  }
  const message = (content_index, content) =>
    frame(
      {
        type: 'message.output.delta',
        ...at,
        output_index: before.length,
        id: `msg_${answer.id}`,
        content_index,
        role: 'assistant',
        content,
      },
      true,
    );
  for (const piece of answer.thinkingPieces) yield message(0, thinkingChunk(piece));
  const index = answer.thinkingPieces.length ? 1 : 0;
  for (const piece of answer.pieces) yield message(index, piece);
  for (const [i, call] of answer.calls.entries())
    for (const piece of call.pieces.length ? call.pieces : [''])
      yield frame(
        {
          type: 'function.call.delta',
          ...at,
          output_index: before.length + i + 1,
          id: `fc_${call.id}`,
          name: call.name,
          tool_call_id: call.id,
          arguments: piece,
        },
        true,
      );
  if (terminal) yield frame({ type: 'conversation.response.done', created_at: now(), usage: usageOf(answer) });
}

export function whole(answer) {
  const head = { object: 'entry', created_at: now(), completed_at: now(), model: answer.model };
  const thinking = answer.thinking?.text;
  const content = thinking
    ? [thinkingChunk(thinking), ...(answer.text ? [{ type: 'text', text: answer.text }] : [])]
    : answer.text;
  const outputs = answer.calls.map((call) => ({
    ...head,
    type: 'function.call',
    id: `fc_${call.id}`,
    tool_call_id: call.id,
    name: call.name,
    arguments: call.text,
  }));
  if (content.length)
    outputs.unshift({ ...head, type: 'message.output', id: `msg_${answer.id}`, role: 'assistant', content });
  const before = entriesBefore(answer).map(({ type, id, begin, pieces, end }) => ({
    ...head,
    ...(type === 'agent.handoff' && { model: undefined }),
    type,
    id,
    ...begin,
    ...(pieces && { arguments: pieces.join('') }),
    ...end,
  }));
  outputs.unshift(...before);
  return { object: 'conversation.response', conversation_id: conversationOf(answer), outputs, usage: usageOf(answer) };
}

export const inBandError = (given) =>
  frame({
    type: 'conversation.response.error',
    created_at: now(),
    message: 'Service unavailable.',
    code: 1000,
    ...given,
  });
