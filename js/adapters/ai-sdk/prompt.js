// Prompts as a language model of `ai` 6 or 7 gets them: repaired, and as parts of UI messages.

import { base64Of, base64OfText } from '../../bytes.js';
import { formatsOf } from '../../formats.js';
import { program } from '../../rethread-program.js';
import { plain } from '../plain.js';
import { DENIED } from './tools.js';

const { repair } = formatsOf(program);

const isOwnCall = ({ type, providerExecuted }) => type === 'tool-call' && providerExecuted !== true;
const isEmpty = ({ content }) => Array.isArray(content) && content.length === 0;

/** The prompt as a body of chat completions in which each text is the place that it stands for. */
function outlineOf(prompt) {
  const messages = prompt.flatMap((message, at) => {
    const { role, content } = message;
    if (role === 'tool') {
      const results = content.map((part, place) => ({ part, place })).filter(({ part }) => part.type === 'tool-result');
      return results.map(({ part, place }) => ({ role, tool_call_id: part.toolCallId, content: `${at}.${place}` }));
    }
    if (role !== 'assistant') return [{ role, content: `${at}` }];
    const calls = content.map((part, place) => ({ part, place })).filter(({ part }) => isOwnCall(part));
    const toolCalls = calls.map(({ part, place }) => ({
      id: part.toolCallId,
      type: 'function',
      function: { name: part.toolName, arguments: JSON.stringify({ place }) },
    }));
    return [{ role, content: `${at}`, ...(toolCalls.length ? { tool_calls: toolCalls } : {}) }];
  });
  return { messages };
}

/** The part of a result of the outline. One that the repair has added is an error. */
function resultPart(prompt, { tool_call_id: toolCallId, content }, names) {
  const [at, place] = content.split('.').map(Number);
  const stored = /^\d+\.\d+$/.test(content) ? prompt[at].content[place] : undefined;
  if (stored) return stored.toolCallId === toolCallId ? stored : { ...stored, toolCallId };
  const output = { type: 'error-text', value: content };
  return { type: 'tool-result', toolCallId, toolName: names.get(toolCallId) ?? '', output };
}

/** The message of the outline's one: with the calls that are left. */
function assistantMessage(message, toolCalls = []) {
  const left = new Map(toolCalls.map(({ id, function: { arguments: text } }) => [JSON.parse(text).place, id]));
  const content = message.content.flatMap((part, place) => {
    if (!isOwnCall(part)) return [part];
    if (!left.has(place)) return [];
    return [part.toolCallId === left.get(place) ? part : { ...part, toolCallId: left.get(place) }];
  });
  return { ...message, content };
}

/** Answers to approvals of calls that the provider executes: the SDK puts them into a message of their own. */
function approvalsAfter(prompt, at) {
  const next = prompt[at + 1];
  if (next?.role !== 'tool') return [];
  const content = next.content.filter(({ type }) => type !== 'tool-result');
  return content.length ? [{ ...next, content }] : [];
}

function rebuilt(prompt, outline) {
  const names = new Map();
  const messages = [];
  for (const entry of outline.messages) {
    if (entry.role === 'tool') {
      const part = resultPart(prompt, entry, names);
      const last = messages.at(-1);
      if (last?.role === 'tool') last.content.push(part);
      else messages.push({ role: 'tool', content: [part] });
      continue;
    }
    const at = Number(entry.content);
    const message = prompt[at];
    if (entry.role !== 'assistant') {
      messages.push(message);
      continue;
    }
    for (const call of entry.tool_calls ?? []) names.set(call.id, call.function.name);
    messages.push(assistantMessage(message, entry.tool_calls), ...approvalsAfter(prompt, at));
  }
  return messages;
}

/** Returns the prompt with each call followed by its one result, no result without its call, and no message without
 *  content. A prompt without errors is the same object. @param {any[]} prompt @returns {any[]} */
export function repairedPrompt(prompt) {
  const outline = outlineOf(prompt);
  const { body: repaired } = repair(outline, 'openai-chat');
  const isSame = JSON.stringify(repaired) === JSON.stringify(outline);
  const messages = isSame ? prompt : rebuilt(prompt, repaired);
  return messages.some(isEmpty) ? messages.filter((message) => !isEmpty(message)) : messages;
}

/** The URL of a file, of version 3 or 4 of the specification. Undefined for what only its provider has. */
export function fileUrl({ data, mediaType }) {
  if (data instanceof URL) return data.href;
  if (data instanceof Uint8Array) return `data:${mediaType};base64,${base64Of(data)}`;
  if (typeof data === 'string') return /^(data:|https?:)/.test(data) ? data : `data:${mediaType};base64,${data}`;
  if (data?.type === 'url') return data.originalUrl ?? String(data.url);
  if (data?.type === 'data') return fileUrl({ data: data.data, mediaType });
  if (data?.type === 'text') return `data:${mediaType};base64,${base64OfText(data.text)}`;
  return undefined;
}

/** What a part tells its provider, as a part of a UI message has it. @param {{ providerOptions?: any }} part */
export const metadataOf = ({ providerOptions }) => (providerOptions ? { providerMetadata: providerOptions } : {});

/** The call of a part, as a UI message has it, without its state. */
export const callOf = ({ toolCallId, toolName, input, providerExecuted, providerOptions }) => ({
  type: `tool-${toolName}`,
  toolCallId,
  input,
  ...(providerExecuted ? { providerExecuted } : {}),
  ...(providerOptions ? { callProviderMetadata: providerOptions } : {}),
});

/** What a result says, as a result of the session. */
export function resultOf({ output }) {
  const { type, value, reason } = output;
  if (type === 'execution-denied') return { result: reason ?? DENIED, isError: true };
  const isError = type === 'error-text' || type === 'error-json';
  return { result: plain(value) ?? null, ...(isError ? { isError } : {}) };
}

/** The state of a call with a result. */
export function outcomeOf(part) {
  const { result, isError } = resultOf(part);
  if (!isError) return { state: 'output-available', output: result };
  return { state: 'output-error', errorText: typeof result === 'string' ? result : JSON.stringify(result) };
}

/** The parts of a UI message for those of a prompt's message. `results`: the results of its calls by id, in
 *  their order. */
export function uiParts({ role, content }, results = new Map()) {
  if (role === 'system') return [{ type: 'text', text: content }];
  const isAnswer = role === 'assistant';
  const parts = content.flatMap((part) => {
    const isText = part.type === 'text' || part.type === 'reasoning';
    if (isText) return [{ type: part.type, text: part.text, ...(isAnswer && { state: 'done' }), ...metadataOf(part) }];
    if (part.type === 'file') {
      const { mediaType, filename } = part;
      const url = fileUrl(part);
      if (url === undefined) return [{ type: 'data-file', data: { name: filename, mediaType } }];
      return [{ type: 'file', mediaType, ...(filename === undefined ? {} : { filename }), url, ...metadataOf(part) }];
    }
    if (part.type !== 'tool-call') return [];
    const result = results.get(part.toolCallId)?.shift();
    return [{ ...callOf(part), ...(result ? outcomeOf(result) : { state: 'input-available' }) }];
  });
  return plain(isAnswer ? [{ type: 'step-start' }, ...parts] : parts);
}
