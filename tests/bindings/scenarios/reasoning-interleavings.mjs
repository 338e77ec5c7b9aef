// Chats whose provider may bind reasoning to its prefix (R70, R71): any interleaving of freshness, reducers,
// compactions, citations, redaction, history providers, filters, handoffs, appends of another tab, kills, snapshots,
// refused signatures, "drop_block", switches of model, host and dialect, with clocks that pass the freshness window
// inside a run. The same file runs in a page and in Node. No request is refused, and where nothing changed no reasoning
// is left out.

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
/** The hosts of each dialect, with the service that they are of. */
const HOSTS = {
  anthropic: [
    ['api.anthropic.com', 'anthropic'],
    ['bedrock-runtime.eu-west-1.amazonaws.com', 'anthropic'],
    ['api.minimax.example', 'minimax'],
  ],
  'openai-responses': [
    ['api.openai.com', 'openai'],
    ['mine.openai.azure.com', 'openai'],
    ['gateway.example', 'gateway'],
  ],
};

/** The items of a list, each block of content an item of its own, so that a message without its thinking compares with
 *  the one that has it. */
function itemsOf(list) {
  const blocks = (content) => (typeof content === 'string' ? [text(content)] : content);
  return list
    .flatMap(({ role, content, ...item }, at) =>
      role !== undefined && item.type === undefined
        ? blocks(content).map((block, index) => ({ path: `messages.${at}.content.${index}`, item: { role, ...block } }))
        : [{ item: { role, content, ...item } }],
    )
    .map(({ path, item }) => ({ path, item, isThinking: isThinking(item), json: JSON.stringify(item) }));
}

/** What marks reasoning: its signature. */
const signatureOf = ({ item }) => item.signature ?? item.data ?? item.encrypted_content ?? null;

/** True if `items` begin with `before`. */
const extend = (before, items) => before.every((json, index) => json === items[index]);

class ReasoningChat {
  constructor({ open, drive, store, base, seed, setStep, models, log = () => {} }) {
    Object.assign(this, { open, drive, store, base, setStep, models, log, numbers: numbersOf(seed) });
    Object.assign(this, {
      clock: 1_000_000,
      count: 0,
      ids: 0,
      rounds: 0,
      problems: [],
      snapshot: null,
      agents: new Map(),
      handoffs: [],
      newest: null,
      answers: [],
    });
    const what =
      'requests kills snapshots appends compactions handoffs filters switches hosts stale refused overloaded extended thinking kept dropping';
    this.counts = Object.fromEntries(what.split(' ').map((name) => [name, 0]));
  }

  async start() {
    const life = newLife(() => {
      this.counts.kills += 1;
    });
    this.life = life;
    this.client = await this.open({
      store: killable(this.store, life),
      now: () => this.clock,
      newId: () => `id${(this.ids += 1)}`,
      leaseMs: LEASE_MS,
    });
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
    const messages = [
      { role: 'user', parts: [text(`Note ${(this.count += 1)}.`)] },
      { role: 'assistant', parts: [text('Noted.')] },
    ];
    await (await other.session('s')).append(messages);
    await other.close();
  }

  async compact() {
    // Kills may have left no message that names a dialect.
    const { dialect, params } = this.provider;
    const { compacted } = await this.session.compact({
      force: true,
      dialect,
      params,
      summarize: () => `Compacted ${(this.count += 1)}.`,
    });
    if (compacted) this.counts.compactions += 1;
    this.log(`compacted: ${compacted}`);
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
      answer.calls = Array.from({ length: 1 + numbers.below(2) }, (_, at) => ({
        id: `call_${id}_${at}`,
        name: name(),
        arguments: { n: id },
      }));
    }
    return answer;
  }

  fetchOf(life) {
    return async (url, init) => {
      if (life.isOver) return never();
      const body = JSON.parse(new TextDecoder().decode(init.body));
      const { host, pathname } = new URL(url);
      const request = this.requestOf(body, host);
      this.compare(request);
      if (this.numbers.chance(0.04)) {
        life.kill('before a request');
        return never();
      }
      this.counts.requests += 1;
      const refusal = this.refusal(request);
      const step = refusal ?? this.step();
      await this.setStep(step);
      const response = await fetch(`${this.base}${pathname}`, {
        ...init,
        headers: { ...init.headers, 'x-service': request.service },
      });
      const bytes = await response.arrayBuffer();
      if (response.status >= 400 && !refusal) {
        this.problems.push(`refused: ${new TextDecoder().decode(bytes)}`);
      } else if (!refusal) {
        this.rounds = step.calls ? this.rounds + 1 : 0;
        this.noteAnswer(request, step, bytes);
      }
      if (!life.isOver && this.numbers.chance(0.05)) life.kill('after a request');
      return life.isOver ? never() : new Response(bytes, { status: response.status, headers: response.headers });
    };
  }

  /** A request as it is compared. */
  requestOf(body, host) {
    const {
      dialect,
      params: { model },
    } = this.provider;
    const { [LISTS[dialect]]: list, stream, ...head } = body;
    const items = itemsOf(list);
    const [, service] = HOSTS[dialect].find(([name]) => name === host);
    const isDropping = body.thinking?.block_binding?.prefix_mismatch_behavior === 'drop_block';
    const prefixHead = JSON.stringify([body.system, body.instructions, body.tools]);
    return {
      isDropping,
      dialect,
      model,
      service,
      items,
      prefixHead,
      head: JSON.stringify([service, head]),
      all: items.map(({ json }) => json),
      run: this.run?.id,
    };
  }

  /** Sometimes a refusal: of the signature of one of its blocks, or of every request for a while. */
  refusal(request) {
    const { numbers } = this;
    const wasRefused = this.isRefused;
    this.isRefused = false;
    const thinking = request.items.filter((item) => item.isThinking);
    if (wasRefused || !numbers.chance(0.08)) return null;
    this.isRefused = true;
    if (thinking.length === 0 || numbers.chance(0.3)) {
      this.counts.overloaded += 1;
      return { status: 529, message: 'Overloaded' };
    }
    this.counts.refused += 1;
    this.isSteady = false;
    const at = numbers.below(thinking.length);
    const gone = request.dialect === 'anthropic' ? thinking.slice(at) : [thinking[at]];
    const signatures = gone.map(signatureOf);
    this.log(`refuses reasoning ${at} of ${thinking.length}`);
    for (const answer of this.answers) if (signatures.includes(answer.signature)) answer.isRefused = true;
    if (request.dialect === 'anthropic')
      return { status: 400, message: `${thinking[at].path}: Invalid \`signature\` in \`thinking\` block` };
    const message = `The encrypted content for item ${thinking[at].item.id} could not be verified. Reason: Encrypted content organization_id did not match the target organization.`;
    return {
      status: 400,
      body: { error: { message, type: 'invalid_request_error', param: null, code: 'invalid_encrypted_content' } },
    };
  }

  /** Remembers what an answer was made for. */
  noteAnswer(request, step, bytes) {
    const isRedacted = step.calls?.some(({ name }) => name === 'login');
    this.newest.answer = step.thinking && !isRedacted && JSON.stringify(step.text);
    if (!step.thinking || isRedacted) return;
    const written = new TextDecoder().decode(bytes);
    const seal = /"(?:signature|data|encrypted_content)": ?"([^"]+\.[a-zA-Z0-9]{40})"/.exec(written)?.[1];
    this.answers.push({ ...request, text: step.text, signature: seal, isRefused: false });
  }

  /** Compares a body with the one before, and with what its answers were made for. */
  compare(request) {
    const { items, all } = request;
    const bare = items.filter((item) => !item.isThinking).map(({ json }) => json);
    const before = this.newest;
    this.newest = { ...request, bare };
    const thinking = items.filter((item) => item.isThinking).length;
    this.counts.thinking += Math.sign(thinking);
    const isExtended = before && before.head === request.head && extend(before.bare, bare);
    this.log(
      `request ${request.model} at ${request.service}: ${items.length} items, ${thinking} of reasoning${isExtended ? ', extended' : ''}`,
    );
    if (isExtended) {
      this.counts.extended += 1;
    } else if (before && this.isSteady && before.run === request.run) {
      // In a turn of one process nothing changes by itself.
      this.problems.push('a request of the run does not extend the one before');
    }
    if (request.isDropping) this.counts.dropping += 1;
    const canDrop = request.dialect === 'anthropic' && this.models.binding.includes(request.model);
    if (canDrop && this.hasDropped && !request.isDropping)
      this.problems.push('a later request of the session does not let the service drop reasoning');
    for (const answer of this.answers) this.expectReasoning(answer, { ...request, all });
  }

  /** The reasoning of an answer is there where it was made for what precedes it. */
  expectReasoning(answer, request) {
    if (answer.isRefused || answer.dialect !== request.dialect || answer.service !== request.service) return;
    const at = request.items.findIndex(
      ({ item, json }) => item.role === 'assistant' && json.includes(`"${answer.text}"`),
    );
    if (at < 0) return;
    if (request.items.some((item) => signatureOf(item) === answer.signature)) {
      this.counts.kept += 1;
      return;
    }
    const isSame =
      answer.model === request.model &&
      answer.prefixHead === request.prefixHead &&
      answer.all.length === at &&
      extend(answer.all, request.all);
    if (isSame || request.isDropping || !this.models.binding.includes(request.model))
      this.problems.push(`the reasoning of "${answer.text}" was left out although nothing changed`);
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
    const sources = () => [
      { source_number: 1, text: 'cited' },
      { source_number: 2, text: 'not cited' },
    ];
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
    const { binding, others } = this.models;
    const model =
      numbers.chance(0.25) || !this.provider ? numbers.pick(numbers.chance(0.75) ? binding : others) : this.model;
    if (this.model !== undefined && model !== this.model) this.counts.switches += 1;
    const params = model.startsWith('claude')
      ? { model, max_tokens: 999, thinking: { type: 'adaptive' } }
      : { model, store: false, include: ['reasoning.encrypted_content'], reasoning: { effort: 'low' } };
    const [dialect, path] = model.startsWith('claude') ? ['anthropic', 'messages'] : ['openai-responses', 'responses'];
    const isOther = dialect !== this.provider?.dialect;
    const host = isOther || numbers.chance(0.2) ? numbers.pick(HOSTS[dialect])[0] : this.host;
    if (!isOther && host !== this.host) this.counts.hosts += 1;
    Object.assign(this, { model, host });
    this.provider = { dialect, url: `https://${host}/v1/${path}`, params, stream: numbers.chance(0.5) };
    const reducers = [
      { type: 'message_count', count: 6 },
      { type: 'sliding_turns', turns: 2 },
      { type: 'tool_results', keepNewestTurns: 1, maxBytes: 40 },
      { type: 'custom', reduce: (messages) => messages.slice(2) },
      { type: 'summarize', target: 4, threshold: 4, summarize: () => `Summary ${(this.count += 1)}.` },
    ];
    return {
      instructions: numbers.chance(0.1) ? 'Be long.' : 'Be brief.',
      replay: {
        ...(this.mayDrop && numbers.chance(0.4) && { unboundReasoning: 'drop_block' }),
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
    const filtered = body[list].map((item, index) =>
      index === 0 && typeof item.content === 'string' ? { ...item, content: `${item.content} (${this.count})` } : item,
    );
    return { ...body, [list]: filtered };
  }

  request(settings) {
    return { ...settings, tools: this.tools(this.life), retry: { attempts: 9, backoffMs: 0 } };
  }

  async turn() {
    const { numbers } = this;
    const settings = this.settings();
    this.rounds = 0;
    this.snapshot = null;
    this.isSteady = !settings.inputFilter;
    const provider = { name: 'memory', provide: () => [{ role: 'user', parts: [text(`Memory ${this.count}.`)] }] };
    const begin = {
      input: `Question ${(this.count += 1)}.`,
      ...this.request(settings),
      ...(numbers.chance(0.15) && { providers: [provider] }),
    };
    if (numbers.chance(0.2)) Object.assign(this.life, { writes: 1 + numbers.below(6), isBefore: numbers.chance(0.5) });
    let run = await this.race(this.session.run(begin));
    for (let attempt = 0; attempt < 20; attempt += 1) {
      const outcome = run.crashed ? run : await this.driveRun(run);
      if (!outcome.crashed) {
        this.hasDropped ||= this.newest.isDropping;
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
    this.mayDrop = this.numbers.chance(0.3);
    await this.start();
    for (let turn = 0; turn < TURNS && this.problems.length === 0; turn += 1) {
      await this.turn();
      if (this.numbers.chance(0.3)) await this.appendElsewhere();
      if (this.numbers.chance(0.08)) await this.compact();
      if (this.numbers.chance(0.3)) await this.restart();
      if (this.numbers.chance(0.4)) this.clock += STALE_MS;
    }
    const requests = await (await fetch(`${this.base}/control/requests`)).json();
    const left = requests.filter(({ body }) => !body.thinking?.block_binding).flatMap(({ dropped }) => dropped ?? []);
    if (left.length > 0) this.problems.push(`the service left out ${JSON.stringify(left[0])}`);
    await this.client.close();
    return { problems: this.problems, counts: this.counts };
  }
}

/** Plays a seed with these models; resolves to `{problems, counts}`. */
export const playSeed = (options) => new ReasoningChat(options).play();
