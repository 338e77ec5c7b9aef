// Finds the conversations in what people save: bodies, lists of messages, batches, logs, traces and exports.

import { CONVERSATION_MEMBERS } from '../dialects.js';
import { itemTexts, memberText } from './formats.js';

const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);
const isList = Array.isArray;
const LISTS = [...new Set(Object.values(CONVERSATION_MEMBERS))];
/** Members of a log's entry, a trace or a batch that contain the body of a request; the first one that does counts. */
const INNER = [
  'body',
  'params',
  'request',
  'request_body',
  'requestBody',
  'inputs',
  'input',
  'kwargs',
  'payload',
  'data',
  'json',
];
/** Envelopes are not nested deeper than this. */
const MAX_DEPTH = 5;

const hasConversation = (value) => LISTS.some((member) => isList(value[member]));

/** True for a message or an item, not for a body. */
export const isMessage = (value) =>
  isObject(value) &&
  !LISTS.some((member) => Object.hasOwn(value, member)) &&
  !isError(value) &&
  !isLogEntry(value) &&
  (typeof value.role === 'string' || typeof value.type === 'string');

/** True for an entry of a log that has a body: its `type` is that of the entry. */
function isLogEntry(value) {
  const inner = [value.body, value.request, value.payload, value.params].filter(isObject);
  return inner.some((one) => hasConversation(one) || (isObject(one.body) && hasConversation(one.body)));
}

/** True for the body of an answer with an error. */
const isError = (value) =>
  isObject(value) &&
  (value.type === 'error' || isObject(value.error) || (typeof value.error === 'string' && value.error !== ''));

const messagesOf = (text, value) => ({ form: 'list', text, items: value });

/** The name and the way out of a format that is no request; null for any other value. */
function foreignName(value) {
  if (isObject(value.mapping)) {
    return 'a conversation of a ChatGPT export (`mapping`), not a request: its nodes have `message.author.role` and `message.content.parts`; write the messages of the path to `current_node` as {role, content}';
  }
  if (isList(value.chat_messages)) {
    return 'a conversation of a Claude export (`chat_messages`), not a request: write each as {role, content}, where the `sender` "human" is the role "user"';
  }
  if (value.object === 'thread.message' || (value.object === 'list' && value.data?.[0]?.object === 'thread.message')) {
    return 'messages of an Assistants thread (`thread.message`), which no chat endpoint takes: write each as {role, content}, where the content is `content[].text.value`, the oldest first';
  }
  if (['response', 'chat.completion', 'chat.completion.chunk'].includes(value.object) || isList(value.candidates)) {
    return 'an answer of a model, not a request: pass the body that was sent';
  }
  return null;
}

/** The conversations in a value: a list of {form: "body" | "list", text, value | items, label?} | {form: "error", text}
 *  | {form: "foreign", what}. An empty list if nothing is recognized. */
export function conversationsIn(text, value, depth = 0) {
  if (depth > MAX_DEPTH) return [];
  if (isList(value)) return conversationsOfList(text, value, depth);
  return isObject(value) ? labelled(conversationsOfObject(text, value, depth), value.custom_id) : [];
}

const labelled = (found, label) => (typeof label === 'string' ? found.map((one) => ({ label, ...one })) : found);

function conversationsOfObject(text, value, depth) {
  // LangSmith has a list for each prompt.
  const nested = LISTS.find((member) => isList(value[member]) && value[member].length && value[member].every(isList));
  if (nested) return itemTexts(memberText(text, nested)).map((list, i) => messagesOf(list, value[nested][i]));
  if (hasConversation(value)) return [{ form: 'body', text, value }];
  const what = foreignName(value);
  if (what) return [{ form: 'foreign', what }];
  if (isList(value.requests)) return conversationsIn(memberText(text, 'requests'), value.requests, depth + 1);
  // The line of a batch's output.
  if (isObject(value.response?.body)) {
    const { body } = value.response;
    return isError(body)
      ? [{ form: 'error', text: JSON.stringify(body) }]
      : [
          {
            form: 'foreign',
            what: foreignName(body) ?? 'an answer of a model, not a request: pass the body that was sent',
          },
        ];
  }
  for (const member of INNER) {
    const found = conversationsOfMember(text, value, member, depth);
    if (found.length) return found;
  }
  return isError(value) ? [{ form: 'error', text }] : [];
}

function conversationsOfMember(text, value, member, depth) {
  if (!Object.hasOwn(value, member)) return [];
  let inner = memberText(text, member);
  let content = value[member];
  if (typeof content === 'string') {
    // Logs contain the body as a text.
    inner = content;
    try {
      content = JSON.parse(content);
    } catch {
      return [];
    }
  }
  return conversationsIn(inner, content, depth + 1);
}

function conversationsOfList(text, list, depth) {
  if (!list.length || list.every((item) => isMessage(item)))
    return depth > 0 && !list.length ? [] : [messagesOf(text, list)];
  const texts = itemTexts(text);
  const found = list.flatMap((item, i) =>
    isMessage(item) ? [] : conversationsIn(texts[i], item, depth + 1).map((one) => ({ label: `[${i}]`, ...one })),
  );
  if (!found.length) return depth > 0 ? [] : [messagesOf(text, list)];
  // Of an export with hundreds of conversations the name is enough.
  return found.every(({ form, what }) => form === 'foreign' && what === found[0].what) ? [found[0]] : found;
}
