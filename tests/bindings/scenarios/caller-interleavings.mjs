// A conversation that the application holds (`owner: { kind: "caller" }`): any interleaving of turns, crashes, retries,
// approvals, edits and moves. The same file runs in a page and in Node. Each request has the list that was passed, and
// then what the run added; history gets each turn once.

import { killable, newLife } from './killable-store.mjs';
import { numbersOf } from './random-numbers.mjs';
import { playScript } from './played-script.mjs';

const HOUR = 3_600_000;
const TURNS = 6;
/** Model calls of one turn that ask for tools, at most. */
const ROUNDS = 2;

const text = (content) => ({ role: 'user', content });
const DIALECTS = {
  'openai-chat': { list: 'messages', item: text, url: () => 'v1/chat/completions' },
  'openai-responses': { list: 'input', item: text, url: () => 'v1/responses' },
  anthropic: { list: 'messages', item: text, url: () => 'v1/messages', params: { model: 'm', max_tokens: 1000 } },
  mistral: { list: 'messages', item: text, url: () => 'mistral/v1/chat/completions' },
  gemini: {
    list: 'contents',
    item: (words) => ({ role: 'user', parts: [{ text: words }] }),
    params: {},
    url: (stream) => `v1beta/models/m:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
  },
};

const never = () => new Promise(() => {});
const bytesOf = (value) => JSON.parse(new TextDecoder().decode(value));
const isEqual = (one, other) => JSON.stringify(one) === JSON.stringify(other);
/** The questions and answers in any value, in their order. */
const wordsIn = (value) => JSON.stringify(value).match(/(?:Question|Answer) \d+\./g) ?? [];

class CallerInterleaving {
  constructor({ open, drive, store, base, seed, setStep, log = () => {} }) {
    const post = (step) =>
      fetch(`${base}/control/script`, {
        method: 'POST',
        body: JSON.stringify({ steps: step ? [step] : [], delayMs: 0 }),
      });
    Object.assign(this, { open, drive, store, base, log, setStep: setStep ?? post, numbers: numbersOf(seed) });
    this.name = this.numbers.pick(Object.keys(DIALECTS));
    this.dialect = DIALECTS[this.name];
    this.persistence = this.numbers.pick(['run', 'call', 'result']);
    this.clock = 1_000_000;
    this.count = 0;
    this.ids = 0;
    /** The list that the application holds. */
    this.list =
      this.name === 'openai-chat' && this.numbers.chance(0.5) ? [{ role: 'system', content: 'Be brief.' }] : [];
    /** The questions and answers that history had when it was last looked at. */
    this.stored = [];
    this.toolRuns = new Map();
    this.problems = [];
    this.counts = { turns: 0, finished: 0, requests: 0, crashes: 0, retries: 0, failures: 0, edits: 0, moves: 0 };
  }

  // ------------------------------------------------------------------------------------------------ processes

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
      leaseMs: 1000,
    });
    await this.openSession();
  }

  async openSession() {
    const { owner, revision } = await this.client.session('s');
    if (revision > 0 && owner.kind !== 'caller') this.problems.push(`the stored owner is ${owner.kind}`);
    this.session = await this.client.session('s', { owner: { kind: 'caller' }, persistence: this.persistence });
  }

  async restart() {
    const { client, run } = this;
    if (!this.life.isOver) this.life.kill('between turns');
    run?.[Symbol.dispose]?.();
    client.close().catch(() => {});
    this.clock += HOUR;
    await this.start();
  }

  /** Goes on in an empty store, with a copy of the session. */
  async move() {
    if (this.session.revision === 0) return;
    this.counts.moves += 1;
    this.log('move');
    const copy = this.numbers.chance(0.5)
      ? [await this.session.serialize(), 'restore']
      : [await this.client.exportSession('s'), 'importSession'];
    this.store = new this.store.constructor();
    const mover = await this.open({ store: this.store, now: () => this.clock });
    await mover[copy[1]](copy[0], { id: 's' });
    await mover.close();
    await this.restart();
  }

  /** What resolves first: the work, or the end of the process. */
  race(work) {
    work.catch(() => {});
    return Promise.race([work, this.life.dead]);
  }

  // ------------------------------------------------------------------------------------------------ the model

  step(stream) {
    const { numbers } = this;
    const answer = { text: `Answer ${(this.count += 1)}.` };
    if (this.rounds < ROUNDS && numbers.chance(0.5)) {
      answer.calls = Array.from({ length: 1 + numbers.below(2) }, (_, at) => ({
        ...(numbers.chance(0.2) && { id: `again0${at}0` }),
        name: numbers.pick(['look', 'look', 'ask']),
        arguments: { n: this.count * 10 + at },
      }));
    }
    if (numbers.chance(0.15)) answer.thinking = { text: 'Hm.' };
    const fault = numbers.next();
    if (fault < 0.05) return { status: 429, headers: { 'retry-after': '2' } };
    if (fault < 0.1) return { status: 503 };
    if (fault < 0.14) return { status: 400, message: 'The model is not available.' };
    if (fault < 0.18) return { ...answer, lost: 'answer' };
    if (fault < 0.23 && stream) return { ...answer, cut: 1 + numbers.below(6) };
    return answer;
  }

  fetchOf(life, stream) {
    return async (url, init) => {
      if (life.isOver) return never();
      if (this.numbers.chance(0.05)) {
        life.kill('before a request');
        return never();
      }
      const sent = bytesOf(init.body)[this.dialect.list];
      this.compareRequest(sent);
      const { lost, ...step } = this.step(stream);
      this.log(`request ${JSON.stringify(sent)} -> ${JSON.stringify(step)}`);
      await this.setStep(step);
      this.counts.requests += 1;
      const response = await fetch(url, init);
      const bytes = await response.arrayBuffer().catch((error) => error);
      if (response.status >= 400 && step.status === undefined)
        this.problems.push(`refused: ${new TextDecoder().decode(bytes)}`);
      if (lost) throw new TypeError('Failed to fetch');
      if (life.isOver) return never();
      if (this.numbers.chance(0.06)) {
        life.kill('after a request');
        return never();
      }
      if (bytes instanceof ArrayBuffer)
        return new Response(bytes, { status: response.status, headers: response.headers });
      return new Response(new ReadableStream({ start: (body) => body.error(bytes) }), {
        status: response.status,
        headers: response.headers,
      });
    };
  }

  /** A request begins with the list that was passed, and with all that the run's requests before it had. */
  compareRequest(sent) {
    const before = this.sent ?? this.list;
    if (!this.sent && !isEqual(sent, this.list))
      this.problems.push(
        `the first request of a run has\n${JSON.stringify(sent)}\ninstead of\n${JSON.stringify(this.list)}`,
      );
    if (!isEqual(sent.slice(0, before.length), before))
      this.problems.push(`a request has\n${JSON.stringify(sent)}\nafter\n${JSON.stringify(before)}`);
    this.rounds = wordsIn(sent).length - wordsIn(this.list).length;
    this.sent = sent;
  }

  request() {
    const { life } = this;
    this.stream = this.numbers.chance(0.5);
    const execute = async (_, { invocationId }) => {
      if (life.isOver) return never();
      const runs = (this.toolRuns.get(invocationId) ?? 0) + 1;
      this.toolRuns.set(invocationId, runs);
      if (runs > 1) this.problems.push(`the tool of ${invocationId} ran ${runs} times`);
      if (this.numbers.chance(0.06)) {
        life.kill('in a tool');
        return never();
      }
      return `result ${(this.count += 1)}`;
    };
    const { params = { model: 'm' }, url } = this.dialect;
    return {
      provider: { dialect: this.name, url: `${this.base}/${url(this.stream)}`, params, stream: this.stream },
      tools: { look: { execute }, ask: { execute, needsApproval: true } },
      retry: { backoffMs: 10 },
    };
  }

  // ------------------------------------------------------------------------------------------------ turns

  async turn() {
    this.counts.turns += 1;
    const question = `Question ${(this.count += 1)}.`;
    const without = this.list;
    this.list = [...without, this.dialect.item(question)];
    this.sent = null;
    if (this.numbers.chance(0.3))
      Object.assign(this.life, { writes: 1 + this.numbers.below(6), isBefore: this.numbers.chance(0.5) });
    this.log(`turn ${question}`);
    this.run = await this.race(this.session.run({ input: { [this.dialect.list]: this.list }, ...this.request() }));
    let outcome = this.run.crashed ? this.run : await this.driveRun();
    for (let attempt = 0; outcome && !outcome.result && attempt < 30; attempt += 1) outcome = await this.goOn(outcome);
    this.life.writes = 0;
    await this.finishTurn(outcome?.result, { question, without });
  }

  async driveRun() {
    const { result } = this.drive(this.run, { fetch: this.fetchOf(this.life, this.stream), longestPauseMs: 0 });
    const outcome = await this.race(
      result.then(
        (value) => ({ result: value }),
        (error) => ({ error }),
      ),
    );
    this.log(
      `outcome ${JSON.stringify(outcome.result ? { status: outcome.result.status, error: outcome.result.error } : { ...outcome, error: outcome.error && String(outcome.error) })}`,
    );
    if (this.life.isOver) return { crashed: true };
    if (outcome.result?.status === 'waiting_approval') return { isWaiting: true };
    if (outcome.result?.status === 'failed') {
      this.counts.failures += 1;
      return this.numbers.chance(0.7) ? { isFailed: true } : outcome;
    }
    return outcome;
  }

  /** The next outcome of a run that is not over; null if it is over and its result got lost. */
  async goOn({ crashed, error, isWaiting }) {
    if (isWaiting) {
      if (this.numbers.chance(0.3)) return { crashed: true };
      for (const { invocationId } of this.run.approvals()) {
        if (
          (
            await this.race(
              this.numbers.chance(0.7) ? this.run.approve(invocationId) : this.run.reject(invocationId, 'no'),
            )
          )?.crashed
        )
          return { crashed: true };
      }
      return this.driveRun();
    }
    if (error && error.code !== 'closed') throw error;
    if (error) this.counts.retries += 1;
    this.clock += 120_000;
    if (crashed) await this.restart();
    if (crashed && this.numbers.chance(0.2)) await this.move();
    const [pending] = await this.session.pendingRuns();
    if (!pending) return null;
    this.run = await this.race(this.session.resume(pending.id, this.request()));
    return this.run.crashed ? this.run : this.driveRun();
  }

  /** Compares history with the run's end, and takes over its conversation. */
  async finishTurn(result, { question, without }) {
    const messages = (await this.session.messages({ limit: 1000 })).items;
    const stored = messages.flatMap(({ parts }) => wordsIn(parts));
    const added = stored.slice(this.stored.length);
    if (new Set(stored).size < stored.length || !isEqual(stored.slice(0, this.stored.length), this.stored))
      this.problems.push(`history has ${stored} after ${this.stored}`);
    this.stored = stored;
    if (result?.status === 'finished') {
      this.counts.finished += 1;
      const replay = result.replay[this.dialect.list];
      if (!isEqual(replay.slice(0, this.sent.length), this.sent))
        this.problems.push(`the replay is\n${JSON.stringify(replay)}\nafter\n${JSON.stringify(this.sent)}`);
      const own = wordsIn(replay).slice(wordsIn(this.list).length - 1);
      if (!isEqual(own, added)) this.problems.push(`history has ${added} of the turn ${own}`);
      this.list = replay;
    } else if (!result && isEqual(added.slice(0, 1), [question]) && messages.at(-1).role === 'assistant') {
      // The turn was stored when the process died: the application takes the answer from history.
      const answer = this.dialect.item(added.at(-1));
      this.list = [...this.list, { ...answer, role: this.name === 'gemini' ? 'model' : 'assistant' }];
    } else {
      for (const { id } of await this.session.pendingRuns()) await this.session.discard(id);
      this.list = without;
    }
  }

  /** The application shortens or changes what it holds. */
  edit() {
    this.counts.edits += 1;
    this.log('edit');
    const questions = this.list.flatMap((item, index) => (/Question/.test(JSON.stringify(item)) ? [index] : []));
    if (this.numbers.chance(0.5) && questions.length > 1) this.list = this.list.slice(questions[1]);
    else if (questions.length > 0)
      this.list = this.list.with(questions[0], this.dialect.item(`An edited question ${(this.count += 1)}`));
  }

  async perform() {
    await this.start();
    for (let at = 0; at < TURNS && this.problems.length === 0; at += 1) {
      await this.turn();
      const action = this.numbers.below(5);
      if (action === 0) this.edit();
      if (action === 1) await this.move();
      if (action === 2) await this.restart();
    }
    await this.client.close();
    return { problems: this.problems, counts: this.counts };
  }
}

/** Plays the script of a seed against the lane at `base`. Returns {problems, counts}. */
export function playCallerSeed(options) {
  return playScript(new CallerInterleaving(options));
}
