// The shapes of Bedrock's Converse: frames of an event stream, or one JSON body. Shares no code with the engine.

import { crc32 } from './crc32.mjs';
import { errorBody as error } from './rules-bedrock.mjs';

export const contentType = () => 'application/vnd.amazon.eventstream';

const number = (value) => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
};

function header(name, value) {
  const text = Buffer.from(value);
  const length = Buffer.alloc(2);
  length.writeUInt16BE(text.length);
  return Buffer.concat([Buffer.from([name.length]), Buffer.from(name), Buffer.from([7]), length, text]);
}

/** The bytes of a frame: lengths and their checksum, headers, payload, checksum. */
export function frameBytes(name, data) {
  const kind = name.endsWith('Exception') ? 'exception' : 'event';
  const headers = Buffer.concat([
    header(`:${kind}-type`, name),
    header(':content-type', 'application/json'),
    header(':message-type', kind),
  ]);
  const payload = Buffer.from(JSON.stringify(data));
  const lengths = Buffer.concat([number(16 + headers.length + payload.length), number(headers.length)]);
  const rest = Buffer.concat([lengths, number(crc32(lengths)), headers, payload]);
  return Buffer.concat([rest, number(crc32(rest))]);
}

// The real service pads each event with letters, so that its length tells nothing.
const frame = (name, data, piece = false) => ({ piece, bytes: frameBytes(name, { ...data, p: 'abcdefghijkl' }) });

const inputOf = (text) => {
  try {
    return JSON.parse(text);
  } catch {
    return {};
  }
};

/** Blocks in wire order: {start, deltas, complete}. */
function blocksOf(answer) {
  const blocks = [];
  const { thinking } = answer;
  if (thinking?.redacted) {
    const reasoningContent = { redactedContent: Buffer.from(thinking.redacted).toString('base64') };
    blocks.push({ deltas: [{ reasoningContent }], complete: { reasoningContent } });
  } else if (thinking) {
    const { text, signature } = thinking;
    blocks.push({
      deltas: [...answer.thinkingPieces.map((p) => ({ text: p })), { signature }].map((d) => ({ reasoningContent: d })),
      complete: { reasoningContent: { reasoningText: { text, signature } } },
    });
  }
  if (answer.pieces.length)
    blocks.push({ deltas: answer.pieces.map((p) => ({ text: p })), complete: { text: answer.text } });
  for (const { id, name, text, pieces } of answer.calls) {
    const toolUse = { toolUseId: id, name, type: 'tool_use' };
    blocks.push({
      start: { toolUse },
      deltas: ['', ...(text === '{}' ? [] : pieces)].map((input) => ({ toolUse: { input } })),
      complete: { toolUse: { ...toolUse, input: inputOf(text) } },
    });
  }
  return blocks;
}

const usageOf = ({ usage: { input, output } }) => ({
  inputTokens: input,
  outputTokens: output,
  totalTokens: input + output,
  cacheReadInputTokens: 0,
  cacheWriteInputTokens: 0,
});

/** Frames in order; `piece` marks those that carry content. `terminal: false` leaves the end away. */
export function* frames(answer, { terminal = true } = {}) {
  yield frame('messageStart', { role: 'assistant' });
  for (const [contentBlockIndex, { start, deltas }] of blocksOf(answer).entries()) {
    if (start) yield frame('contentBlockStart', { contentBlockIndex, start });
    for (const delta of deltas) yield frame('contentBlockDelta', { contentBlockIndex, delta }, true);
    yield frame('contentBlockStop', { contentBlockIndex });
  }
  if (!terminal) return;
  yield frame('messageStop', { stopReason: answer.finish });
  yield frame('metadata', { usage: usageOf(answer), metrics: { latencyMs: 7 } });
}

export function whole(answer) {
  return {
    output: { message: { role: 'assistant', content: blocksOf(answer).map((block) => block.complete) } },
    stopReason: answer.finish,
    usage: usageOf(answer),
    metrics: { latencyMs: 7 },
  };
}

const WORDS = {
  403: 'The security token included in the request is invalid.',
  429: 'Too many requests, please wait before trying again.',
  503: 'Bedrock is unable to process your request.',
};

export const statusBody = (status, message) => error(message ?? WORDS[status] ?? 'Internal server error');
export const notJson = () => error('The request body is not valid JSON.');
export const inBandError = (given) => ({
  piece: false,
  bytes: frameBytes('modelStreamErrorException', { message: 'The model stream ended unexpectedly.', ...given }),
});
