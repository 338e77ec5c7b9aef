// Parts of assistant-ui's messages as parts of UI messages, which `rethread/ai-sdk` stores, and back. What a part has
// beyond the UI part is in its member `assistantUI`.

import { isObject, plain, without } from '../plain.js';
import { isToolPart } from '../ai-sdk/tools.js';
import { fromStored, toStored } from './values.js';

/** The name of the data parts that keep what has no part of its own. */
export const NAME = 'rethread/assistant-ui';
const CARRIER = `data-${NAME}`;
const DATA = 'data-';
/** How the base64 of images begins. */
const IMAGES = { iVBOR: 'image/png', '/9j/': 'image/jpeg', R0lGOD: 'image/gif', UklGR: 'image/webp' };

/** A part that is kept, and never sent. */
export const carrier = (value) => ({ type: CARRIER, data: toStored(value) });
/** What `carrier` was given; undefined for any other part. */
export const carriedBy = (part) => (part.type === CARRIER ? fromStored(part.data) : undefined);

const own = (rest) => (Object.keys(rest).length ? { assistantUI: toStored(rest) } : {});
const isUrl = (text) => /^(https?|data|blob):/i.test(text);

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function imagePart({ image, ...rest }) {
  const sniffed = Object.entries(IMAGES).find(([start]) => image.startsWith(start))?.[1];
  const isBytes = !isUrl(image) && sniffed !== undefined;
  const url = isBytes ? `data:${sniffed};base64,${image}` : image;
  const mediaType = /^data:([^;,]+)/.exec(url)?.[1] ?? 'image/*';
  return { type: 'file', url, mediaType, ...own({ ...rest, ...(isBytes ? { bytes: true } : {}) }) };
}

function filePart({ data, mimeType, filename, ...rest }) {
  const isBytes = !isUrl(data);
  return {
    type: 'file',
    url: isBytes ? `data:${mimeType};base64,${data}` : data,
    mediaType: mimeType,
    ...(filename === undefined ? {} : { filename }),
    ...own({ ...rest, ...(isBytes ? { bytes: true } : {}) }),
  };
}

/** The text that the model is sent instead of the result. */
function modelText({ modelContent }) {
  const isText =
    Array.isArray(modelContent) && modelContent.length && modelContent.every(({ type }) => type === 'text');
  return isText ? modelContent.map(({ text }) => text).join('\n') : undefined;
}

/** What a closed call has: the result, as the model is told it, and what that does not say. */
function outcome(part) {
  const result = plain(part.result);
  if (part.isError) {
    const isText = typeof result === 'string';
    return [
      { state: 'output-error', errorText: isText ? result : JSON.stringify(result) },
      { ...(isText ? {} : { result }) },
    ];
  }
  const text = modelText(part);
  const isError = part.isError === undefined ? {} : { isError: part.isError };
  return [
    { state: 'output-available', output: text ?? result },
    { ...isError, ...(text === undefined ? {} : { result }) },
  ];
}

function callPart(part) {
  const { toolCallId, toolName, args, argsText, result, isError, type, ...rest } = part;
  const input = plain(args) ?? parsed(argsText) ?? {};
  const call = { type: `tool-${toolName}`, toolCallId, input };
  const text = argsText === JSON.stringify(input) ? {} : { argsText };
  if (result !== undefined && !part.isPreliminary) {
    const [closed, more] = outcome(part);
    return { ...call, ...closed, ...own({ ...rest, ...text, ...more }) };
  }
  const preliminary = { ...(result === undefined ? {} : { result }), ...(isError === undefined ? {} : { isError }) };
  // Of a call that the model did not finish, it is never told.
  const state = argsText !== undefined && parsed(argsText) === undefined ? 'input-streaming' : 'input-available';
  return { ...call, state, ...own({ ...rest, ...text, ...preliminary }) };
}

/** The UI part of a part; a carrier of it if there is none. */
export function toUIPart(part, role) {
  const { type } = part;
  const isAnswer = role === 'assistant';
  if ((type === 'text' || (type === 'reasoning' && isAnswer)) && typeof part.text === 'string')
    return { type, text: part.text, ...(isAnswer ? { state: 'done' } : {}), ...own(without(part, 'type', 'text')) };
  if (type === 'image' && typeof part.image === 'string') return imagePart(part);
  if (
    type === 'file' &&
    [part.data, part.mimeType].every((text) => typeof text === 'string') &&
    part.sourceType !== 'id'
  )
    return filePart(part);
  if (type === 'tool-call' && isAnswer && part.toolCallId && part.toolName) return callPart(part);
  const isData = type === 'data' && typeof part.name === 'string' && part.name && part.data !== undefined;
  if (isData && !part.name.startsWith('rethread/') && Object.keys(part).length === 3)
    return { type: `${DATA}${part.name}`, data: plain(part.data) };
  return carrier({ part });
}

function fromFile({ url, mediaType, filename, assistantUI = {} }) {
  const { bytes, type, ...rest } = fromStored(assistantUI);
  const data = bytes ? url.slice(url.indexOf(',') + 1) : url;
  if (type === 'image' || (type === undefined && mediaType.startsWith('image')))
    return { type: 'image', image: data, ...(filename === undefined ? {} : { filename }), ...rest };
  return { type: 'file', data, mimeType: mediaType, ...(filename === undefined ? {} : { filename }), ...rest };
}

/** The result of a closed UI part; of an open one nothing. */
function resultOf({ state, output, errorText, approval }, kept) {
  if (state === 'output-available') return { result: output, ...kept };
  if (state === 'output-error') return { result: errorText, isError: true, ...kept };
  if (state === 'output-denied') return { result: approval?.reason ?? 'Tool call execution denied.', isError: true };
  return kept;
}

function fromCall(part) {
  const { type, toolCallId, toolName, input, state, approval, assistantUI = {} } = part;
  const kept = fromStored(assistantUI);
  const isClosed = state.startsWith('output-') && part.preliminary !== true;
  // A result that came since takes the place of a preliminary one.
  const more = isClosed && kept.isPreliminary ? without(kept, 'isPreliminary', 'result', 'isError') : kept;
  return {
    type: 'tool-call',
    toolCallId,
    toolName: type === 'dynamic-tool' ? toolName : type.slice('tool-'.length),
    args: input ?? {},
    argsText: JSON.stringify(input ?? {}),
    ...(approval === undefined ? {} : { approval }),
    ...(isClosed ? resultOf(part, more) : more),
  };
}

const fromSource = ({ type, sourceId, ...rest }) => ({
  type: 'source',
  sourceType: type.slice('source-'.length),
  id: sourceId,
  ...rest,
});

/** The part of a UI part; undefined if it shows nothing. */
export function fromUIPart(part) {
  const { type } = part;
  const carried = carriedBy(part);
  if (carried) return carried.part;
  if (type === 'text' || type === 'reasoning')
    return { type, text: part.text, ...(isObject(part.assistantUI) ? fromStored(part.assistantUI) : {}) };
  if (type === 'file') return fromFile(part);
  if (isToolPart(part)) return fromCall(part);
  if (type === 'source-url' || type === 'source-document') return fromSource(part);
  if (type.startsWith(DATA)) return { type: 'data', name: type.slice(DATA.length), data: part.data };
  return type === 'step-start' ? undefined : { type: 'data', name: type, data: part };
}
