// The chunks of a stream from which a page makes a message that is stored already.

import { isToolPart } from './tools.js';

const named = (name, value) => (value === undefined ? {} : { [name]: value });

function textChunks({ type, text, state, providerMetadata, ...part }, at) {
  const id = part.id ?? `stored-${at}`;
  const metadata = named('providerMetadata', providerMetadata);
  return [
    { type: `${type}-start`, id, ...metadata },
    { type: `${type}-delta`, id, delta: text, ...metadata },
    ...(state === 'streaming' ? [] : [{ type: `${type}-end`, id, ...metadata, ...named('citations', part.citations) }]),
  ];
}

/** A request that waits for its answer. Of one that was answered `ai` 6 knows no chunk. */
function approvalChunks({ toolCallId, state, approval }) {
  if (state !== 'approval-requested' || !approval) return [];
  const { id: approvalId, requestReason, isAutomatic, signature, descriptor, inputSchemaInput } = approval;
  return [
    {
      type: 'tool-approval-request',
      approvalId,
      toolCallId,
      ...named('reason', requestReason),
      ...named('isAutomatic', isAutomatic),
      ...named('signature', signature),
      ...named('approvalDescriptor', descriptor),
      ...named('inputSchemaInput', inputSchemaInput),
    },
  ];
}

function outputChunks(part) {
  const { state, toolCallId, output, errorText, preliminary, providerExecuted, resultProviderMetadata } = part;
  const more = {
    toolCallId,
    ...named('providerExecuted', providerExecuted),
    ...named('providerMetadata', resultProviderMetadata),
  };
  if (state === 'output-available')
    return [{ type: 'tool-output-available', ...more, output, ...named('preliminary', preliminary) }];
  if (state === 'output-error') return [{ type: 'tool-output-error', ...more, errorText }];
  return state === 'output-denied' ? [{ type: 'tool-output-denied', toolCallId }] : [];
}

function callChunks(part) {
  const { type, toolCallId, input, state, title, toolMetadata, providerExecuted, callProviderMetadata } = part;
  const isDynamic = type === 'dynamic-tool';
  const call = {
    toolCallId,
    toolName: isDynamic ? part.toolName : type.slice('tool-'.length),
    ...(isDynamic ? { dynamic: true } : {}),
    ...named('title', title),
    ...named('toolMetadata', toolMetadata),
    ...named('providerExecuted', providerExecuted),
    ...named('providerMetadata', callProviderMetadata),
  };
  if (state === 'input-streaming') return [{ type: 'tool-input-start', ...call }];
  return [{ type: 'tool-input-available', ...call, input }, ...approvalChunks(part), ...outputChunks(part)];
}

function partChunks(part, at) {
  if (part.type === 'text' || part.type === 'reasoning') return textChunks(part, at);
  if (isToolPart(part)) return callChunks(part);
  return [part.type === 'step-start' ? { type: 'start-step' } : part];
}

/** Returns the chunks of the parts of a stored message. */
export const messageChunks = ({ parts }) => parts.flatMap(partChunks);
