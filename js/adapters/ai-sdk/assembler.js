// A UI message from the chunks of its stream, as `useChat` assembles it.

import { isObject, plain } from '../plain.js';
import { isOpen, isToolPart } from './tools.js';

/** Metadata is merged: objects member by member, anything else is replaced. */
function merged(old, more) {
  if (!isObject(old) || !isObject(more)) return more;
  const result = { ...old };
  for (const [key, value] of Object.entries(more)) {
    if (value === undefined || ['__proto__', 'constructor', 'prototype'].includes(key)) continue;
    result[key] = key in old ? merged(old[key], value) : value;
  }
  return result;
}

function parsed(text) {
  try {
    return { input: JSON.parse(text) };
  } catch {
    return {};
  }
}

const withMetadata = ({ providerMetadata }) => (providerMetadata === undefined ? {} : { providerMetadata });

export class MessageAssembler {
  #message;
  #texts = new Map();
  #inputs = new Map();

  /** @param {any} message The beginning of the message: it is continued. */
  constructor(message) {
    this.#message = structuredClone(message);
  }

  /** The message so far. @returns {any} */
  get message() {
    return plain(this.#message);
  }

  /** True if a call of this id is complete, and waits for its result. The ids of calls come again. */
  hasCall(id) {
    return this.#message.parts.some(
      (part) => isToolPart(part) && part.toolCallId === id && part.state !== 'input-streaming' && isOpen(part),
    );
  }

  get id() {
    return this.#message.id;
  }

  set id(id) {
    this.#message.id = id;
  }

  /** Adds a chunk. Chunks that belong to nothing are left out: the page reports them. */
  add(chunk) {
    const { type } = chunk;
    const { parts } = this.#message;
    if (Object.hasOwn(PARTS, type)) parts.push(PARTS[type](chunk));
    else if (/^(text|reasoning)-(start|delta|end)$/.test(type)) this.#addText(chunk);
    else if (type.startsWith('tool-input-')) this.#addInput(chunk);
    else if (type.startsWith('tool-')) this.#addToCall(chunk);
    else if (type.startsWith('data-')) this.#addData(chunk);
    else if (type === 'reset-step') this.#resetStep();
    else if (chunk.messageMetadata !== undefined && chunk.messageMetadata !== null)
      this.#message.metadata = merged(this.#message.metadata, chunk.messageMetadata);
  }

  #addText(chunk) {
    const [type, event] = chunk.type.split('-');
    const key = `${type} ${chunk.id}`;
    if (event === 'start') {
      const id = type === 'reasoning' ? { id: chunk.id } : {};
      const part = { type, ...id, text: '', ...withMetadata(chunk), state: 'streaming' };
      this.#texts.set(key, part);
      this.#message.parts.push(part);
      return;
    }
    const part = this.#texts.get(key);
    if (!part) return;
    Object.assign(part, withMetadata(chunk));
    if (event === 'delta') part.text += chunk.delta;
    else {
      part.state = 'done';
      if (chunk.citations) part.citations = chunk.citations;
      this.#texts.delete(key);
    }
  }

  #currentStep() {
    const { parts } = this.#message;
    return parts.slice(parts.findLastIndex(({ type }) => type === 'step-start') + 1);
  }

  /** The newest call of an id, of the current step if that has one. */
  #call(id, isOfStep = false) {
    const isCall = (part) => isToolPart(part) && part.toolCallId === id;
    const found = this.#currentStep().find(isCall);
    return found ?? (isOfStep ? undefined : this.#message.parts.findLast(isCall));
  }

  #addInput(chunk) {
    const { type, toolCallId, toolName, dynamic } = chunk;
    let part = this.#call(toolCallId, true);
    if (type === 'tool-input-delta') {
      const begun = this.#inputs.get(toolCallId);
      if (!begun || !part) return;
      begun.text += chunk.inputTextDelta;
      Object.assign(
        part,
        { rawInput: begun.text },
        begun.encoding === 'text' ? { input: begun.text } : parsed(begun.text),
      );
      return;
    }
    if (!part) {
      part = dynamic ? { type: 'dynamic-tool', toolName, toolCallId } : { type: `tool-${toolName}`, toolCallId };
      this.#message.parts.push(part);
    }
    delete part.rawInput;
    delete part.input;
    for (const key of ['title', 'toolMetadata', 'providerExecuted'])
      if (chunk[key] !== undefined) part[key] = chunk[key];
    if (type === 'tool-input-start') {
      this.#inputs.set(toolCallId, { text: '', encoding: chunk.inputEncoding });
      Object.assign(part, { state: 'input-streaming' });
      if (chunk.inputEncoding) part.inputEncoding = chunk.inputEncoding;
    } else {
      delete part.inputEncoding;
      const isError = type === 'tool-input-error';
      part.state = isError ? 'output-error' : 'input-available';
      part.input = chunk.input;
      if (isError) part.errorText = chunk.errorText;
    }
    if (chunk.providerMetadata)
      part[type === 'tool-input-error' ? 'resultProviderMetadata' : 'callProviderMetadata'] = chunk.providerMetadata;
  }

  /** An approval or an output of a call. */
  #addToCall(chunk) {
    const { type, approvalId } = chunk;
    const part =
      type === 'tool-approval-response'
        ? this.#message.parts.find((call) => isToolPart(call) && call.approval?.id === approvalId)
        : this.#call(chunk.toolCallId);
    if (!part) return;
    if (chunk.providerExecuted !== undefined) part.providerExecuted = chunk.providerExecuted;
    if (type === 'tool-approval-request') {
      part.state = 'approval-requested';
      part.approval = {
        id: approvalId,
        descriptor: chunk.approvalDescriptor,
        ...('inputSchemaInput' in chunk ? { inputSchemaInput: chunk.inputSchemaInput } : {}),
        requestReason: chunk.reason,
        isAutomatic: chunk.isAutomatic === true ? true : undefined,
        signature: chunk.signature,
      };
    } else if (type === 'tool-approval-response') {
      part.state = 'approval-responded';
      part.approval = { ...part.approval, id: approvalId, approved: chunk.approved };
      if (chunk.reason !== undefined) part.approval.reason = chunk.reason;
      if (chunk.providerMetadata) part.callProviderMetadata = chunk.providerMetadata;
    } else this.#addOutput(chunk, part);
  }

  #addOutput(chunk, part) {
    if (chunk.type === 'tool-output-denied') {
      part.state = 'output-denied';
      return;
    }
    const isError = chunk.type === 'tool-output-error';
    for (const key of ['output', 'errorText', 'preliminary']) delete part[key];
    Object.assign(
      part,
      isError
        ? { state: 'output-error', errorText: chunk.errorText }
        : { state: 'output-available', output: chunk.output },
    );
    if (chunk.preliminary !== undefined) part.preliminary = chunk.preliminary;
    if (chunk.toolMetadata !== undefined) part.toolMetadata = chunk.toolMetadata;
    if (chunk.providerMetadata) part.resultProviderMetadata = chunk.providerMetadata;
  }

  #addData({ transient, ...part }) {
    if (transient) return;
    const known =
      part.id === undefined
        ? undefined
        : this.#message.parts.find(({ type, id }) => type === part.type && id === part.id);
    if (known) known.data = part.data;
    else this.#message.parts.push(part);
  }

  /** The step is made again. */
  #resetStep() {
    const { parts } = this.#message;
    parts.splice(parts.length - this.#currentStep().length);
    this.#texts.clear();
    this.#inputs.clear();
  }
}

/** Chunks that are a part as they are. */
const PARTS = {
  'start-step': () => ({ type: 'step-start' }),
  file: (chunk) => ({ ...chunk }),
  'reasoning-file': (chunk) => ({ ...chunk }),
  'source-url': (chunk) => ({ ...chunk }),
  'source-document': (chunk) => ({ ...chunk }),
  custom: (chunk) => ({ ...chunk }),
  'steering-message': (chunk) => ({ ...chunk }),
};
