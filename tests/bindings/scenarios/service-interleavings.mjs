// Any interleaving of turns, crashes, retries, filters, appends, owners, compactions, handoffs, processes and stores
// against a service that keeps what it is sent (R22 to R31, R37). The same file runs in a page and in Node. After each
// turn the service has what the session has, nothing twice, and it refused nothing; a summary is compared as what it
// stands for.

import { askElsewhere, compact, handOff, move, outcomeOf } from './interleaving-actions.mjs';
import { killable, newLife } from './killable-store.mjs';
import { numbersOf } from './random-numbers.mjs';
import { sorted, textOf, wordsOfService, wordsOfSession } from './service-words.mjs';
import { playScript } from './played-script.mjs';

const LEASE_MS = 1000;
const HOUR = 3_600_000;
const ACTIONS = 10;
/** Model calls of one turn that ask for tools, at most. */
const ROUNDS = 3;

const never = () => new Promise(() => {});
const bytesOf = (value) => JSON.parse(new TextDecoder().decode(value));
class Interleaving {
  constructor({ open, drive, store, base, seed, setStep, breaksHere = false, log = () => {} }) {
    const post = (step) => this.post('/control/script', { steps: step ? [step] : [], delayMs: 0 });
    Object.assign(this, {
      open,
      drive,
      store,
      base,
      log,
      breaksHere,
      setStep: setStep ?? post,
      numbers: numbersOf(seed),
    });
    this.onConflict = this.numbers.pick(['throw', 'warn', 'clear']);
    this.clock = 1_000_000;
    this.count = 0;
    this.ids = 0;
    /** The rounds of tools since the user's last message. */
    this.rounds = 0;
    /** True if messages may have come to the service in another order than to the session. */
    this.isReordered = false;
    /** The ids of the runs that waited when the newest turn began. What it stored comes before theirs in the
     *  session. */
    this.olderRuns = new Set();
    /** The messages that the filter held back from the newest request. */
    this.held = [];
    /** True if the service has forgotten old responses. */
    this.hasExpired = false;
    /** What summaries stand for, by their texts. */
    this.summaries = new Map();
    /** By name: the agents that runs were handed off to. */
    this.agents = new Map();
    /** The names of those of this run, in order. */
    this.handoffs = [];
    /** The conversations that answers named although no request did. */
    this.named = new Set();
    /** The process that does nothing meanwhile, on the same store. */
    this.other = null;
    /** What a third process asks, or null. */
    this.asking = null;
    this.problems = [];
    this.toolRuns = new Map();
    /** The text of the newest answer that the service has given, and whether it was part of a conversation. */
    this.newestAnswer = null;
    this.counts = {
      turns: 0,
      finished: 0,
      requests: 0,
      crashes: 0,
      retries: 0,
      changes: 0,
      unsafe: 0,
      held: 0,
      restarts: 0,
      compactions: 0,
      handoffs: 0,
      others: 0,
      moves: 0,
      conflicts: 0,
    };
  }

  async post(path, body) {
    return (await fetch(`${this.base}${path}`, { method: 'POST', body: JSON.stringify(body) })).json();
  }

  service() {
    return fetch(`${this.base}/control/service`).then((response) => response.json());
  }

  /** Starts a process on the store. */
  async start() {
    const life = newLife((where) => {
      this.log(`crash ${where}`);
      this.counts.crashes += 1;
    });
    this.life = life;
    this.client = await this.open({
      store: killable(this.store, life),
      now: () => this.clock,
      newId: () => `id${(this.ids += 1)}`,
      leaseMs: LEASE_MS,
      replay: { freshness: Infinity },
    });
    if (this.owner) await this.openSession();
  }

  async openSession() {
    this.session = await this.sessionOf(this.client);
  }

  /** Opens the session with its owner, which is not stored before the next append. A session gets another conversation
   *  by way of its history. */
  async sessionOf(client) {
    const stored = (await client.session('s')).owner;
    // An answer has made its conversation the owner.
    if (this.named.has(stored.conversationId)) this.owner = stored;
    const { owner, onConflict } = this;
    if (owner.kind === 'conversation' && stored.conversationId !== owner.conversationId)
      await client.session('s', { owner: { kind: 'session' } });
    return client.session('s', { owner, onConflict });
  }

  /** What resolves first: the work, or the end of the process. */
  race(work) {
    work.catch(() => {});
    return Promise.race([work, this.life.dead]);
  }

  /** Lets the other process on the store go on. */
  async swap() {
    const { life, client, session, other } = this;
    this.log('swap');
    this.other = { life, client, session };
    Object.assign(this, other, { run: null });
    if (!other) return this.start();
    // Without `refresh` it has what it had; the next run reads what others appended.
    if (this.numbers.chance(0.5)) await this.session.refresh();
    return this.openSession();
  }

  async closeOther() {
    const { other } = this;
    this.other = null;
    other?.life.kill('of the other process');
    await other?.client.close().catch(() => {});
  }

  /** Starts another process after the crash of this one; its lease ends. */
  async restart() {
    const { client, run } = this;
    if (!this.life.isOver) this.life.kill('between turns');
    run?.[Symbol.dispose]?.();
    client.close().catch(() => {});
    // Nobody knows of the request of the process that it had begun.
    await this.asking;
    this.clock += HOUR;
    await this.start();
  }

  // ------------------------------------------------------------------------------------------------ the model

  /** The step of the stand-in for the next request. `isAccepted`: the service keeps the request. */
  step(body) {
    const { numbers } = this;
    const text = `Answer ${(this.count += 1)}.`;
    const wantsTools = this.rounds < ROUNDS && numbers.chance(0.5);
    const answer = { text };
    if (wantsTools) {
      const names = ['look', 'look', 'look', 'look', 'ask', 'ask', 'transfer'];
      answer.calls = Array.from({ length: 1 + numbers.below(3) }, (_, at) => ({
        id: numbers.chance(0.1) ? `again_${at}` : `call_${this.count}_${at}`,
        name: numbers.pick(names),
        arguments: { n: this.count * 10 + at },
      }));
    }
    if (numbers.chance(0.15)) answer.thinking = { text: 'Hm.' };
    const fault = numbers.next();
    if (fault > 0.43) return { ...answer, isAccepted: true };
    if (fault < 0.05) return { status: 429, headers: { 'retry-after': '2' } };
    if (fault < 0.1) return { status: 503 };
    if (fault < 0.15) return { status: 400, message: 'The model is not available.' };
    if (fault < 0.2 && body.conversation)
      return {
        status: 400,
        body: {
          error: {
            message: 'Another process is currently operating on this conversation.',
            type: 'invalid_request_error',
            param: 'conversation',
            code: 'conversation_locked',
          },
        },
      };
    if (fault < 0.25) return { ...answer, lost: 'request' };
    if (fault < 0.3) return { ...answer, lost: 'answer', isAccepted: true };
    if (fault < 0.35 && body.stream && !body.conversation)
      return { ...answer, cut: 1 + numbers.below(8), isAccepted: true };
    if (fault < 0.4 && !body.conversation) return { ...answer, withoutId: true, isAccepted: true };
    if (fault > 0.4 && !body.conversation && !this.isNarrowed) return { ...answer, isAccepted: true, isNamed: true };
    return { ...answer, isAccepted: true };
  }

  /** A fetch that sends each request with a step of its own, and may die before or after it. */
  fetchOf(life) {
    return async (url, init) => {
      if (life.isOver) return never();
      const body = bytesOf(init.body);
      if (this.numbers.chance(0.04)) {
        life.kill('before a request');
        return never();
      }
      if (!this.hasFilter) this.held = [];
      const { isAccepted = false, isNamed = false, ...step } = this.step(body);
      if (isNamed) step.conversation = await this.nameConversation();
      if ((body.instructions ?? null) !== this.instructions)
        this.problems.push(`the instructions are ${body.instructions} instead of ${this.instructions}`);
      const lost = this.breaksHere ? step.lost : undefined;
      if (lost) delete step.lost;
      await this.setStep(step);
      this.counts.requests += 1;
      this.log(
        `request ${(body.conversation ?? body.previous_response_id ?? 'of all').slice(0, 10)} ${JSON.stringify(wordsOfService(body.input))} -> ${JSON.stringify(step)}`,
      );
      if (isAccepted && body.conversation) this.newestAnswer = step.text;
      // Until the answer is here and stored.
      this.isAhead = isAccepted && Boolean(body.conversation);
      if (lost === 'request') throw new TypeError('Failed to fetch');
      const response = await fetch(url, init);
      const bytes = await response.arrayBuffer().catch((error) => error);
      if (response.status >= 400 && step.status === undefined) {
        await this.setStep(null);
        const refusal = new TextDecoder().decode(bytes);
        // A response that was forgotten: the chain begins again.
        if (refusal.includes('previous_response_not_found')) this.counts.restarts += 1;
        else this.problems.push(`refused: ${refusal}`);
        this.log(`refused ${refusal}`);
      } else if (step.status === undefined) {
        this.rounds = step.calls ? this.rounds + 1 : 0;
      }
      if (lost) throw new TypeError('Failed to fetch');
      if (life.isOver) return never();
      if (this.numbers.chance(0.06)) {
        life.kill('after a request');
        return never();
      }
      if (bytes instanceof ArrayBuffer)
        return new Response(bytes, { status: response.status, headers: response.headers });
      // The bytes before a cut are not known any more: an answer that began, and breaks off.
      return new Response(new ReadableStream({ start: (stream) => stream.error(bytes) }), {
        status: response.status,
        headers: response.headers,
      });
    };
  }

  /** The conversation that an answer names, although its request does not. */
  async nameConversation() {
    const { conversationId } = await this.newConversation();
    this.counts.conflicts += 1;
    if (this.onConflict === 'clear') this.named.add(conversationId);
    return conversationId;
  }

  /** The tools of a process. */
  tools(life) {
    const execute =
      (then = async () => {}) =>
      async (_, { invocationId }) => {
        if (life.isOver) return never();
        const runs = (this.toolRuns.get(invocationId) ?? 0) + 1;
        this.toolRuns.set(invocationId, runs);
        if (runs > 1) this.problems.push(`the tool of ${invocationId} ran ${runs} times`);
        if (this.numbers.chance(0.04)) {
          life.kill('in a tool');
          return never();
        }
        // A process that was killed meanwhile does nothing any more.
        for (const [chance, work] of [
          [0.08, () => this.appendElsewhere()],
          [0.04, () => askElsewhere(this, true)],
          [1, then],
        ]) {
          if (!life.isOver && this.numbers.chance(chance)) await work();
        }
        if (life.isOver) return never();
        return `result ${(this.count += 1)}`;
      };
    return {
      look: { execute: execute() },
      ask: { execute: execute(), needsApproval: true },
      transfer: { execute: execute(() => handOff(this, life)) },
    };
  }

  handoffOf(name, life) {
    return { instructions: `You are ${name}.`, tools: this.tools(life), ...this.agents.get(name) };
  }

  /** The handoffs of a run that is resumed. A service that owns the conversation meanwhile takes no filter. */
  resumedHandoffs(names) {
    const handoffs = names.map((name) => this.handoffOf(name, this.life));
    return this.session.owner.kind === 'session' ? handoffs : handoffs.map(({ inputFilter, ...handoff }) => handoff);
  }

  /** Notes the agents that the run was handed off to. */
  setAgents(names) {
    this.handoffs = names;
    this.instructions = names.length > 0 ? `You are ${names.at(-1)}.` : null;
    const isNarrow = (name) => this.agents.get(name).nestHistory || this.agents.get(name).inputFilter;
    this.isNarrowed = this.session.owner.kind === 'session' && names.some(isNarrow);
  }

  /** The request of a run, in the process that lives now. */
  request() {
    const { life } = this;
    this.hasFilter = this.numbers.chance(0.25);
    return {
      ...(this.hasFilter && { inputFilter: (body) => this.filter(body) }),
      provider: {
        dialect: 'openai-responses',
        url: `${this.base}/v1/responses`,
        params: { model: 'm' },
        stream: this.numbers.chance(0.5),
      },
      tools: this.tools(life),
      // The application looks at the service before it approves.
      retry: { backoffMs: 10, approveUnsafeReplay: () => !this.isAhead },
      onStop: this.numbers.chance(0.3) ? 'keep' : 'discard',
    };
  }

  /** Holds back some of the user's messages, and never all. Nothing of a whole history: a chain that begins again does
   *  not note what was held back from it. */
  filter(body) {
    const isDelta = Boolean(body.conversation ?? body.previous_response_id);
    const isHeld = (item) => isDelta && item.role === 'user' && this.numbers.chance(0.3);
    const left = body.input.filter((item) => !isHeld(item));
    if (left.length === 0) left.push(body.input.at(-1));
    this.held = body.input.filter((item) => !left.includes(item)).map((item) => `user: ${textOf(item.content)}`);
    this.counts.held += this.held.length;
    if (this.held.length > 0) this.isReordered = true;
    return { ...body, input: left };
  }

  /** Another process stores a message. */
  async appendElsewhere() {
    this.isReordered = true;
    const other = await this.open({ store: this.store, now: () => this.clock, newId: () => `other${(this.ids += 1)}` });
    const text = `Note ${(this.count += 1)}.`;
    this.log(`append elsewhere ${text}`);
    await (await other.session('s')).append([{ role: 'user', parts: [{ type: 'text', text }] }]);
    await other.close();
  }

  // ------------------------------------------------------------------------------------------------ runs

  /** Notes whether the conversation has an answer that the session does not have. */
  async compareWithService() {
    const { words } = await wordsOfSession(this.session);
    const { owner } = this.session;
    this.isAhead =
      owner.kind === 'conversation' && this.newestAnswer !== null && !words.includes(`assistant: ${this.newestAnswer}`);
  }

  async turn() {
    this.counts.turns += 1;
    this.rounds = 0;
    this.olderRuns = new Set((await this.session.pendingRuns()).map(({ id }) => id));
    if (this.numbers.chance(0.3))
      Object.assign(this.life, { writes: 1 + this.numbers.below(8), isBefore: this.numbers.chance(0.5) });
    const input = `Question ${(this.count += 1)}.`;
    this.isAhead = false;
    this.setAgents([]);
    this.log(`turn ${input} owner ${JSON.stringify(this.session.owner)}`);
    const begun = this.session.run({ input, ...this.request() });
    begun.catch(() => {});
    this.run = await Promise.race([begun, this.life.dead]);
    let outcome = this.run.crashed ? { crashed: true } : await this.driveRun();
    for (let attempt = 0; attempt < 30; attempt += 1) {
      const next = await this.afterOutcome(outcome);
      if (!next) break;
      outcome = next;
    }
    this.life.writes = 0;
    // A compaction that waited for the end of the turn may write its summary now.
    if (this.life.isOver) await this.restart();
    return outcome.result;
  }

  driveRun() {
    const { result } = this.drive(this.run, { fetch: this.fetchOf(this.life), longestPauseMs: 0 });
    return outcomeOf(this, result);
  }

  /** Goes on after a crash, a pause, an approval or a failure. Returns the next outcome, or null if the turn is
   *  over. */
  async afterOutcome({ crashed, error, result }) {
    if (crashed) {
      await this.restart();
      return this.resumePending();
    }
    if (error) {
      if (error.code !== 'closed') throw error;
      this.counts.retries += 1;
      this.clock += 120_000;
      return this.resumePending();
    }
    if (result.status === 'waiting_approval') return this.decide();
    if (result.status === 'finished') return null;
    // Another run closed the calls of this one at the service.
    if (result.error.code === 'conflict') {
      await this.discardPending();
      return null;
    }
    if (/Previous response/.test(result.error.message)) this.problems.push(`not restarted: ${result.error.message}`);
    await this.compareWithService();
    if (this.isAhead) {
      this.counts.unsafe += 1;
      await this.leaveConversation();
      return null;
    }
    // The application tries again, throws the run away, or goes on with the next turn.
    const choice = this.numbers.below(3);
    if (choice === 0) return this.resumePending();
    if (choice === 1) await this.discardPending();
    return null;
  }

  async resumePending() {
    const [pending, ...others] = await this.session.pendingRuns();
    // Runs that take turns store what they sent in another order.
    if (others.length > 0 || this.olderRuns.has(pending?.id)) this.isReordered = true;
    this.log(`pending ${JSON.stringify(pending && { state: pending.state, error: pending.error })}`);
    await this.compareWithService();
    // The process died when it had kept the failed run in the history; or another run than this one had asked.
    if (this.isAhead && (!pending || others.length > 0)) {
      await this.leaveConversation();
      return null;
    }
    if (!pending) return null;
    this.run = await this.resume(pending);
    return this.run.crashed ? { crashed: true } : this.driveRun();
  }

  resume({ id, handoffs }) {
    this.setAgents(handoffs);
    return this.race(this.session.resume(id, { ...this.request(), handoffs: this.resumedHandoffs(handoffs) }));
  }

  async discardPending() {
    this.life.writes = 0;
    const [pending] = await this.session.pendingRuns();
    if (pending) await Promise.race([this.session.discard(pending.id), this.life.dead]);
    this.log('discard');
  }

  async decide() {
    if (this.numbers.chance(0.3)) {
      const { id } = this.run;
      await this.restart();
      await this.compareWithService();
      this.run = await this.resume((await this.session.pendingRuns()).find((pending) => pending.id === id));
    }
    if (this.numbers.chance(0.1)) await askElsewhere(this);
    for (const { invocationId } of this.run.approvals()) {
      const decided = this.numbers.chance(0.7) ? this.approve(invocationId) : this.run.reject(invocationId, 'no');
      decided.catch(() => {});
      if ((await Promise.race([decided, this.life.dead]))?.crashed) return { crashed: true };
    }
    return this.driveRun();
  }

  /** Approves a call; rejects it if the service was told by another run that it is closed, so that its result could not
   *  be sent. */
  approve(invocationId) {
    return this.run.approve(invocationId).catch((error) => {
      if (error.code !== 'conflict' || this.session.owner.kind === 'session') throw error;
      return this.run.reject(invocationId, 'closed');
    });
  }

  /** The conversation has an answer that got lost: the history goes on here. */
  async leaveConversation() {
    await this.discardPending();
    this.newestAnswer = null;
    await this.changeOwner({ kind: 'session' });
  }

  async changeOwner(owner) {
    this.counts.changes += 1;
    this.log(`owner ${JSON.stringify(owner)}`);
    this.owner = owner;
    this.named.clear();
    this.newestAnswer = null;
    await this.openSession();
  }

  async newConversation() {
    const { id } = await this.post('/v1/conversations', {});
    return { kind: 'conversation', conversationId: id };
  }

  async act() {
    const { numbers } = this;
    const action = numbers.below(18);
    if (action < 6) await this.checkedTurn();
    else if (action === 6) await this.append();
    else if (action === 7) await this.changeOwner(await this.newConversation());
    else if (action === 8) await this.changeOwner({ kind: 'response', auto: true });
    else if (action === 9) await this.changeOwner({ kind: 'session' });
    else if (action === 10) await this.restart();
    else if (action === 11) await move(this);
    else if (action === 12) await this.swap();
    else if (action === 13) await askElsewhere(this);
    else if (action > 13 && action < 17) await compact(this);
    else {
      this.hasExpired = true;
      await this.post('/control/service', { days: 31 });
    }
  }

  async append() {
    const text = (words) => ({ type: 'text', text: `${words} ${(this.count += 1)}.` });
    const question = { role: 'user', parts: [text('Imported question')] };
    const call = {
      type: 'tool',
      callId: `imported_${this.count}`,
      name: 'look',
      arguments: { n: this.count * 10 },
      result: `result ${this.count}`,
    };
    const answer = { role: 'assistant', parts: [...(this.numbers.chance(0.5) ? [call] : []), text('Imported answer')] };
    this.log('append');
    await this.session.append(this.numbers.chance(0.5) ? [question, answer] : [question]);
  }

  async checkedTurn() {
    const result = await this.turn();
    if (result?.status !== 'finished') return;
    this.counts.finished += 1;
    // Requests of an agent have what its filter left, or the history as one message.
    if (!this.isNarrowed) await this.check();
  }

  /** Compares what the service has with what the session has. */
  async check() {
    const kept = await this.service();
    const { owner } = this.session;
    const items = owner.kind === 'conversation' ? kept.conversations[owner.conversationId] : kept.newest.items;
    const [service, session] = [wordsOfService(items, this.summaries), await wordsOfSession(this.session)];
    const arranged = this.isReordered ? sorted : (list) => list;
    const sent = session.words.filter((word) => !this.held.includes(word));
    // A chain that begins again is sent no reasoning that the service forgot with its response.
    const isCompared = (word) =>
      word !== 'reasoning' || (this.summaries.size === 0 && (!this.hasExpired || owner.kind === 'session'));
    const differs = (what, left, right) => {
      if (JSON.stringify(left) !== JSON.stringify(right))
        this.problems.push(
          `${what} differ (${owner.kind}):\nservice ${JSON.stringify(left)}\nsession ${JSON.stringify(right)}`,
        );
    };
    // A run of the session's own sends history as it was at its start: what others stored meanwhile comes with the next
    // run (R71).
    const mayBeMissing = owner.kind === 'session';
    const expected = mayBeMissing ? sent.filter((word) => service.words.includes(word)) : sent;
    differs('items', arranged(service.words.filter(isCompared)), arranged(expected.filter(isCompared)));
    // With a call its result is missing, too.
    const outputs = session.outputs.filter(({ call }) => !mayBeMissing || service.words.includes(call));
    const ids = (outputs) => sorted(outputs);
    differs(
      'outputs',
      ids(service.outputs.map((output) => output.split(': ')[0])),
      ids(outputs.map(({ call }) => call)),
    );
    for (const { call, text } of outputs) {
      // Of runs that take turns, one may have closed the calls of another that was interrupted.
      const isKnown = (output) =>
        output.startsWith(`${call}: `) &&
        (output.includes(text) || (this.isReordered && output.includes('Interrupted')));
      if (text !== null && !service.outputs.some(isKnown))
        this.problems.push(
          `the service has not the result of ${call}, "${text}", in ${JSON.stringify(service.outputs)}`,
        );
    }
  }

  async perform() {
    await this.start();
    const owner = this.numbers.pick([
      await this.newConversation(),
      { kind: 'response', auto: true },
      { kind: 'session' },
    ]);
    await this.changeOwner(owner);
    await this.checkedTurn();
    for (let at = 0; at < ACTIONS && this.problems.length === 0; at += 1) await this.act();
    if (this.problems.length === 0) await this.checkedTurn();
    await this.closeOther();
    await this.client.close();
    return { problems: this.problems, counts: this.counts };
  }
}

/** Plays the script of a seed against the lane at `base`. Returns {problems, counts}. `breaksHere`: connections break
 *  in `fetch` and not at the service, since Chromium itself sends a POST again when a reused connection closes without
 *  an answer. */
export function playSeed(options) {
  return playScript(new Interleaving(options));
}
