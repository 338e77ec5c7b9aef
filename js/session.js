// `Session`: one conversation.

import * as check from './arguments.js';
import { memberOf } from './untrusted-value.js';
import { WasmHandle, dispose } from './wasm-handle.js';
import { ExternalLoop } from './external-loop.js';
import { appendedMessages, handoffsOf, plainRequest } from './input.js';
import { HistoryProviders } from './providers.js';
import { withJson } from './rendered.js';
import { Run } from './run.js';
import { StateBag } from './state-bag.js';
import { answerOptions } from './tool.js';
import { SessionView } from './view.js';

/** @typedef {import('./types.js').Session} PublicSession */

/** What loads the history beside the providers, by the kind of owner; `two_loaders` names it. */
const HISTORY_OF = { session: "the session's own log" };
/** The kind of owner whose history a provider may load: of the others, the log or the service has it. */
const LOADING_OWNER = 'caller';

/** @implements {PublicSession} */
export class Session {
  #handle;
  /** A copy that remains readable after the instance has stopped, for reopening the store. */
  #id;
  /** The view that notifies of each change, and the one that does once a frame. @type {Map<boolean, SessionView>} */
  #views = new Map();
  /** The properties at the time of disposal. */
  #last = null;

  #providers;

  /** The runs of the open store. @type {import('./own-runs.js').OwnRuns} */
  #runs;

  constructor(handle, runs, providers) {
    this.#handle = handle;
    this.#runs = runs;
    this.#id = handle.read((session) => session.id);
    this.#providers = this.#readProviders(providers ?? []);
  }

  /** What the objects of all sessions of one open store share. @param {any} session */
  static storeOf(session) {
    return #runs in session ? session.#runs : session;
  }

  get id() {
    return this.#id;
  }

  get revision() {
    return this.#property('revision');
  }

  get owner() {
    return this.#property('owner');
  }

  get branch() {
    return this.#property('branch');
  }

  get title() {
    return this.#property('title') ?? null;
  }

  get state() {
    return new StateBag(this.#wrap(this.#handle.call((session) => session.state)));
  }

  /** @type {PublicSession['update']} */
  update(fields) {
    return this.#handle.promise((session) => session.update(fields));
  }

  /** @type {PublicSession['annotate']} */
  annotate(messageId, metadata) {
    return this.#handle.promise(
      (session) => session.annotate(messageId, metadata),
      () => check.messageId(messageId),
    );
  }

  /** @type {PublicSession['markRead']} */
  markRead() {
    return this.#handle.promise((session) => session.markRead());
  }

  /** @type {PublicSession['save']} */
  save() {
    return this.#handle.promise((session) => session.save());
  }

  append(content, dialectOrOptions, options) {
    const isWire = typeof dialectOrOptions === 'string';
    const hooks = this.#providers.storeHook(this);
    return this.#handle.promise((session) => {
      if (isWire) return session.append(content, dialectOrOptions, options, hooks);
      // Blobs are read later, but the position in the write queue is taken now; the append reports what cannot be read.
      const messages = appendedMessages(content);
      messages.catch(() => {});
      return session.append(messages, dialectOrOptions, undefined, hooks);
    });
  }

  /** @type {PublicSession['answer']} */
  answer(call, answer, options) {
    const checks = () => {
      check.callId(call);
      check.effectAnswer(answer);
      check.time('the answer')(answer, 'finishedAt');
    };
    const hooks = this.#providers.storeHook(this);
    return this.#handle.promise((session) => session.answer(call, answer, answerOptions(options), hooks), checks);
  }

  /** @type {PublicSession['messages']} */
  messages(options) {
    return this.#handle.promise((session) => session.messages(options));
  }

  /** @type {PublicSession['view']} */
  view(options) {
    check.viewOptions(options);
    const isPerFrame = memberOf(options, 'notify') === 'frame';
    const known = this.#views.get(isPerFrame);
    if (known) return known;
    const handle = this.#wrap(this.#handle.call((session) => session.view()));
    const view = new SessionView(handle, this, { runs: this.#runs, isPerFrame });
    this.#views.set(isPerFrame, view);
    return view;
  }

  /** @type {PublicSession['invocations']} */
  invocations(query) {
    return this.#handle.promise((session) => session.invocations(query));
  }

  async render(request) {
    check.request(request);
    const hooks = this.#hooksOf(this.#providers);
    const [plain] = await plainRequest(request);
    return withJson(await this.#handle.promise((session) => session.render(plain, hooks)));
  }

  /** @type {PublicSession['run']} */
  async run(request) {
    check.request(request);
    const hooks = this.#hooks(request);
    const [plain] = await plainRequest(request);
    return this.#run((session) => session.run(plain, hooks), request);
  }

  /** @type {PublicSession['external']} */
  external(options) {
    return new ExternalLoop(
      this.#wrap(this.#handle.call((session) => session.external(options, this.#providers.storeHook(this)))),
    );
  }

  /** @type {PublicSession['pendingRuns']} */
  pendingRuns() {
    return this.#handle.promise((session) => session.pendingRuns());
  }

  /** @type {PublicSession['resume']} */
  async resume(run, request) {
    check.request(request);
    const hooks = this.#hooks(request);
    const target = check.copiedRun(run);
    const resume = async () => {
      const [plain] = await plainRequest(request);
      return this.#run((session) => session.resume(target, plain, hooks), request);
    };
    return typeof target === 'string' ? this.#runs.resume(this.#id, target, resume) : resume();
  }

  /** @type {PublicSession['discard']} */
  discard(run, options) {
    return this.#handle.promise(
      (session) => session.discard(run, options, this.#providers.storeHook(this)),
      () => check.runId(run),
    );
  }

  /** @type {PublicSession['fork']} */
  fork(afterMessageId) {
    return this.#handle.promise(
      (session) => session.fork(afterMessageId),
      () => check.forkPlace(afterMessageId),
    );
  }

  /** @type {PublicSession['switchTo']} */
  switchTo(branch) {
    return this.#handle.promise(
      (session) => session.switchTo(branch),
      () => check.branch(branch),
    );
  }

  /** @type {PublicSession['branches']} */
  branches() {
    return this.#handle.promise((session) => session.branches());
  }

  /** @type {PublicSession['compact']} */
  compact(options) {
    return this.#handle.promise((session) => session.compact(options));
  }

  /** @type {PublicSession['deleteMessages']} */
  deleteMessages(ids) {
    return this.#handle.promise(
      (session) => session.deleteMessages(ids),
      () => check.messageIds(ids),
    );
  }

  /** @type {PublicSession['clear']} */
  clear() {
    return this.#handle.promise((session) => session.clear());
  }

  /** @type {PublicSession['serialize']} */
  serialize() {
    return this.#handle.promise((session) => session.serialize());
  }

  /** @type {PublicSession['refresh']} */
  refresh() {
    return this.#handle.promise((session) => session.refresh());
  }

  /** @type {PublicSession['subscribe']} */
  subscribe(listener) {
    check.listener(listener);
    return this.#handle.subscribe(listener, listener);
  }

  /** The functions of the providers of a run: its own, or else the session's. */
  #hooks(request) {
    const providers = memberOf(request, 'providers');
    return this.#hooksOf(
      providers === undefined || providers === null ? this.#providers : this.#readProviders(providers),
    );
  }

  #hooksOf(providers) {
    const { kind } = this.owner;
    return providers.hooks(this, HISTORY_OF[kind], kind === LOADING_OWNER);
  }

  #readProviders(providers) {
    return new HistoryProviders(providers, HISTORY_OF[this.owner.kind]);
  }

  #property(name) {
    return this.#last ? this.#last[name] : this.#handle.read((session) => session[name]);
  }

  #wrap(object) {
    return new WasmHandle(this.#handle.instance, object);
  }

  async #run(work, request) {
    const agents = [request, ...handoffsOf(request)];
    const toolsOfAgents = agents.map((agent) => memberOf(agent, 'tools'));
    const run = new Run(this.#wrap(await this.#handle.promise(work)), toolsOfAgents);
    this.#runs.add(this.#id, run);
    return run;
  }

  /** Frees the session; it leaves memory unless one of its runs or views is still in use. Never throws, because `using`
   *  calls it. */
  [dispose]() {
    if (this.#handle.isDisposed) return;
    this.#runs.prune(this.#id);
    try {
      this.#last = this.#handle.read(({ revision, owner, branch, title }) => ({ revision, owner, branch, title }));
    } catch {
      // a stopped instance cannot be read
    }
    this.#handle.free();
  }
}
