// What a service of OpenAI's Responses keeps for its clients: conversations, and responses that a later request
// continues.

import { refuse } from './openai-errors.mjs';
import { errorBody } from './rules-openai-chat.mjs';
import { check, refusalOf } from './rules-openai-responses.mjs';
import { digest } from './signature.mjs';

/** OpenAI keeps a response for 30 days; a conversation has no end. */
const RESPONSE_DAYS = 30;
const CONVERSATION = /^(?:openai\/)?v1\/conversations(?:\/([^/]+?)(\/items)?)?$/;

export const isConversationPath = (path) => CONVERSATION.test(path ?? '');

/** The items of an `input`, which may be a text. */
const itemsOf = (input) => (typeof input === 'string' ? [{ role: 'user', content: input }] : (input ?? []));

/** The id of the conversation that a request names. */
export const conversationOf = ({ conversation }) => conversation?.id ?? conversation ?? null;

const isOutput = ({ type }) => /_call_output$/.test(type ?? '');

/** No item twice: no id, and no more outputs of a call id than calls. */
function checkOnce(items) {
  const ids = new Set();
  const open = new Map();
  for (const item of items) {
    if (item.id && ids.has(item.id))
      refuse(`Duplicate item found with id ${item.id}. Remove duplicate items from your input and try again.`, 'input');
    if (item.id) ids.add(item.id);
    const count = open.get(item.call_id) ?? 0;
    if (isOutput(item) && open.has(item.call_id) && count === 0)
      refuse(`No tool call found for function call output with call_id ${item.call_id}.`, 'input');
    if (item.call_id) open.set(item.call_id, count + (isOutput(item) ? -1 : 1));
  }
}

/** The conversations and responses that one lane keeps. */
export class ServiceState {
  constructor(lane) {
    this.lane = lane;
    /** id -> its items, and whether a request works on it. */
    this.conversations = new Map();
    /** id -> {items, day}: everything up to and with its output. */
    this.responses = new Map();
    /** id of a response -> the ids of its calls. */
    this.held = new Map();
    /** id of a response -> the ids of the asynchronous calls up to it: they may be answered later. */
    this.later = new Map();
    /** The id of the newest whole response, also of one that was sent without its id. */
    this.newest = null;
    this.day = 0;
  }

  createConversation(items = []) {
    // The time is in the hash, so that a restarted server gives out other ids.
    const id = `conv_${digest(`${this.lane}:${this.conversations.size}:${Date.now()}`, 36)}`;
    this.conversations.set(id, { items: [...items], isLocked: false });
    return id;
  }

  /** Advances the clock by `days`. Responses that are too old are removed. */
  advance(days) {
    this.day += days;
    for (const [id, { day }] of this.responses) {
      if (this.day - day <= RESPONSE_DAYS) continue;
      this.responses.delete(id);
      this.held.delete(id);
      this.later.delete(id);
    }
  }

  /** What comes before the input of a request. Throws a refusal for an id that is not kept. */
  history(body) {
    const conversation = conversationOf(body);
    const previous = body.previous_response_id ?? null;
    if (conversation && previous)
      refuse(
        "Mutually exclusive parameters: ['conversation', 'previous_response_id']. Ensure you are only providing one of: 'previous_response_id' or 'conversation'.",
        'conversation',
        'mutually_exclusive_parameters',
      );
    if (conversation) return this.#conversation(conversation).items;
    if (!previous) return [];
    const kept = this.responses.get(previous);
    if (!kept)
      refuse(
        `Previous response with id '${previous}' not found.`,
        'previous_response_id',
        'previous_response_not_found',
      );
    return kept.items;
  }

  #conversation(id) {
    const kept = this.conversations.get(id);
    if (!kept) refuse(`Conversation with id '${id}' not found.`, 'conversation', null);
    return kept;
  }

  /** {status, error} for a request that the service refuses because of what it keeps; null if it takes it. */
  refusal(body) {
    const refused = refusalOf(() => {
      const items = [...this.history(body), ...itemsOf(body.input)];
      if (this.conversations.get(conversationOf(body))?.isLocked)
        refuse(
          'Another process is currently operating on this conversation. Please retry in a few seconds.',
          'conversation',
          'conversation_locked',
        );
      checkOnce(items);
      return check({ ...body, input: items, previous_response_id: undefined, conversation: undefined });
    });
    return refused?.error.error.message.startsWith('Conversation with id') ? { ...refused, status: 404 } : refused;
  }

  /** Locks the conversation of a request until the returned function is called. */
  lock(body) {
    const kept = this.conversations.get(conversationOf(body));
    if (!kept) return () => {};
    kept.isLocked = true;
    return () => {
      kept.isLocked = false;
    };
  }

  /** A request with everything that the service has before it, as a model sees it. */
  wholeBody(body) {
    return { ...body, input: [...this.history(body), ...itemsOf(body.input)] };
  }

  /** Keeps a request and the output of its response, also in the conversation that the response names. A response that
   *  was cut off is no part of a chain; a conversation keeps its items that were `done`. */
  keep(body, { id, items: whole, done, isWhole, step: { conversation: named } }) {
    const output = isWhole ? whole : done;
    const items = [...this.history(body), ...itemsOf(body.input), ...output];
    const conversation = this.conversations.get(named ?? conversationOf(body));
    if (conversation) conversation.items = items;
    if (!isWhole) return;
    this.newest = { id, items };
    if (body.store === false) return;
    this.responses.set(id, { items, day: this.day });
    const ids = (list, isAsync) =>
      list
        .filter((item) => /_call$/.test(item.type) && (item.async === true) === isAsync)
        .map(({ call_id }) => call_id);
    this.held.set(id, ids(output, false));
    this.later.set(id, ids(items, true));
  }

  toJSON() {
    const conversations = Object.fromEntries([...this.conversations].map(([id, { items }]) => [id, items]));
    const responses = Object.fromEntries([...this.responses].map(([id, { items }]) => [id, items]));
    return { conversations, responses, newest: this.newest };
  }

  /** Answers the endpoints of conversations: {status?, json}, or null for another path. */
  answer({ method, path, query, body }) {
    const found = CONVERSATION.exec(path);
    if (!found) return null;
    const [, id, ofItems] = found;
    const refused = refusalOf(() => {
      if (id) this.#conversation(id);
    });
    if (refused) return { status: 404, json: refused.error };
    const resource = {
      object: 'conversation',
      created_at: Math.floor(Date.now() / 1000),
      metadata: body.metadata ?? {},
    };
    if (method === 'POST' && !id) return { json: { id: this.createConversation(body.items), ...resource } };
    if (method === 'GET' && id && !ofItems) return { json: { id, ...resource } };
    if (method === 'DELETE' && id && !ofItems)
      return { json: { id, object: 'conversation.deleted', deleted: this.conversations.delete(id) } };
    if (method === 'GET' && ofItems) {
      const { items } = this.conversations.get(id);
      const limit = Number(query.get('limit') ?? 20);
      const data = (query.get('order') === 'asc' ? items : items.toReversed()).slice(0, limit);
      return {
        json: {
          object: 'list',
          data,
          first_id: data[0]?.id ?? null,
          last_id: data.at(-1)?.id ?? null,
          has_more: items.length > limit,
        },
      };
    }
    return { status: 405, json: errorBody(`Not allowed to ${method} on /${path}.`, {}) };
  }
}
