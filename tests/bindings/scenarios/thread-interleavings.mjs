// Any interleaving of turns, crashes, lost answers, expiries, filters, appends, edits, other instructions, owners and
// processes against a service that keeps message threads (R23 to R25, R27, R77). After each turn the service has what
// the session has, nothing twice; no request has what was acknowledged; and the service refuses nothing but what nobody
// can know before.

import { outcomeOf } from './interleaving-actions.mjs';
import { killable, newLife } from './killable-store.mjs';
import { playScript } from './played-script.mjs';
import { numbersOf } from './random-numbers.mjs';
import { sorted } from './service-words.mjs';

const HOUR = 3_600_000;
const ACTIONS = 9;
/** Model calls of one turn that ask for tools, at most. */
const ROUNDS = 3;
const THREAD = { kind: 'response', auto: true };
const EXPECTED = new Set([
  'thread_not_found',
  'thread_already_continued',
  'thread_continue_in_flight',
  'thread_fingerprint_mismatch',
]);

const never = () => new Promise(() => {});
const blocksOf = ({ content }) => (typeof content === 'string' ? [{ type: 'text', text: content }] : content);
const resultText = ({ content }) =>
  typeof content === 'string' ? content : (content ?? []).map(({ text }) => text).join('');

/** Messages of the service in words, and the results by the words of their calls. */
function wordsOf(messages) {
  const words = [];
  const results = [];
  const calls = new Map();
  for (const message of messages)
    for (const block of blocksOf(message)) {
      if (block.type === 'text') words.push(`${message.role}: ${block.text}`);
      if (block.type === 'tool_use') {
        calls.set(block.id, `call ${JSON.stringify(block.input)}`);
        words.push(calls.get(block.id));
      }
      if (block.type === 'tool_result')
        results.push({ call: calls.get(block.tool_use_id) ?? block.tool_use_id, text: resultText(block) });
    }
  return { words, results };
}

/** What a branch of a session shows, in the same words. */
async function wordsOfBranch(session, branch) {
  const { items } = await session.messages({ branch, limit: 1000 });
  const calls = (await session.invocations({ session: session.id, payload: true, limit: 1000 })).items;
  const byId = new Map(calls.map((call) => [call.id, call]));
  const words = [];
  const results = [];
  for (const { role, parts } of items)
    for (const part of parts) {
      if (part.type === 'text') words.push(`${role}: ${part.text}`);
      if (part.type !== 'tool_call') continue;
      const { argumentsText, result } = byId.get(part.invocation);
      words.push(`call ${argumentsText}`);
      if (result) results.push({ call: `call ${argumentsText}`, text: String(result.content) });
    }
  return { items, words, results };
}

class ThreadInterleaving {
  constructor({ open, drive, store, base, lane, seed, setStep, log = () => {} }) {
    Object.assign(this, { open, drive, store, base, lane, setStep, log, numbers: numbersOf(seed) });
    this.clock = 1_000_000;
    this.count = 0;
    this.ids = 0;
    this.owner = THREAD;
    this.rounds = 0;
    /** True if messages may have come to the service in another order than to the session. */
    this.isReordered = false;
    /** The messages that the filter held back from the newest request. */
    this.held = [];
    this.problems = [];
    this.toolRuns = new Map();
    this.counts = {
      turns: 0,
      finished: 0,
      requests: 0,
      crashes: 0,
      losses: 0,
      expiries: 0,
      held: 0,
      others: 0,
      edits: 0,
      notFound: 0,
      continued: 0,
      inFlight: 0,
      mismatches: 0,
      changes: 0,
    };
  }

  async start() {
    this.life = newLife((where) => {
      this.log(`crash ${where}`);
      this.counts.crashes += 1;
    });
    this.client = await this.openClient(killable(this.store, this.life));
    this.session = await this.client.session('s', { owner: this.owner });
  }

  openClient(store) {
    return this.open({
      store,
      now: () => this.clock,
      newId: () => `id${(this.ids += 1)}`,
      leaseMs: 1000,
      replay: { freshness: Infinity },
    });
  }

  async restart() {
    if (!this.life.isOver) this.life.kill('between turns');
    this.run?.[Symbol.dispose]?.();
    this.client.close().catch(() => {});
    await this.sending;
    await this.asking;
    this.clock += HOUR;
    await this.start();
  }

  // ------------------------------------------------------------------------------------------------ the model

  step(body) {
    const { numbers } = this;
    const answer = { text: `Answer ${(this.count += 1)}.` };
    if (this.rounds < ROUNDS && numbers.chance(0.45))
      answer.calls = Array.from({ length: 1 + numbers.below(2) }, (_, at) => ({
        name: 'look',
        arguments: { n: this.count * 10 + at },
      }));
    if (numbers.chance(0.1)) answer.thinking = { text: 'Hm.' };
    const inFlight = numbers.chance(0.3) ? 1 + numbers.below(5) : 0;
    const fault = numbers.next();
    if (fault < 0.04) return { status: 429, headers: { 'retry-after': '2' }, inFlight };
    if (fault < 0.08) return { ...answer, status: 529, isKept: numbers.chance(0.5), inFlight };
    if (fault < 0.11) return { status: 400, message: 'The model is not available.', inFlight };
    if (fault < 0.15) return { ...answer, lost: 'request', inFlight };
    if (fault < 0.2) return { ...answer, lost: 'answer', inFlight };
    if (fault < 0.27 && body.stream)
      return { ...answer, cut: 1 + numbers.below(9), isKept: numbers.chance(0.5), inFlight };
    return { ...answer, ...(fault < 0.33 && { isKept: false }) };
  }

  /** A fetch that sends each request with a step of its own, and may die before or after it. */
  fetchOf(life) {
    return async (url, init) => {
      if (life.isOver) return never();
      const body = JSON.parse(new TextDecoder().decode(init.body));
      if (this.numbers.chance(0.04)) {
        life.kill('before a request');
        return never();
      }
      if (!this.hasFilter) this.held = [];
      const exchange = this.exchange(url, init, body);
      // A process that is killed meanwhile has sent it.
      this.sending = exchange;
      const { step, response, bytes } = await exchange;
      if (response.error) throw response.error;
      if (response.status >= 400 && response.status !== step.status) this.noteRefusal(new TextDecoder().decode(bytes));
      else if (response.ok) this.rounds = step.calls ? this.rounds + 1 : 0;
      if (life.isOver) return never();
      if (this.numbers.chance(0.06)) {
        life.kill('after a request');
        return never();
      }
      const { status, headers } = response;
      if (bytes instanceof ArrayBuffer) return new Response(bytes, { status, headers });
      return new Response(new ReadableStream({ start: (stream) => stream.error(bytes) }), { status, headers });
    };
  }

  /** Sends a request with a step of its own. */
  async exchange(url, init, body) {
    this.checkRequest(body);
    const step = this.step(body);
    if (step.status || step.lost || step.cut) this.counts.losses += 1;
    await this.setStep(step);
    this.counts.requests += 1;
    const response = await fetch(url, init).catch((error) => ({ error }));
    const bytes = response.error ?? (await response.arrayBuffer().catch((error) => error));
    await this.setStep(null);
    this.log(
      `request ${JSON.stringify(body.thread)} ${JSON.stringify(wordsOf(body.messages))} -> ${response.status} ${JSON.stringify(step)}`,
    );
    return { step, response, bytes };
  }

  /** A request that continues a thread has no instructions, and nothing that the thread has. */
  checkRequest(body) {
    if (body.thread?.type !== 'continue') return;
    const before = this.lane().threads.toJSON().threads[body.thread.previous_message_id];
    if (!before) return;
    const [had, sent] = [wordsOf(before), wordsOf(body.messages)];
    const again = sent.words.filter((word) => had.words.includes(word));
    if (again.length) this.problems.push(`sent although acknowledged: ${again}`);
  }

  noteRefusal(text) {
    const code = JSON.parse(text).error.details?.error_code;
    this.log(`refused ${text}`);
    if (!EXPECTED.has(code)) this.problems.push(`refused: ${text}`);
    if (code === 'thread_not_found') this.counts.notFound += 1;
    if (code === 'thread_already_continued') this.counts.continued += 1;
    if (code === 'thread_continue_in_flight') this.counts.inFlight += 1;
    if (code === 'thread_fingerprint_mismatch') this.counts.mismatches += 1;
  }

  tools(life) {
    const execute = async (_, { invocationId }) => {
      if (life.isOver) return never();
      const runs = (this.toolRuns.get(invocationId) ?? 0) + 1;
      this.toolRuns.set(invocationId, runs);
      if (runs > 1) this.problems.push(`the tool of ${invocationId} ran ${runs} times`);
      if (this.numbers.chance(0.05)) {
        life.kill('in a tool');
        return never();
      }
      if (this.numbers.chance(0.06)) await this.appendElsewhere();
      if (!life.isOver && this.numbers.chance(0.06)) await this.askElsewhere();
      return life.isOver ? never() : `result ${(this.count += 1)}`;
    };
    return { look: { execute } };
  }

  /** What a run needs, in the process that lives now. `begun`: what it began with. */
  request(begun) {
    const { numbers } = this;
    this.hasFilter = numbers.chance(0.25);
    return {
      ...(this.hasFilter && { inputFilter: (body) => this.filter(body) }),
      instructions: begun.instructions,
      provider: {
        dialect: 'anthropic',
        url: `${this.base}/v1/messages`,
        params: { model: begun.model },
        stream: numbers.chance(0.5),
      },
      tools: this.tools(this.life),
      // A thread is not changed by a request that is repeated: the response continues once.
      retry: { backoffMs: 10, approveUnsafeReplay: () => true },
      onStop: numbers.chance(0.3) ? 'keep' : 'discard',
    };
  }

  /** Holds back some of the user's messages, and never all. */
  filter(body) {
    const isHeld = ({ role, content }) =>
      body.thread?.type === 'continue' && role === 'user' && typeof content === 'string' && this.numbers.chance(0.4);
    const left = body.messages.filter((message) => !isHeld(message));
    if (left.length === 0) left.push(...body.messages.slice(-1));
    this.held = body.messages.filter((message) => !left.includes(message)).map(({ content }) => `user: ${content}`);
    this.counts.held += this.held.length;
    if (this.held.length) this.isReordered = true;
    return { ...body, messages: left };
  }

  async appendElsewhere() {
    this.isReordered = true;
    const text = `Note ${(this.count += 1)}.`;
    this.log(`append elsewhere ${text}`);
    const other = await this.openClient(this.store);
    await (await other.session('s')).append([{ role: 'user', parts: [{ type: 'text', text }] }]);
    await other.close();
  }

  /** Another process asks something and gets an answer. One at a time: the requests of two would take each other's
   *  steps. */
  askElsewhere() {
    this.asking ??= this.askOnce().finally(() => {
      this.asking = null;
    });
    return this.asking;
  }

  async askOnce() {
    this.isReordered = true;
    this.counts.others += 1;
    const text = `Question ${(this.count += 1)}.`;
    this.log(`ask elsewhere ${text}`);
    const other = await this.openClient(this.store);
    const session = await other.session('s');
    const provider = { dialect: 'anthropic', url: `${this.base}/v1/messages`, params: { model: 'm' } };
    const run = await session.run({ input: text, provider, tools: { look: { execute: () => 'found' } } });
    const send = async (url, init) => {
      const body = JSON.parse(new TextDecoder().decode(init.body));
      this.checkRequest(body);
      await this.setStep({ text: `Answer ${(this.count += 1)}.` });
      const response = await fetch(url, init);
      await this.setStep(null);
      this.log(`request elsewhere ${JSON.stringify(body.thread)} -> ${response.status}`);
      const answer = await response.text();
      if (!response.ok) this.noteRefusal(answer);
      else this.held = [];
      return new Response(answer, { status: response.status, headers: response.headers });
    };
    let result = null;
    for (let attempt = 0; attempt < 9 && !result; attempt += 1) {
      const going = attempt ? await session.resume(run.id, { provider, tools: {} }) : run;
      result = await this.drive(going, { fetch: send, longestPauseMs: 0 }).result.catch((error) => {
        if (error.code !== 'closed') throw error;
        this.clock += 10_000;
      });
    }
    if (result?.status !== 'finished') this.problems.push(`another process: ${JSON.stringify(result?.error)}`);
    await other.close();
  }

  // ------------------------------------------------------------------------------------------------ runs

  race(work) {
    work.catch(() => {});
    return Promise.race([work, this.life.dead]);
  }

  /** A turn: a question, or with `replace` an edit or another answer. */
  async turn(replace = {}) {
    const { numbers } = this;
    this.counts.turns += 1;
    this.rounds = 0;
    if (numbers.chance(0.3)) Object.assign(this.life, { writes: 1 + numbers.below(8), isBefore: numbers.chance(0.5) });
    const begun = {
      instructions: numbers.chance(0.15) ? 'Be long.' : 'Be brief.',
      model: numbers.chance(0.1) ? 'm-2' : 'm',
    };
    const persistence = numbers.pick(['run', 'call', 'result']);
    const input = `Question ${(this.count += 1)}.`;
    this.log(`turn ${input} ${JSON.stringify({ ...begun, ...replace, persistence })}`);
    const request = { input, ...replace, persistence, ...this.request(begun) };
    this.run = await this.race(this.session.run(request));
    let outcome = this.run.crashed ? { crashed: true } : await this.driveRun();
    for (let attempt = 0; attempt < 40 && outcome; attempt += 1) {
      if (outcome.result?.status === 'finished') break;
      outcome = await this.goOn(outcome, begun);
    }
    this.life.writes = 0;
    if (this.life.isOver) await this.restart();
    return outcome?.result;
  }

  driveRun() {
    const { result } = this.drive(this.run, { fetch: this.fetchOf(this.life), longestPauseMs: 0 });
    return outcomeOf(this, result);
  }

  /** Resumes a run that crashed, waits or failed, or discards it. Returns the next outcome, or null. */
  async goOn({ crashed, error }, begun) {
    if (crashed) await this.restart();
    if (error && error.code !== 'closed') throw error;
    this.clock += 120_000;
    // A run that was closed may still write, which may be the last that its process does.
    const runs = await this.race(this.session.pendingRuns());
    if (runs.crashed || this.life.isOver) return { crashed: true };
    const [pending] = runs;
    if (!pending) return null;
    if (!error && this.numbers.chance(0.25)) {
      this.life.writes = 0;
      this.log('discard');
      await this.race(this.session.discard(pending.id));
      return null;
    }
    const request = this.request(begun);
    this.run = await this.race(this.session.resume(pending.id, request));
    return this.run.crashed ? { crashed: true } : this.driveRun();
  }

  async changeOwner() {
    this.counts.changes += 1;
    this.owner = this.owner === THREAD ? { kind: 'session' } : THREAD;
    this.log(`owner ${this.owner.kind}`);
    this.session = await this.client.session('s', { owner: this.owner });
  }

  /** The question of a turn of the branch that is shown, with other words; or another answer to it. */
  async edit() {
    const { items } = await this.session.messages({ limit: 1000 });
    const questions = items.filter(({ role, parts }) => role === 'user' && parts.some(({ type }) => type === 'text'));
    if (questions.length === 0) return this.checkedTurn();
    this.counts.edits += 1;
    const last = items.at(-1);
    if (last.role === 'assistant' && this.numbers.chance(0.5))
      return this.checkedTurn({ replace: last.id, input: undefined });
    return this.checkedTurn({ replace: this.numbers.pick(questions.slice(-3)).id });
  }

  async act() {
    const action = this.numbers.below(12);
    if (action < 5) return this.checkedTurn();
    if (action === 5) return this.appendElsewhere();
    if (action === 6) return this.askElsewhere();
    if (action === 7) return this.restart();
    if (action === 8) return this.changeOwner();
    if (action < 11) return this.edit();
    this.counts.expiries += 1;
    this.log('expiry');
    this.lane().threads.advance(5);
  }

  async checkedTurn(replace) {
    const result = await this.turn(replace);
    if (result?.status !== 'finished') return;
    this.counts.finished += 1;
    await this.check(result.branch);
  }

  /** Compares what the service has with what the session shows. */
  async check(branch) {
    const { newest } = this.lane().threads;
    const service = wordsOf(newest.messages);
    const session = await wordsOfBranch(this.session, branch);
    const arranged = this.isReordered ? sorted : (list) => list;
    // Without a thread a run sends history as it was at its start (R71).
    const isExpected = (word) => !this.held.includes(word) && (this.owner === THREAD || service.words.includes(word));
    const [left, right] = [arranged(service.words), arranged(session.words.filter(isExpected))];
    if (JSON.stringify(left) !== JSON.stringify(right))
      this.problems.push(
        `${this.owner.kind}, ${branch}:\nservice ${JSON.stringify(left)}\nsession ${JSON.stringify(right)}`,
      );
    if (new Set(service.words).size !== service.words.length) this.problems.push(`doubled: ${service.words}`);
    for (const { call, text } of session.results) {
      if (!service.words.includes(call)) continue;
      const found = service.results.find((result) => result.call === call);
      if (!found?.text.includes(text) && !(this.isReordered && found?.text.includes('Interrupted')))
        this.problems.push(`the service has ${JSON.stringify(found)} instead of "${text}" of ${call}`);
    }
  }

  async perform() {
    await this.start();
    await this.checkedTurn();
    for (let at = 0; at < ACTIONS && this.problems.length === 0; at += 1) await this.act();
    if (this.problems.length === 0) await this.checkedTurn();
    await this.client.close();
    return { problems: this.problems, counts: this.counts };
  }
}

/** Plays the script of a seed against the lane at `base`, which `lane` returns. Returns {problems, counts}. */
export function playThreadSeed(options) {
  return playScript(new ThreadInterleaving(options));
}
