// The items of a session in their order: read from its messages, and the messages that change them.

import { INTERRUPTED } from '../interrupted.js';
import { argumentValue } from '../call-arguments.js';
import { currentInvocation, lineage, markMessage, markOf, marksAnew, newId, startMarks } from '../once/marks.js';
import { isSameJson } from '../plain.js';
import {
  messagesOf,
  plainResultMessage,
  isPlainResult,
  readMessage,
  recordMessage,
  resultItem,
  resultOf,
} from './items.js';

/** The item that stands for the result of a call that was started and has none. */
const interruptedItem = (callId, name) => resultItem({ callId, name, result: { content: INTERRUPTED } });

/** The source of messages that a run of the SDK has stored: its runner knows which of their calls have been executed.
 *  @type {Source} */
export const RUN = { type: 'external', id: 'openai-agents' };

/** @typedef {import('./items.js').Source} Source */
/** @typedef {import('./items.js').ItemRecord} ItemRecord */
/** A message with its items. `isRecord`: the conversation shows nothing of it; `mark`: that of `once`.
 *  @typedef {{ id: string, items: any[], calls: Call[], source: Source, isRecord: boolean,
 *    record: ItemRecord, mark: import('../once/marks.js').CallMark | undefined }} Block */
/** An item of the history; without a block while it is not stored.
 *  @typedef {import('./items.js').SourcedItem & { block?: Block }} Entry */
/** A call that the session has. `isTold`: an item has its result.
 *  @typedef {{ callId: string, name: string, invocation: string, argumentsText: string, result: any,
 *    outcome?: import('./items.js').Outcome, isTold: boolean, block: Block }} Call */

/** What was read of messages that have not changed. */
const readings = new WeakMap();

/** The ids of calls of which a message says that they start. @returns {string[]} */
export const startsOf = (message) => blockOf(message).record.starts ?? [];

function blockOf(message) {
  const reading = readings.get(message) ?? { ...readMessage(message), mark: markOf(message) };
  readings.set(message, reading);
  const isRecord = message.parts.every(({ type }) => type === 'data');
  const block = { ...reading, id: message.id, source: message.source, isRecord, calls: /** @type {Call[]} */ ([]) };
  for (const part of message.parts) {
    if (part.type !== 'tool_call') continue;
    const { callId, name, invocation, argumentsText, result, status, startedAt, finishedAt } = part;
    const outcome = result ? { ...result, status, startedAt, finishedAt } : undefined;
    const told = { result: result ?? null, outcome, isTold: false };
    block.calls.push({ callId, name, invocation, argumentsText, ...told, block });
  }
  return block;
}

/** The messages that still count, and the ids of those that are left of removed ones: without those that a later one
 *  has removed, and those before a compaction. And the calls that were started and have no result; a compaction does
 *  not end them. */
function countedBlocks(messages) {
  const blocks = messages.map(blockOf);
  const removed = new Set(blocks.flatMap(({ record }) => record.removes ?? []));
  const counted = blocks.filter(({ id }) => !removed.has(id));
  const start = counted.findLastIndex(({ record }) => record.startsHistory);
  const left = blocks.flatMap(({ id }) => (removed.has(id) ? [id] : []));
  const started = { started: startedCalls(counted), startedByOnce: callsStartedByOnce(counted) };
  return { blocks: start < 0 ? counted : counted.slice(start), left, ...started };
}

/** The invocations of calls that `once` has started: their tools may have run. @param {Block[]} blocks */
function callsStartedByOnce(blocks) {
  const marks = blocks.flatMap(({ mark }) => mark ?? []);
  return new Set(startMarks(marks).map(({ invocation }) => currentInvocation(marks, invocation)));
}

const hasResultOf = (call, item) =>
  call.result !== null && (isSameJson(call.result.content, resultOf(item)) || isSameJson(resultItem(call), item));

/** True for a result that says of its call that it was interrupted. */
const isInterruption = (item) => item.type === 'function_call_result' && String(resultOf(item)).includes(INTERRUPTED);

/** Takes the first item that `isOne` out of a list; false if there is none. */
function take(items, isOne) {
  const at = items.findIndex(isOne);
  if (at >= 0) items.splice(at, 1);
  return at >= 0;
}

const hasArgumentsOf = (item, { argumentsText }) =>
  isSameJson(argumentValue(item.arguments), argumentValue(argumentsText));

/** True if the item may be the call that `once` has stored. */
const hasNameOf = (item, { callId, name }) =>
  item.type === 'function_call' && item.callId === callId && item.name === name;

/** What its tool got of a call that was rewritten: the call has other arguments since, or the same. */
const keptArguments = (mark, item, { argumentsText }) =>
  item.arguments === argumentsText ? mark.arguments : undefined;

/** What its tool got of a call that takes the place of the one which `once` has stored. */
const executedArguments = (mark, item, call) =>
  mark.arguments ?? (hasArgumentsOf(item, call) ? undefined : argumentValue(call.argumentsText));

/** The ids of calls whose tools have started, and may have run: those that have no result. */
function startedCalls(blocks) {
  const started = new Set();
  const answered = new Set();
  for (const { calls, record } of blocks) {
    for (const { callId, result } of calls) {
      // The call may have the id of an earlier one.
      started.delete(callId);
      if (result === null) answered.delete(callId);
      else answered.add(callId);
    }
    for (const callId of record.starts ?? []) started.add(callId);
  }
  return new Set([...started].filter((callId) => !answered.has(callId)));
}

/** What a session's messages say at one revision. */
export class History {
  /** By id, the calls of the newest message that has one, in their order. @type {Map<string, Call[]>} */
  #newest = new Map();
  /** The calls of results that items have. @type {Map<object, Call>} */
  #told = new Map();
  /** The calls of results that no item of a message has. @type {WeakMap<object, Call>} */
  #untold = new WeakMap();
  /** The calls that items are. @type {Map<object, Call>} */
  #calls = new Map();
  /** The invocations of calls that a branch may have started which cannot be read. @type {Set<string>} */
  #doubted = new Set();

  /** @param {{ revision: number, messages: any[] }} read */
  constructor({ revision, messages }) {
    this.revision = revision;
    const { blocks, left, started, startedByOnce } = countedBlocks(messages);
    this.blocks = blocks;
    /** The ids of calls that may have run and have no result. @type {Set<string>} */
    this.started = started;
    /** The invocations of calls that `once` has started. @type {Set<string>} */
    this.startedByOnce = startedByOnce;
    /** True if the session has other branches, which may have the same calls. */
    this.isForked = false;
    /** The ids of messages that were removed and not erased yet. */
    this.left = left;
    for (const block of this.blocks) this.#tellCalls(block);
    /** Each item with the message that it belongs to. @type {(Entry & { block: Block })[]} */
    this.entries = this.blocks.flatMap((block) =>
      [...block.items, ...this.#resultsOf(block)].map((item) => ({ item, source: block.source, block })),
    );
  }

  /** Finds the call of each result: an id may come again, also in one answer. */
  #tellCalls({ items, calls }) {
    const left = [...calls];
    for (const item of items) {
      if (item.type === 'function_call') {
        const at = left.findIndex(({ callId }) => callId === item.callId);
        if (at < 0) continue;
        const [call] = left.splice(at, 1);
        this.#calls.set(item, call);
        this.#add(call);
      } else if (item.type === 'function_call_result') {
        const candidates = (this.#newest.get(item.callId) ?? []).filter(({ isTold }) => !isTold);
        // A second result of a call is told beside the one that the call has.
        const call =
          candidates.find((one) => hasResultOf(one, item)) ??
          candidates.find(({ result }) => result === null) ??
          candidates.find(({ block }) => block.items === items);
        if (!call) continue;
        call.isTold = true;
        this.#told.set(item, call);
      }
    }
    for (const call of left) this.#add(call);
  }

  /** @param {Call} call */
  #add(call) {
    const others = this.#newest.get(call.callId)?.filter(({ block }) => block === call.block) ?? [];
    this.#newest.set(call.callId, [...others, call]);
  }

  /** The newest call of an id: of several in one answer the first one without a result, or else the last one.
   *  @param {string} callId */
  call(callId) {
    const calls = this.#newest.get(callId) ?? [];
    return calls.find(({ result }) => result === null) ?? calls.at(-1);
  }

  get items() {
    return this.entries.map(({ item }) => item);
  }

  /** Adds what other branches say of open calls.
   *  @param {{ started: Set<string>, startedByOnce: Set<string>, doubted: Set<string> }} told */
  addStarts({ started, startedByOnce, doubted }) {
    for (const { callId, invocation } of this.openCalls) if (started.has(invocation)) this.started.add(callId);
    for (const invocation of startedByOnce) this.startedByOnce.add(invocation);
    for (const invocation of doubted) this.#doubted.add(invocation);
  }

  /** The newest calls of their ids that have no result. @returns {Call[]} */
  get openCalls() {
    return [...this.#newest.values()].flat().filter(({ result }) => result === null);
  }

  /** The items as a run gets them. An open call that no run has stored may have been executed where it comes from, as
   *  one that `once` has started may have been, and gets the result that says so: the SDK would not send it, and the
   *  model would make it again. */
  get itemsOfRun() {
    const mayHaveRun = ({ invocation, block }) =>
      block.source?.id !== RUN.id || this.startedByOnce.has(invocation) || this.#doubted.has(invocation);
    return this.blocks.flatMap((block) => [...block.items, ...this.#resultsOf(block, mayHaveRun)]);
  }

  /** The calls without a result, except those of some messages.
   *  @param {Block[]} [going] @returns {import('./items.js').OpenCalls} */
  #openCalls(going = []) {
    const open = /** @type {import('./items.js').OpenCalls} */ (new Map());
    for (const [callId, calls] of this.#newest) {
      const some = calls.filter(({ result, block }) => result === null && !going.includes(block));
      open.set(
        callId,
        some.map(({ invocation }) => invocation),
      );
    }
    return open;
  }

  /** The operations that were applied, by id. */
  get operations() {
    return new Map(this.blocks.flatMap(({ record }) => record.operations ?? []).map(({ id, digest }) => [id, digest]));
  }

  /** Results of a message's calls that no item has. `mayHaveRun`: tells which calls may have run although no record says
   *  that they started. */
  #resultsOf({ calls }, mayHaveRun = (/** @type {Call} */ _call) => false) {
    return calls.flatMap((call) => {
      if (call.isTold) return [];
      if (call.result !== null) return [this.#resultItem(call)];
      const isNewest = this.#newest.get(call.callId)?.includes(call);
      const isUnknown = this.started.has(call.callId) || mayHaveRun(call);
      return isNewest && isUnknown ? [interruptedItem(call.callId, call.name)] : [];
    });
  }

  /** @param {Call} call */
  #resultItem(call) {
    const item = resultItem(call);
    this.#untold.set(item, call);
    return item;
  }

  /** The call that a result is for. @returns {Call | undefined} */
  #callFor(item) {
    return item.type === 'function_call_result' ? this.call(item.callId) : undefined;
  }

  /** True if the item repeats a result that its call has already, or says of such a call that it was interrupted. */
  hasResult(item) {
    const call = this.#callFor(item);
    if (!call || call.result === null) return false;
    return isInterruption(item) || this.items.some((other) => isSameJson(other, item));
  }

  /** True for a result that a run has of a call which `once` has started, and of which it does not know the end: the
   *  model was told so, or that the tool took too long, and the result may still come. @param {Entry} entry */
  #isUnknownToOnce({ item, source }) {
    const call = source?.id === RUN.id ? this.#callFor(item) : undefined;
    return call !== undefined && call.result === null && this.startedByOnce.has(call.invocation);
  }

  /** Returns the change that puts results as a run has them in the place of those that `once` has stored, if they
   *  differ: the runner has a text of its own for an error, and a guardrail may have replaced an output. What the tool
   *  returned stays known to `once`. The result of another process stays: this one does not know what it was told.
   *  @param {any[]} items @param {Set<string>} executed the invocations of results that come from executions here
   *  @returns {any} */
  retold(items, executed) {
    const results = items.filter((item) => item.type === 'function_call_result' && !isInterruption(item));
    const places = new Map();
    for (const callId of new Set(results.map((item) => item.callId))) {
      const own = results.filter((item) => item.callId === callId);
      const stored = (this.#newest.get(callId) ?? []).filter((call) => this.#isOfOnce(call, executed));
      const untold = stored.filter((call) => !take(own, (item) => isSameJson(resultItem(call), item)));
      for (const [at, call] of untold.slice(0, own.length).entries())
        places.set(
          this.entries.findIndex(({ item }) => this.#untold.get(item) === call),
          own[at],
        );
    }
    if (!places.size) return undefined;
    const start = Math.min(...places.keys());
    const entries = this.entries.slice(start).map((entry, at) => {
      const item = places.get(start + at);
      return item ? { ...entry, item, outcome: this.#untold.get(entry.item)?.outcome } : entry;
    });
    return { ...this.replaced(start, entries), isRetold: true };
  }

  /** True for a call of a run whose result `once` has stored here, and no item has.
   *  @param {Call} call @param {Set<string>} executed */
  #isOfOnce({ result, isTold, invocation, block }, executed) {
    if (result === null || isTold || block.mark || !this.startedByOnce.has(invocation)) return false;
    const marks = this.blocks.map(({ mark }) => mark);
    return lineage(marks, invocation).some((one) => executed.has(one));
  }

  /** The call of a result that needs no record: stored with its call, it is the last item. @returns {Call | undefined} */
  #callOfLastPlainResult(item) {
    const call = this.#callFor(item);
    if (!call || call.result !== null || !isPlainResult(item, call.name)) return undefined;
    const { calls } = call.block;
    const isLast =
      call.block === this.entries.at(-1)?.block &&
      calls.slice(calls.indexOf(call) + 1).every(({ result }) => result === null);
    return isLast ? call : undefined;
  }

  /** Returns the items with the source of who stores them: `source`, or without one that of the call which an item
   *  writes anew. @param {any[]} items @param {Source} [source] @returns {Entry[]} */
  sourced(items, source) {
    const sourceOf = ({ type, callId }) => (type === 'function_call' ? this.call(callId)?.block.source : undefined);
    return items.map((item) => ({ item, source: source ?? sourceOf(item) }));
  }

  /** Returns the messages that add items at the end, and the ids of those that go for them. `isOfRun`: tells which
   *  messages were stored since the run began that adds them.
   *  @param {Entry[]} entries @param {ItemRecord} [record] @param {(block: Block) => boolean} [isOfRun]
   *  @returns {{ messages: any[], removes?: string[] }} */
  appended(entries, record, isOfRun = () => false) {
    const told = entries.map((entry) => (this.#isUnknownToOnce(entry) ? { ...entry, isStored: true } : entry));
    const journal = this.#journalOf(told, isOfRun);
    if (journal.length) return this.#takingOver(told, journal, record);
    const rest = told.filter(({ item }) => !this.hasResult(item));
    const [first] = rest;
    const call = rest.length === 1 && !first.isStored && !record ? this.#callOfLastPlainResult(first.item) : undefined;
    if (call) return { messages: plainResultMessage(first.item, call.invocation) };
    return { messages: rest.length || record ? messagesOf(rest, { openCalls: this.#openCalls(), record }) : [] };
  }

  /** The messages in which `once` has stored calls of these items: the SDK's runner stores a call after its tool. A
   *  wrapper may have passed other arguments to the tool of the run.
   *  @param {Entry[]} entries @param {(block: Block) => boolean} isOfRun */
  #journalOf(entries, isOfRun) {
    return this.blocks.filter((block) => {
      const [call] = block.calls;
      if (!block.mark || !call || block.record.items) return false;
      return entries.some(({ item }) => hasNameOf(item, call) && (hasArgumentsOf(item, call) || isOfRun(block)));
    });
  }

  /** Returns the messages that add items in the place of what `once` has stored of their calls.
   *  @param {Entry[]} entries @param {Block[]} journal @param {ItemRecord} [record] */
  #takingOver(entries, journal, record) {
    const calls = journal.flatMap((block) => block.calls);
    const callOf = ({ callId }) => calls.find((call) => call.callId === callId);
    const hasResult = (call) => rest.some(({ item }) => item.type === 'function_call_result' && callOf(item) === call);
    const rest = entries.filter(({ item }) => callOf(item) || !this.hasResult(item));
    const results = calls.filter((call) => call.result !== null && !hasResult(call));
    const all = [...rest, ...results.map((call) => ({ item: this.#resultItem(call), source: RUN }))];
    const invocations = calls.map(({ invocation }) => invocation);
    const going = this.blocks.filter(({ mark }) => mark && invocations.includes(mark.invocation));
    const { entries: renewed, marks } = this.#renewed(all, going, executedArguments);
    // The runner has a text of its own for an error.
    const taken = renewed.map((entry) => {
      const isResult = entry.item.type === 'function_call_result';
      return isResult ? { ...entry, outcome: entry.outcome ?? callOf(entry.item)?.outcome } : entry;
    });
    const removes = going.map(({ id }) => id);
    const messages = messagesOf(taken, { openCalls: this.#openCalls(going), record: { ...record, removes } });
    return { messages: [...messages, ...marks.map(markMessage)], removes };
  }

  /** Returns the message which says that the tool of a call begins. */
  starting(callId) {
    return [recordMessage({ starts: [callId] })];
  }

  /** Returns the change that puts the result of a tool in the place of the one which says that it was interrupted. */
  answered(item) {
    const at = this.entries.findLastIndex(
      (entry) => entry.item.type === 'function_call_result' && entry.item.callId === item.callId,
    );
    return this.replaced(at, [{ ...this.entries[at], item }, ...this.entries.slice(at + 1)]);
  }

  /** Returns the message from which on the history is `items`. What precedes it stays in the session, and is shown. */
  compacted(items) {
    const operations = [...this.operations].map(([id, digest]) => ({ id, digest }));
    return { messages: [recordMessage({ items, startsHistory: true, ...(operations.length && { operations }) })] };
  }

  /** Returns the messages that put `entries` in the place of everything from `start` on, and the ids of the messages
   *  that go for them. A message is replaced as a whole, with the calls of results that go.
   *  @param {number} start @param {Entry[]} entries @param {{ id: string, digest: string }} [operation] */
  replaced(start, entries, operation) {
    const first = Math.min(...this.entries.slice(start).map((entry) => this.blocks.indexOf(this.#callBlock(entry))));
    const block = Number.isFinite(first) ? this.blocks[first] : undefined;
    const from = block ? this.entries.findIndex((entry) => this.blocks.indexOf(entry.block) >= first) : start;
    const going = block ? this.blocks.slice(first) : [];
    const isOver = (callId) =>
      !this.started.has(callId) || going.some(({ calls }) => calls.includes(this.call(callId)));
    const invocations = new Set(going.flatMap(({ calls }) => calls.map(({ invocation }) => invocation)));
    const isGoing = ({ items: itsItems, calls, mark, record: { items: stored, starts } }) =>
      itsItems.length || calls.length || stored || starts?.every(isOver) || invocations.has(mark?.invocation ?? '');
    const removes = going.filter(isGoing).map(({ id }) => id);
    const operations = [...going.flatMap(({ record }) => record.operations ?? []), ...(operation ? [operation] : [])];
    // A result of a call that stays has its place there, also if another call of its id is open.
    const isStored = ({ item }) => this.#told.has(item) && !going.includes(this.#told.get(item)?.block);
    const kept = [...this.entries.slice(from, Math.max(start, from)), ...entries].map((entry) =>
      isStored(entry) ? { ...entry, isStored: true } : entry,
    );
    const record = { ...(removes.length && { removes }), ...(operations.length && { operations }) };
    const startsHistory = going.some((one) => one.record.startsHistory);
    const { entries: renewed, marks } = this.#renewed(kept, going);
    const { messages } = this.#replacement(renewed, startsHistory ? { ...record, startsHistory } : record, going);
    return { messages: [...messages, ...marks.map(markMessage)], removes };
  }

  /** The entries with what their calls and results have in messages that go, and the marks of these calls. A call that
   *  is new takes the place of one with its id. @param {Entry[]} kept @param {Block[]} going */
  #renewed(kept, going, argumentsOf = keptArguments) {
    const stored = kept.map(({ item }) => this.#calls.get(item));
    const left = going.flatMap(({ calls }) => calls).filter((call) => !stored.includes(call));
    const marks = going.flatMap(({ mark }) => mark ?? []);
    const answered = kept.flatMap(({ item }) => (item.type === 'function_call_result' ? [item.callId] : []));
    // Another branch may start the call, or has.
    const isShared = ({ callId, result }) => this.isForked && result === null && !answered.includes(callId);
    const renewed = kept.map((entry, at) => {
      const { item } = entry;
      if (item.type === 'function_call_result')
        return { ...entry, outcome: entry.outcome ?? this.#outcomeOf(item, going) };
      const place = left.findIndex(({ callId }) => item.type === 'function_call' && callId === item.callId);
      const call = stored[at] ?? (place < 0 ? undefined : left.splice(place, 1)[0]);
      if (!call) return entry;
      const noted = marks.filter(({ invocation }) => invocation === call.invocation);
      const own = !noted.length && isShared(call) ? [{ invocation: call.invocation }] : noted;
      if (!own.length) return entry;
      const invocation = newId();
      return { ...entry, invocation, marks: marksAnew(own, invocation, (mark) => argumentsOf(mark, item, call)) };
    });
    return { entries: renewed, marks: renewed.flatMap((entry) => ('marks' in entry ? entry.marks : [])) };
  }

  /** What is kept of a result, also if an equal item replaces that of a message that goes.
   *  @param {Block[]} going @returns {import('./items.js').Outcome | undefined} */
  #outcomeOf(item, going) {
    const isEqual = (call) => call.callId === item.callId && hasResultOf(call, item);
    const equal = () => going.flatMap(({ calls }) => calls).find(isEqual);
    return (this.#told.get(item) ?? this.#untold.get(item) ?? equal())?.outcome;
  }

  /** @param {Entry[]} kept */
  #replacement(kept, record, going) {
    const openCalls = this.#openCalls(going);
    if (!kept.length && !record.operations && !record.startsHistory) return { messages: [] };
    // What a compaction keeps is shown already, by the messages before it.
    const compacted = kept.filter(({ block }) => block?.isRecord && block.record.startsHistory);
    if (!compacted.length) return { messages: messagesOf(kept, { openCalls, record }) };
    const items = compacted.map(({ item }) => item);
    const rest = messagesOf(kept.slice(items.length), { openCalls });
    return { messages: [recordMessage({ items, ...record }), ...rest] };
  }

  /** The first message that has to be written again without the entry: of a result, that of its call. */
  #callBlock({ item, block }) {
    const call = this.#told.get(item);
    if (!call) return block;
    return this.blocks.indexOf(call.block) < this.blocks.indexOf(block) ? call.block : block;
  }
}
