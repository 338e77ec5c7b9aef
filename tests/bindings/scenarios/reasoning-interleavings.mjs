// Chats whose provider may bind reasoning to its prefix (R71): any interleaving of freshness, reducers, citations, redaction, history providers,
// filters, handoffs, appends of another tab, kills, snapshots, switches of model and provider, with clocks that pass the freshness window inside a
// run. The same file runs in a page and in Node. No request is refused, and where nothing changed no reasoning is left out.

import { killable, newLife } from './killable-store.mjs';
import { numbersOf } from './random-numbers.mjs';

const TURNS = 6;
/** Model calls of one turn that ask for tools, at most. */
const ROUNDS = 4;
const LEASE_MS = 1000;
const HOUR = 3_600_000;
/** Longer than the built-in freshness window. */
const STALE_MS = 301_000;

const never = () => new Promise(() => {});
const text = (value) => ({ type: 'text', text: value });
const isThinking = (item) => ['thinking', 'redacted_thinking', 'reasoning'].includes(item.type);
const LISTS = { anthropic: 'messages', 'openai-responses': 'input' };

/** The items of a list, each block of content an item of its own, so that a message without its thinking compares with the one that has it. */
function itemsOf(list) {
  return list.flatMap(({ role, content, ...item }) => (Array.isArray(content) && role !== undefined && item.type === undefined
    ? content.map((block) => ({ role, ...block }))
    : [{ role, content, ...item }])).map((item) => ({ isThinking: isThinking(item), json: JSON.stringify(item) }));
}

/** True if `items` begin with `before`. */
const extend = (before, items) => before.every((json, index) => json === items[index]);

class ReasoningChat {
  constructor({ open, drive, store, base, seed, setStep, models, log = () => {} }) {
    Object.assign(this, { open, drive, store, base, setStep, models, log, numbers: numbersOf(seed) });
    Object.assign(this, { clock: 1_000_000, count: 0, ids: 0, rounds: 0, problems: [], snapshot: null, agents: new Map(), handoffs: [], newest: null });
    this.counts = { requests: 0, kills: 0, snapshots: 0, appends: 0, handoffs: 0, filters: 0, switches: 0, stale: 0, extended: 0, thinking: 0 };
  }

  async start() {
    const life = newLife(() => { this.counts.kills += 1; });
    this.life = life;
    this.client = await this.open({ store: killable(this.store, life), now: () => this.clock, newId: () => `id${(this.ids += 1)}`, leaseMs: LEASE_MS });
    this.session = await this.client.session('s', { persistence: this.persistence });
  }

  async restart() {
    if (!this.life.isOver) this.life.kill('here');
    this.run?.[Symbol.dispose]?.();
    this.client.close().catch(() => {});
    this.clock += this.numbers.pick([2 * LEASE_MS, HOUR]);
    await this.start();
  }

  /** Another tab stores a turn, or a message alone. */
  async appendElsewhere() {
    this.counts.appends += 1;
    const other = await this.open({ store: this.store, now: () => this.clock, newId: () => `other${(this.ids += 1)}` });
    const messages = [{ role: 'user', parts: [text(`Note ${(this.count += 1)}.`)] }, { role: 'assistant', parts: [text('Noted.')] }];
    await (await other.session('s')).append(messages);
    await other.close();
  }

  // ------------------------------------------------------------------------------------------------ the model

  step() {
    const { numbers } = this;
    const id = (this.count += 1);
    const answer = { thinking: { text: `Thought ${id}.` }, text: `Answer ${id} [source1].` };
    if (numbers.chance(0.1)) answer.thinking = { redacted: `hidden${id}` };
    if (numbers.chance(0.1)) delete answer.thinking;
    if (this.rounds < ROUNDS && numbers.chance(0.65)) {
      const name = () => numbers.pick(['look', 'look', 'login', 'search', 'transfer']);
      answer.calls = Array.from({ length: 1 + numbers.below(2) }, (_, at) => ({ id: `call_${id}_${at}`, name: name(), arguments: { n: id } }));
    }
    return answer;
  }

  fetchOf(life) {
    return async (url, init) => {
      if (life.isOver) return never();
      const body = JSON.parse(new TextDecoder().decode(init.body));
      this.compare(body);
      if (this.numbers.chance(0.04)) {
        life.kill('before a request');
        return never();
      }
      this.counts.requests += 1;
      const step = this.step();
      await this.setStep(step);
      const response = await fetch(url, init);
      const bytes = await response.arrayBuffer();
      if (response.status >= 400) {
        this.problems.push(`refused: ${new TextDecoder().decode(bytes)}`);
      } else {
        this.rounds = step.calls ? this.rounds + 1 : 0;
        // Its text comes after its reasoning. Redaction takes what may repeat the values.
        const isRedacted = step.calls?.some(({ name }) => name === 'login');
        this.newest.answer = step.thinking && !isRedacted && JSON.stringify(step.text);
      }
      if (!life.isOver && this.numbers.chance(0.05)) life.kill('after a request');
      return life.isOver ? never() : new Response(bytes, { status: response.status, headers: response.headers });
    };
  }

  /** Compares a body with the one before. If what is not reasoning extends that, so does the reasoning. */
  compare(body) {
    const list = LISTS[this.provider.dialect];
    const { [list]: messages, stream, ...head } = body;
    const items = itemsOf(messages);
    const current = { head: JSON.stringify(head), all: items.map(({ json }) => json), bare: items.filter((item) => !item.isThinking).map(({ json }) => json), run: this.run?.id };
    const before = this.newest;
    this.newest = current;
    const thinking = items.filter((item) => item.isThinking).length;
    this.counts.thinking += Math.sign(thinking);
    const isExtended = before && before.head === current.head && extend(before.bare, current.bare);
    this.log(`request ${this.provider.params.model} ${items.length} items, ${thinking} of reasoning${isExtended ? ', extended' : ''}`);
    if (!isExtended) {
      // In a turn of one process nothing changes by itself.
      if (before && this.isSteady && before.run === current.run) this.problems.push('a request of the run does not extend the one before');
      return;
    }
    this.counts.extended += 1;
    if (!extend(before.all, current.all)) this.problems.push('reasoning was left out although nothing changed');
    // What another tab stored meanwhile may come first.
    const next = items[before.all.length];
    if (before.answer && next?.json.includes(before.answer)) this.problems.push('the reasoning of the newest answer was left out');
  }

  // ------------------------------------------------------------------------------------------------ a run

  tools(life) {
    const execute = (result) => async () => {
      if (life.isOver) return never();
      if (this.numbers.chance(0.3)) {
        this.clock += STALE_MS;
        this.counts.stale += 1;
      }
      if (this.numbers.chance(0.15)) await this.appendElsewhere();
      if (this.numbers.chance(0.05)) life.kill('in a tool');
      return life.isOver ? never() : result();
    };
    const secret = () => `secret ${(this.count += 1)}`;
    const sources = () => [{ source_number: 1, text: 'cited' }, { source_number: 2, text: 'not cited' }];
    return {
      look: { execute: execute(() => `It is ${(this.count += 1)}. ${'Long. '.repeat(20)}`), onInterrupted: 'rerun' },
      login: { execute: execute(secret), persist: () => ({ arguments: {}, result: 'gone' }), onInterrupted: 'rerun' },
      search: { execute: execute(sources), onInterrupted: 'rerun' },
      transfer: { execute: execute(() => this.handOff(life)), onInterrupted: 'rerun' },
    };
  }

  async handOff(life) {
    const name = `agent${(this.count += 1)}`;
    const inputFilter = (messages) => messages.slice(-3);
    this.agents.set(name, { nestHistory: this.numbers.chance(0.3), ...(this.numbers.chance(0.3) && { inputFilter }) });
    const error = await this.run.handoff(this.agent(name, life)).catch((thrown) => thrown);
    if (!error) {
      this.counts.handoffs += 1;
      this.isSteady = false;
    }
    return 'transferred';
  }

  agent(name, life) {
    return { name, instructions: `You are ${name}.`, tools: this.tools(life), ...this.agents.get(name) };
  }

  /** What a turn sets, the same in each process that goes on with it. */
  settings() {
    const { numbers } = this;
    const model = numbers.chance(0.25) || !this.provider ? numbers.pick(this.models) : this.model;
    if (this.model !== undefined && model !== this.model) this.counts.switches += 1;
    this.model = model;
    const params = model.startsWith('claude')
      ? { model, max_tokens: 999, thinking: { type: 'adaptive' } }
      : { model, store: false, include: ['reasoning.encrypted_content'], reasoning: { effort: 'low' } };
    const [dialect, path] = model.startsWith('claude') ? ['anthropic', 'messages'] : ['openai-responses', 'responses'];
    this.provider = { dialect, url: `${this.base}/v1/${path}`, params, stream: numbers.chance(0.5) };
    const reducers = [
      { type: 'message_count', count: 6 }, { type: 'sliding_turns', turns: 2 }, { type: 'tool_results', keepNewestTurns: 1, maxBytes: 40 },
      { type: 'custom', reduce: (messages) => messages.slice(2) }, { type: 'summarize', target: 4, threshold: 4, summarize: () => `Summary ${(this.count += 1)}.` },
    ];
    return {
      instructions: numbers.chance(0.1) ? 'Be long.' : 'Be brief.',
      replay: {
        ...(numbers.chance(0.3) && { onStale: 'placeholder' }),
        ...(numbers.chance(0.3) && { freshness: Infinity }),
        ...(numbers.chance(0.3) && { citations: 'replay' }),
        ...(numbers.chance(0.3) && { reducers: [numbers.pick(reducers)] }),
      },
      ...(numbers.chance(0.15) && { inputFilter: (body) => this.filter(body) }),
      provider: this.provider,
    };
  }

  /** Sends other words of the user than they were. */
  filter(body) {
    this.counts.filters += 1;
    const list = LISTS[this.provider.dialect];
    const filtered = body[list].map((item, index) => (index === 0 && typeof item.content === 'string' ? { ...item, content: `${item.content} (${this.count})` } : item));
    return { ...body, [list]: filtered };
  }

  request(settings) {
    return { ...settings, tools: this.tools(this.life), retry: { attempts: 1 } };
  }

  async turn() {
    const { numbers } = this;
    const settings = this.settings();
    this.rounds = 0;
    this.snapshot = null;
    this.isSteady = !settings.inputFilter;
    const provider = { name: 'memory', provide: () => [{ role: 'user', parts: [text(`Memory ${this.count}.`)] }] };
    const begin = { input: `Question ${(this.count += 1)}.`, ...this.request(settings), ...(numbers.chance(0.15) && { providers: [provider] }) };
    if (numbers.chance(0.2)) Object.assign(this.life, { writes: 1 + numbers.below(6), isBefore: numbers.chance(0.5) });
    let run = await this.race(this.session.run(begin));
    for (let attempt = 0; attempt < 20; attempt += 1) {
      const outcome = run.crashed ? run : await this.driveRun(run);
      if (!outcome.crashed) {
        if (outcome.status !== 'finished') this.problems.push(`${outcome.status}: ${outcome.error?.message}`);
        break;
      }
      // What was redacted is sent as it is stored after a kill.
      this.isSteady = false;
      await this.restart();
      const [pending] = await this.session.pendingRuns();
      if (!pending) break;
      const handoffs = pending.handoffs.map((name) => this.agent(name, this.life));
      if (this.snapshot?.run === pending.id) this.counts.snapshots += 1;
      const from = this.snapshot?.run === pending.id && handoffs.length === 0 ? this.snapshot.bytes : pending.id;
      run = await this.race(this.session.resume(from, { ...this.request(settings), handoffs }));
    }
    this.life.writes = 0;
    if (this.life.isOver) await this.restart();
  }

  async driveRun(run) {
    this.run = run;
    if (this.numbers.chance(0.3) && !run.crashed) this.snapshot = { run: run.id, bytes: run.snapshot() };
    return this.race(this.drive(run, { fetch: this.fetchOf(this.life) }).result);
  }

  /** What resolves first: the work, or the end of the process. */
  race(work) {
    const settled = work.catch((error) => (this.life.isOver ? { crashed: true } : Promise.reject(error)));
    return Promise.race([settled, this.life.dead]);
  }

  async play() {
    this.persistence = this.numbers.pick(['run', 'call', 'result']);
    await this.start();
    for (let turn = 0; turn < TURNS && this.problems.length === 0; turn += 1) {
      await this.turn();
      if (this.numbers.chance(0.3)) await this.appendElsewhere();
      if (this.numbers.chance(0.3)) await this.restart();
      if (this.numbers.chance(0.4)) this.clock += STALE_MS;
    }
    const requests = await (await fetch(`${this.base}/control/requests`)).json();
    const left = requests.flatMap(({ transformations }) => transformations ?? []).filter(({ reason }) => !reason.startsWith('model'));
    if (left.length > 0) this.problems.push(`the service left out ${JSON.stringify(left[0])}`);
    await this.client.close();
    return { problems: this.problems, counts: this.counts };
  }
}

/** Plays a seed with these models; resolves to `{problems, counts}`. */
export const playSeed = (options) => new ReasoningChat(options).play();
