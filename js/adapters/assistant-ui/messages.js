// Messages of assistant-ui, and of formats of its runtimes, as UI messages, which `rethread/ai-sdk` stores, and back: a
// codec for each. What `put` gets is the UI message; what a codec reads is an entry of the session.

import { RethreadError } from '../../error.js';
import { isObject, plain, without } from '../plain.js';
import { messageOf, partsOf } from '../ai-sdk/read.js';
import { carriedBy, carrier, fromUIPart, toUIPart } from './parts.js';

const ROLES = ['system', 'user', 'assistant'];
const AI_SDK = /^ai-sdk\/v(\d+)$/;

/** Statuses of answers that assistant-ui did not write. */
const STATUSES = {
  complete: { type: 'complete', reason: 'stop' },
  streaming: { type: 'incomplete', reason: 'cancelled' },
  stopped: { type: 'incomplete', reason: 'cancelled' },
  truncated: { type: 'incomplete', reason: 'length' },
  failed: { type: 'incomplete', reason: 'error' },
};

const CUT_STATUSES = { cancelled: 'stopped', error: 'failed', length: 'truncated' };

const heads = (parts) => parts.filter(({ part }) => carriedBy(part)?.message);
const formatOf = (parts) => parts.map(({ part }) => carriedBy(part)).find((carried) => carried?.format !== undefined);

function checkedId(id) {
  if (typeof id === 'string' && id) return id;
  throw new RethreadError('invalid_input', 'a message of assistant-ui has an `id`');
}

function writeThreadMessage({ message, runConfig }) {
  const { id, role, content, ...rest } = message ?? {};
  const isPart = (part) => isObject(part) && typeof part.type === 'string';
  if (!ROLES.includes(role) || !Array.isArray(content) || !content.every(isPart))
    throw new RethreadError('invalid_input', 'a message of assistant-ui has a `role` and a list of parts as `content`');
  const attachments = Array.isArray(rest.attachments) ? rest.attachments : [];
  // What is attached is sent, too: its parts follow those of the message.
  const contents = attachments.map((attachment) => (Array.isArray(attachment.content) ? attachment.content : []));
  const head = {
    message: { ...rest, ...(rest.attachments && { attachments: attachments.map((item) => without(item, 'content')) }) },
    ...(runConfig === undefined ? {} : { runConfig }),
    ...(contents.length ? { attached: contents.map(({ length }) => length) } : {}),
  };
  const parts = [...content, ...contents.flat()].map((part) => toUIPart(part, role));
  return { id: checkedId(id), role, parts: [carrier(head), ...parts] };
}

/** A message that assistant-ui did not write. */
function foreignMessage({ id, role, metadata, first, last }, content) {
  const custom = isObject(metadata) ? metadata : {};
  const common = { id, role, createdAt: new Date(first.createdAt), content };
  if (role === 'user') return { ...common, attachments: [], metadata: { custom } };
  if (role !== 'assistant') return { ...common, content: systemContent(content), metadata: { custom } };
  return {
    ...common,
    status: STATUSES[last.status] ?? STATUSES.complete,
    metadata: { unstable_state: null, unstable_annotations: [], unstable_data: [], steps: [], custom },
  };
}

const systemContent = (content) => [
  { type: 'text', text: content.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n') },
];

function readThreadMessage(entry) {
  const parts = partsOf(entry);
  if (formatOf(parts)) return undefined;
  const head = carriedBy(heads(parts).at(-1)?.part ?? {});
  const shown = parts.flatMap(({ part }) => (carriedBy(part)?.message ? [] : (fromUIPart(part) ?? [])));
  if (!head) return { message: foreignMessage(entry, shown) };
  const { message: rest, attached = [], ...more } = head;
  const content = shown.slice(0, shown.length - attached.reduce((sum, length) => sum + length, 0));
  let at = content.length;
  const attachments = rest.attachments?.map((item, place) => {
    const own = shown.slice(at, at + attached[place]);
    at += attached[place];
    return { ...item, content: own };
  });
  return {
    message: { id: entry.id, role: entry.role, ...rest, ...(attachments && { attachments }), content },
    ...more,
  };
}

/** What the stored messages have of a message, for the other parts of rethread. */
function detailsOf({ message: { createdAt, status } }) {
  const time = createdAt === undefined ? Number.NaN : new Date(createdAt).getTime();
  const cut = status?.type === 'incomplete' ? CUT_STATUSES[status.reason] : undefined;
  return { ...(Number.isNaN(time) ? {} : { createdAt: time }), ...(cut === undefined ? {} : { status: cut }) };
}

/** Messages of assistant-ui itself (`ThreadMessage`). */
export const threadMessages = {
  write: writeThreadMessage,
  details: detailsOf,
  read: readThreadMessage,
  /** The parts of an entry that a written message may have. */
  parts: (entry) => partsOf(entry).filter(({ part }) => !carriedBy(part)?.message && fromUIPart(part) !== undefined),
  head: (entry) => heads(partsOf(entry)).at(-1)?.part ?? null,
};

/** Messages of the `ai` package: without what other messages have of assistant-ui. */
const uiParts = (entry) =>
  partsOf(entry).flatMap(({ at, part }) => (carriedBy(part) ? [] : [{ at, part: without(part, 'assistantUI') }]));

function uiMessages(format) {
  return {
    write({ message, format: adapter, ...item }) {
      const content = plain(adapter.encode({ message, ...item }));
      if (!isObject(content) || !ROLES.includes(content.role) || !Array.isArray(content.parts))
        throw new RethreadError('invalid_input', `a message of the format "${format}" has a \`role\` and \`parts\``);
      return { ...content, id: checkedId(adapter.getId(message)) };
    },
    read(entry, parentId, adapter) {
      if (formatOf(partsOf(entry))) return undefined;
      const { id, ...content } = messageOf(entry);
      const parts = uiParts(entry).map(({ part }) => part);
      return adapter.decode({ id, parent_id: parentId, format, content: { ...content, parts } });
    },
    details: () => ({}),
    parts: uiParts,
    head: () => undefined,
  };
}

/** Messages of any other format, of which nothing is known: they are kept, and never sent. */
function opaqueMessages(format) {
  return {
    write({ message, format: adapter, ...item }) {
      const content = adapter.encode({ message, ...item });
      const role = ROLES.includes(content?.role) ? content.role : 'assistant';
      return { id: checkedId(adapter.getId(message)), role, parts: [carrier({ format, content })] };
    },
    read(entry, parentId, adapter) {
      const carried = formatOf(partsOf(entry));
      if (carried?.format !== format) return undefined;
      return adapter.decode({ id: entry.id, parent_id: parentId, format, content: carried.content });
    },
    details: () => ({}),
    parts: partsOf,
    head: () => undefined,
  };
}

/** The codec of a format of `withFormat`. */
export function messagesOf(format) {
  const [, version] = AI_SDK.exec(format) ?? [];
  return Number(version) >= 5 ? uiMessages(format) : opaqueMessages(format);
}
