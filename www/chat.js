// One chat of the page: its session and its active run. Everything shown comes from the session's view.

import { drive } from 'rethread/host';
import { clip } from './dom.js';
import { describeRequest } from './request-description.js';
import { fileNameOf } from './session-files.js';
import { toolsFor } from './tools.js';

const MAX_REQUESTS = 20;
const MAX_EVENTS = 200;

function notStored(error) {
  throw error?.code === 'not_found' ? new Error('Nothing of this chat is stored yet.', { cause: error }) : error;
}

export class Chat {
  /** The failure to show: `{ text, retry? }`. */
  failure = null;
  /** The requests that this page has sent, the newest last: what `describeRequest` returns, with `dialect`, `at`,
   *  `text`, `report` and `prefix`. */
  requests = [];
  /** What the last run of this tab reported, the newest last: `{ type, at, count, text }`. */
  events = [];
  #db;
  #session;
  #settings;
  #changed;
  #active = null;
  /** The last run of this tab, which may wait for an approval. */
  #run = null;
  #unsubscribe;
  #hidden = [];
  #readings = 0;
  /** The runs that the view shows and history does not have. */
  #shownRuns = new Set();

  static async open(db, id, settings, changed) {
    const chat = new Chat(db, await db.session(id), settings, changed);
    await chat.readPendingRuns();
    return chat;
  }

  constructor(db, session, settings, changed) {
    this.#db = db;
    this.#session = session;
    this.#settings = settings;
    this.#changed = changed;
    this.view = session.view();
    this.#unsubscribe = this.view.subscribe(() => this.#onViewChange());
  }

  get id() {
    return this.#session.id;
  }

  get title() {
    return this.#session.title;
  }

  get owner() {
    return this.#session.owner;
  }

  /** The newest request of this page. */
  get lastRequest() {
    return this.requests.at(-1) ?? null;
  }

  /** The run that is under way in this tab, or null. */
  get activeRun() {
    return this.running ? this.#run : null;
  }

  /** A page of the audit table. */
  invocations(query) {
    return this.#session.invocations(query);
  }

  pendingRuns() {
    return this.#session.pendingRuns();
  }

  /** True if anything of the chat is in the store, an unfinished run too. */
  async isStored() {
    return this.#session.revision > 0 || (await this.pendingRuns()).length > 0;
  }

  /** Unfinished runs that the view does not show: those in the place of another message, until history has them. */
  get hiddenRuns() {
    return this.#hidden.filter((run) => !this.#shows(run));
  }

  #shows({ id }) {
    const { messages, run } = this.view.getSnapshot();
    return id === run?.id || messages.some(({ runId }) => runId === id);
  }

  /** Reads the unfinished runs, for `hiddenRuns`. One that the view shows now is not among them: when it leaves the view,
   *  only another reading can say whether it is still unfinished. */
  async readPendingRuns() {
    this.#readings += 1;
    const reading = this.#readings;
    try {
      const pending = await this.pendingRuns();
      if (reading !== this.#readings) return; // a later one is under way
      this.#hidden = pending.filter((run) => run.state !== 'live' && !this.#shows(run));
    } catch (error) {
      // Nothing is stored yet, or the chat was deleted.
      if (error?.code !== 'not_found') this.#fail(error);
    }
    this.#changed();
  }

  /** A run that leaves the view has ended, or is hidden from now on. */
  #onViewChange() {
    const { messages, run } = this.view.getSnapshot();
    const shown = new Set(messages.flatMap(({ saved, runId }) => (saved ? [] : [runId])));
    if (run) shown.add(run.id);
    const hasLeft = [...this.#shownRuns].some((id) => !shown.has(id));
    this.#shownRuns = shown;
    this.#changed();
    if (hasLeft) this.readPendingRuns();
  }

  branches() {
    return this.#session.branches();
  }

  get fileName() {
    return fileNameOf(this.title);
  }

  /** The chat as JSON Lines. */
  exportLines() {
    return this.#db.exportSession(this.id).catch(notStored);
  }

  /** The chat as opaque bytes. */
  serialize() {
    return this.#session.serialize().catch(notStored);
  }

  /** Changes who owns the conversation. Without an id a new conversation begins at the service. */
  async chooseOwner(kind, id) {
    const { owner } = this;
    const owners = {
      session: async () => ({ kind }),
      response: async () => ({ kind, auto: true }),
      conversation: async () => ({ kind, conversationId: id || (await this.#settings.beginConversation()) }),
    };
    const chosen = await owners[kind]();
    // The owner must be the session in between: a service cannot follow another one.
    if (owner.kind === 'conversation' && chosen.kind !== 'session')
      await this.#db.session(this.id, { owner: { kind: 'session' } });
    await this.#db.session(this.id, { owner: chosen });
    // A chat that is not stored yet stores it with its first turn.
    if (this.#session.revision > 0) await this.#session.save();
    this.#changed();
  }

  /** True if a run of the chat is active in this tab or another. */
  get isUnderWay() {
    return this.running || this.view.getSnapshot().run?.status === 'running';
  }

  /** True if a run of the chat is active in this tab. */
  get running() {
    return this.#active !== null;
  }

  close() {
    this.#unsubscribe();
  }

  /** Sends a question. Resolves to the status of `RunResult`, or to "not_started". `replace`: the id of the question
   *  that this one is an edit of. */
  send(question, replace) {
    return this.#drive(async (request) => {
      // The first question becomes the title of the chat.
      if (!this.title)
        await this.#db.session(this.id, { owner: this.owner, title: clip(question.replace(/\s+/g, ' '), 60) });
      const unfinished = this.view.getSnapshot().run;
      const run = await this.#session.run({ ...request, input: question, ...(replace && { replace }) });
      // The new run replaces an unfinished one in the view.
      if (unfinished && unfinished.status !== 'running') await this.discard(unfinished.id);
      return run;
    });
  }

  /** Asks for another answer to the question of a turn, of which this is a message. */
  regenerate(messageId) {
    return this.#drive((request) => this.#session.run({ ...request, replace: messageId }));
  }

  /** Shows the branch of another message at the same place. */
  async showVersion(messageId) {
    try {
      await this.#session.switchTo(messageId);
    } catch (error) {
      this.#fail(error);
    }
    await this.readPendingRuns();
  }

  /** Stores the result of an asynchronous call, and lets the model answer it. */
  async answer(call, text) {
    try {
      await this.#session.answer(call, { type: 'tool_result', content: text }, { tools: this.#tools });
    } catch (error) {
      this.#fail(error);
      return;
    }
    // A run that is under way sends it with its next request.
    if (!this.isUnderWay) await this.#drive((request) => this.#session.run(request));
  }

  /** Erases a message, and returns the receipt. */
  async erase(messageId) {
    try {
      const receipt = await this.#session.deleteMessages([messageId]);
      // They quote what is erased.
      this.requests = [];
      this.events = [];
      this.#changed();
      return receipt;
    } catch (error) {
      this.#fail(error);
      return null;
    }
  }

  get #tools() {
    const { hostile, counter } = this.#settings;
    return toolsFor({ hostile, counter });
  }

  resume(runId) {
    if (this.running) return 'not_started';
    return this.#drive((request) => this.#session.resume(runId, request));
  }

  async discard(runId) {
    try {
      await this.#session.discard(runId);
    } catch (error) {
      // The run that replaced it has removed it already.
      if (error?.code !== 'not_found') this.#fail(error);
    }
    await this.readPendingRuns();
  }

  /** Approves a call, by its invocation id, of a run that waits for it, or rejects it with a reason. The run may be one
   *  of before a reload, or of another tab. */
  async decide(runId, call, approves, reason) {
    const decide = (run) => (approves ? run.approve(call) : run.reject(call, reason));
    const active = this.#run?.id === runId ? this.#run : null;
    // Other calls of the round are still running.
    if (this.running) return active && decide(active).catch((error) => this.#fail(error));
    let failure = null;
    const status = await this.#drive(async (request) => {
      const run = active?.status === 'waiting_approval' ? active : await this.#session.resume(runId, request);
      this.#run = run;
      try {
        await decide(run);
      } catch (error) {
        failure = error;
        // Nobody would drive it, and no other tab could resume it.
        if (run.status !== 'running') {
          this.#run = null;
          run[Symbol.dispose ?? Symbol.for('Symbol.dispose')]();
          throw error;
        }
      }
      return run;
    });
    if (failure) this.#fail(failure);
    return status;
  }

  stop() {
    this.#active?.stop.abort();
    return this.#active?.ended;
  }

  async #drive(begin) {
    if (this.running) return 'not_started';
    const stop = new AbortController();
    this.failure = null;
    const ended = this.#follow(begin, stop);
    this.#active = { stop, ended };
    this.#changed();
    try {
      return await ended;
    } finally {
      this.#active = null;
      this.#changed();
      await this.readPendingRuns();
    }
  }

  async #follow(begin, stop) {
    const { provider, headers, keepsConversations } = this.#settings;
    try {
      if (this.owner.kind === 'caller')
        throw new Error(
          'An application owns this conversation, and passes all of it with each question. Choose this page as the owner, below the question.',
        );
      if (this.owner.kind !== 'session' && !keepsConversations)
        throw new Error(
          'A service of OpenAI Responses owns this conversation. Choose that wire format in the settings, or this page as the owner, below the question.',
        );
      const run = await begin({ provider, tools: this.#tools });
      this.#run = run;
      this.events = [];
      const driven = drive(run, { headers, signal: stop.signal, idleTimeoutMs: 120_000, toolTimeoutMs: 120_000 });
      for await (const event of driven) {
        this.#noteEvent(event);
        if (event.type === 'model_called') this.#noteRequest(run, event);
        if (event.type !== 'save_failed') continue;
        this.failure = {
          text: `The answer could not be stored: ${event.error.message}`,
          retry: () => run.save().catch((error) => this.#fail(error)),
        };
        this.#changed();
      }
      const { status, saved } = await driven.result;
      if (saved) this.failure = null;
      return status;
    } catch (error) {
      this.#fail(error);
      return 'not_started';
    }
  }

  #noteEvent({ type, name, text, json, finding, error }) {
    const last = this.events.at(-1);
    // Deltas of one text are one line.
    if (last?.type === type && type.endsWith('_delta')) {
      last.count += 1;
      return;
    }
    const said = name ?? finding?.message ?? error?.message ?? (text || json ? clip(text ?? json, 40) : '');
    this.events.push({ type, at: Date.now(), count: 1, text: said });
    if (this.events.length > MAX_EVENTS) this.events.shift();
  }

  /** Keeps what goes out with the model call that is open. */
  #noteRequest(run, { report, prefix }) {
    const call = run.effects().find(({ type }) => type === 'call_model');
    if (!call) return;
    const messages = this.view.getSnapshot().messages.filter(({ saved, runId }) => saved || runId === run.id);
    const text = new TextDecoder().decode(call.request.body);
    const described = describeRequest(text, { before: this.lastRequest, messages });
    this.requests.push({ ...described, dialect: call.dialect, at: Date.now(), text, report, prefix });
    if (this.requests.length > MAX_REQUESTS) this.requests.shift();
    this.#changed();
  }

  #fail(error) {
    this.failure = { text: error?.message ?? String(error) };
    this.#changed();
  }
}
