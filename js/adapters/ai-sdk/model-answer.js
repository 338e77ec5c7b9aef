// What a language model of `ai` 6 or 7 answers, as a message that the page would show.

import { MessageAssembler } from './assembler.js';
import { fileUrl } from './prompt.js';

const rest = ({ providerMetadata }) => (providerMetadata === undefined ? {} : { providerMetadata });

function inputOf(text) {
  if (typeof text !== 'string') return text ?? {};
  try {
    return JSON.parse(text || '{}');
  } catch {
    return text;
  }
}

const textOf = (value) => (typeof value === 'string' ? value : JSON.stringify(value));

/** By type of a model's part: its chunks. @type {Record<string, (part: any) => any[]>} */
const CHUNKS = {
  'tool-input-start': ({ id, ...part }) => [{ ...part, toolCallId: id }],
  'tool-input-delta': ({ id, delta }) => [{ type: 'tool-input-delta', toolCallId: id, inputTextDelta: delta }],
  'tool-input-end': () => [],
  'tool-call': ({ input, ...part }) => [{ ...part, type: 'tool-input-available', input: inputOf(input) }],
  'tool-result': ({ toolCallId, result, isError, preliminary, ...part }) => [
    isError
      ? { type: 'tool-output-error', toolCallId, errorText: textOf(result), providerExecuted: true, ...rest(part) }
      : {
          type: 'tool-output-available',
          toolCallId,
          output: result,
          preliminary,
          providerExecuted: true,
          ...rest(part),
        },
  ],
  'tool-approval-request': ({ approvalId, toolCallId }) => [{ type: 'tool-approval-request', approvalId, toolCallId }],
  file: (part) => fileChunks(part),
  'reasoning-file': (part) => fileChunks(part),
  custom: (part) => [part],
  source: ({ sourceType, id, type, ...part }) => [{ type: `source-${sourceType}`, sourceId: id, ...part }],
};

function fileChunks(part) {
  const url = fileUrl(part);
  return url === undefined ? [] : [{ type: part.type, mediaType: part.mediaType, url, ...rest(part) }];
}

/** The parts of an answer that was not streamed, as those of a stream. */
const streamed = (part, at) =>
  part.type === 'text' || part.type === 'reasoning'
    ? [
        { type: `${part.type}-start`, id: `${at}`, ...rest(part) },
        { type: `${part.type}-delta`, id: `${at}`, delta: part.text },
        { type: `${part.type}-end`, id: `${at}` },
      ]
    : [part];

/** One answer: a step of the message that it continues. */
export class ModelAnswer {
  #assembler;
  #status;
  #isEmpty = true;

  /** @param {any} message What is stored of the message. */
  constructor(message) {
    this.#assembler = new MessageAssembler(message);
    this.#assembler.add({ type: 'start-step' });
  }

  /** Adds a part of a stream. */
  add(part) {
    if (part.type === 'error') this.#status = 'failed';
    if (part.type === 'finish') this.end(part);
    const isText = /^(text|reasoning)-(start|delta|end)$/.test(part.type);
    const chunks = isText ? [part] : (CHUNKS[part.type]?.(part) ?? []);
    for (const chunk of chunks) this.#assembler.add(chunk);
    if (chunks.length) this.#isEmpty = false;
  }

  addAll(content) {
    for (const part of content.flatMap(streamed)) this.add(part);
  }

  /** Sets the status of an answer that the provider ended. */
  end({ finishReason }) {
    // The SDK runs no tool of such answers.
    if (finishReason.unified === 'length') this.#status ??= 'truncated';
    if (['error', 'content-filter'].includes(finishReason.unified)) this.#status ??= 'failed';
  }

  /** The message so far; undefined if the model gave nothing. */
  get message() {
    return this.#isEmpty ? undefined : this.#assembler.message;
  }

  get status() {
    return this.#status;
  }
}
