// The chunks of a stream from which a page makes a message that is stored already, or what came to it since.

import { isSame } from '../plain.js';
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

/** A request that waits for its answer, or was answered without asking. Of other answers `ai` 6 knows no chunk. */
function approvalChunks({ toolCallId, state, approval }) {
  const isDecided = approval?.isAutomatic === true && approval.approved !== undefined;
  if (!approval || (state !== 'approval-requested' && !isDecided)) return [];
  const { id: approvalId, requestReason, isAutomatic, signature, descriptor, inputSchemaInput, approved } = approval;
  const request = {
    type: 'tool-approval-request',
    approvalId,
    toolCallId,
    ...named('reason', requestReason),
    ...named('isAutomatic', isAutomatic),
    ...named('signature', signature),
    ...named('approvalDescriptor', descriptor),
    ...named('inputSchemaInput', inputSchemaInput),
  };
  const response = { type: 'tool-approval-response', approvalId, approved, ...named('reason', approval.reason) };
  return isDecided ? [request, response] : [request];
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

/** The states of a call in their order; an output is the last one. */
const STATES = ['input-streaming', 'input-available', 'approval-requested', 'approval-responded'];
const rankOf = ({ state }) => (STATES.includes(state) ? STATES.indexOf(state) : STATES.length);

function textSince(before, after, at) {
  if (!after.text.startsWith(before.text)) return null;
  const [, , end] = textChunks(after, at);
  const delta = after.text.slice(before.text.length);
  const id = after.id ?? `stored-${at}`;
  const hasEnded = before.state === 'streaming' && after.state !== 'streaming';
  if (!hasEnded && before.state !== after.state) return null;
  return [...(delta ? [{ type: `${after.type}-delta`, id, delta }] : []), ...(hasEnded ? [end] : [])];
}

function callSince(before, after) {
  if (before.toolCallId !== after.toolCallId || rankOf(after) < rankOf(before)) return null;
  if (before.state === 'input-streaming') return after.state === before.state ? [] : callChunks(after);
  const known = ['input-available', 'approval-requested'].indexOf(before.state);
  return [...(known < 0 ? [] : approvalChunks(after).slice(known)), ...outputChunks(after)];
}

/** @returns {any[] | null} */
function partSince(before, after, at) {
  if (isSame(before, after)) return [];
  if (before.type !== after.type) return null;
  if (after.type === 'text' || after.type === 'reasoning') return textSince(before, after, at);
  if (isToolPart(after)) return callSince(before, after);
  return after.type.startsWith('data-') && after.id !== undefined ? [after] : [];
}

/** @returns {any[] | null} */
function grown(before, after) {
  if (after.parts.length < before.parts.length) return null;
  const chunks = after.parts.map((part, at) =>
    before.parts[at] ? partSince(before.parts[at], part, at) : partChunks(part, at),
  );
  if (chunks.includes(null)) return null;
  const hasNewMetadata = after.metadata !== undefined && !isSame(before.metadata, after.metadata);
  return [...(hasNewMetadata ? [{ type: 'message-metadata', messageMetadata: after.metadata }] : []), ...chunks.flat()];
}

/** The chunks that make of a message what it is now; null if it is no more than before. A step may have been made
 *  again. @returns {any[] | null} */
export function chunksSince(before, after) {
  const chunks = grown(before, after);
  if (chunks || grown(after, before)) return chunks;
  const ended = before.parts.slice(0, before.parts.findLastIndex(({ type }) => type === 'step-start') + 1);
  const again = ended.length ? grown({ ...before, parts: ended }, after) : null;
  return again && [{ type: 'reset-step' }, ...again];
}

/** What has become of the calls of a message that a page has. */
export const callsSince = (before, after) =>
  before.parts.flatMap((part, at) => {
    const other = after.parts[at];
    const isCall = isToolPart(part) && other && isToolPart(other) && !isSame(part, other);
    return (isCall && callSince(part, other)) || [];
  });
