// What a request contains, item by item: a request of each wire format as a list of `{ label, text }`.

import { clip, counted } from './dom.js';

const MAX_TEXT = 160;

const plainText = (value) => (typeof value === 'string' ? value : (JSON.stringify(value) ?? ''));

/** The text of a content: a string, or parts of any of the formats. */
function textOf(content) {
  if (!Array.isArray(content)) return content === undefined || content === null ? '' : plainText(content);
  return content
    .map((part) => part.text ?? (typeof part.content === 'string' ? part.content : `[${part.type ?? 'part'}]`))
    .join(' ');
}

/** The calls and results of a message, in Anthropic's and Gemini's formats parts of it. */
function partsOf({ content, parts }) {
  const all = parts ?? (Array.isArray(content) ? content : []);
  return {
    calls: all
      .filter((part) => part.type === 'tool_use' || part.functionCall)
      .map((part) => part.name ?? part.functionCall.name),
    results: all
      .filter((part) => part.type === 'tool_result' || part.functionResponse)
      .map((part) => textOf(part.content ?? part.functionResponse?.response)),
    text: parts
      ? textOf(parts.filter((part) => part.text !== undefined))
      : textOf(Array.isArray(content) ? content.filter(({ type }) => !/^tool_/.test(type)) : content),
  };
}

/** The label and the text of an item, which may be anything: what was pasted need not be as its format says. */
function describeItem(item) {
  try {
    const [label, text] = labelAndText(item);
    return { label: String(label), text };
  } catch {
    return { label: 'item', text: plainText(item) };
  }
}

function labelAndText(item) {
  if (typeof item === 'string') return ['user', item];
  const { type, role } = item;
  if (type === 'function_call') return [`call of ${item.name}`, plainText(item.arguments)];
  if (type === 'function_call_output') return ['result', textOf(item.output)];
  if (type === 'reasoning') return ['reasoning', textOf(item.summary)];
  if (type !== undefined && type !== 'message') return [type, ''];
  if (role === 'tool') return ['result', textOf(item.content)];
  const { calls, results, text } = partsOf(item);
  const called = [...calls, ...(item.tool_calls ?? []).map((call) => call.function?.name)];
  if (results.length)
    return [results.length === 1 ? 'result' : `${results.length} results`, [...results, text].join(' ')];
  if (called.length) return [`${role}, calls ${called.join(' and ')}`, text];
  return [role ?? 'item', text];
}

/** The items of a request's body, a value of any wire format. */
export function requestItems(body) {
  const items = body.input ?? body.messages ?? body.contents ?? [];
  return (Array.isArray(items) ? items : [items]).map((item) => {
    const { label, text } = describeItem(item);
    return { label, text: clip(text.replace(/\s+/g, ' ').trim(), MAX_TEXT), key: JSON.stringify(item) };
  });
}

/** Number of items that the messages of a view are in OpenAI's Responses: each text, call and result is one. */
export function countItems(messages) {
  const itemsOf = ({ role, parts }) => {
    if (role !== 'assistant') return 1;
    return parts.reduce(
      (count, part) =>
        count + (part.type === 'tool' ? 1 + Number(part.call.result !== undefined && part.call.result !== null) : 1),
      0,
    );
  };
  return messages.reduce((count, message) => count + itemsOf(message), 0);
}

/** What a request contains: `items` with those that are new, and how many items the service kept already. `before`: the
 *  same of the request before. */
export function describeRequest(text, { before, messages }) {
  const body = JSON.parse(text);
  const items = requestItems(body);
  const conversationId = body.conversation?.id ?? body.conversation ?? null;
  const previousResponseId = body.previous_response_id ?? null;
  const isDelta = Boolean(conversationId ?? previousResponseId);
  let repeated = 0;
  if (!isDelta && before && !before.isDelta)
    while (repeated < items.length && items[repeated].key === before.items[repeated]?.key) repeated += 1;
  return {
    items: items.map((item, at) => ({ ...item, isNew: at >= repeated })),
    newItemCount: items.length - repeated,
    isDelta,
    conversationId,
    previousResponseId,
    keptItemCount: isDelta ? Math.max(0, countItems(messages) - items.length) : 0,
    body: JSON.stringify(body, null, 2),
  };
}

/** The description on one line. */
export function requestLine({ items, newItemCount, isDelta, keptItemCount }) {
  if (isDelta) return `last request: ${counted(items.length, 'new item')}, the service had ${keptItemCount}`;
  if (newItemCount === items.length) return `last request: ${counted(items.length, 'item')}, the whole conversation`;
  return `last request: ${counted(items.length, 'item')}, ${newItemCount} new`;
}
