// Uses every member that is built, as an application would. Compiled, never run.

import {
  RethreadError,
  StreamAssembler,
  convert,
  init,
  open,
  repair,
  validate,
  type AnswerOptions,
  type AppendOptions,
  type AssembledResponse,
  type Branch,
  type Bytes,
  type ChangeFeed,
  type CompactReason,
  type ErasureReceipt,
  type Dialect,
  type Effect,
  type EffectAnswer,
  type Finding,
  type InputPart,
  type InvocationQuery,
  type KvEntry,
  type KvStore,
  type Handoff,
  type Message,
  type MessageSource,
  type NewMessage,
  type NewToolMessage,
  type OpenOptions,
  type Page,
  type Part,
  type PendingRun,
  type Persistence,
  type PrefixCut,
  type ProviderRequest,
  type Rendered,
  type RenderRequest,
  type Reducer,
  type RepairOptions,
  type ReplayPolicy,
  type Rethread,
  type Run,
  type RunEvent,
  type RunRequest,
  type RunResult,
  type SearchHit,
  type Session,
  type SessionOptions,
  type SessionSnapshot,
  type SessionSummary,
  type SessionView,
  type SqlDriver,
  type SqlRow,
  type StateBag,
  type StateOwner,
  type StoreStatus,
  type StreamEvent,
  type Tool,
  type ToolCall,
  type ToolInvocation,
  type Tools,
  type Usage,
  type ViewMessage,
  type WireBody,
  type WireInput,
} from "rethread";
import { drive, type DriveOptions } from "rethread/host";
import * as slim from "rethread/slim";

/** Fails to compile unless both are the same type. */
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const same = <A, B>(_: Same<A, B>): void => {};
const never = (value: never): never => value;

// ---- wire formats

const dialects: Dialect[] = ["openai-chat", "openai-responses", "anthropic", "gemini", "mistral"];
const bodies: WireInput[] = [{ messages: [] }, "{}", new Uint8Array(2)];
const findings: Finding[] = bodies.flatMap((body) => dialects.flatMap((dialect) => validate(body, dialect)));
for (const { severity, code, path, messageId, callId, action, message } of findings) {
  same<typeof severity, "error" | "warning" | "info">(true);
  same<typeof action, "dropped" | "moved" | "renamed" | "synthesized" | "rewritten" | "merged" | "kept" | undefined>(
    true,
  );
  console.log(code.length, path?.length, messageId?.length, callId?.length, message.length);
}
const repairing: RepairOptions = { danglingCalls: "omit", danglingText: "not run" };
const asText: { body: string; report: Finding[] } = repair("{}" as string, "mistral", repairing);
const converted: { body: string } = convert("{}" as string, "mistral", "anthropic", repairing);
const asBytes: { body: Uint8Array } = repair(new Uint8Array(), "anthropic");
const asObject = repair({ messages: [], model: "m" }, "openai-chat");
asObject.body.model.toUpperCase();

// ---- streams

export function assemble(pieces: Uint8Array[]): AssembledResponse {
  using assembler = new StreamAssembler("openai-chat");
  for (const piece of pieces) for (const event of assembler.push(piece)) readStream(event);
  const response = assembler.finish();
  same<typeof response.status, "complete" | "truncated" | "incomplete" | "refused" | "blocked" | "failed">(true);
  same<typeof response.finishReason, string | null>(true);
  same<typeof response.wire, unknown>(true);
  console.log(
    response.responseId,
    response.text,
    response.toolCalls.filter((call: ToolCall) => call.executable),
    response.error?.code,
    response.error?.message,
  );
  return response;
}

function readStream(event: StreamEvent): string | number | undefined {
  switch (event.type) {
    case "text_delta":
    case "reasoning_delta":
      return event.text;
    case "tool_call_started":
      return `${event.index} ${event.callId} ${event.name}`;
    case "tool_arguments_delta":
      return `${event.index} ${event.callId} ${event.json}`;
    case "tool_call_ready":
      return event.call.arguments;
    case "usage":
      return total(event.usage);
    case "error":
      return event.error.code ?? event.error.message;
    default:
      return never(event);
  }
}

function total(usage: Usage): number {
  return (
    usage.inputTokens +
    usage.outputTokens +
    (usage.cachedInputTokens ?? 0) +
    (usage.cacheWriteInputTokens ?? 0) +
    (usage.reasoningTokens ?? 0)
  );
}

// ---- opening

const replay: ReplayPolicy = {
  freshness: Infinity,
  toolFreshness: { get_weather: 0, get_time: null },
  errorFreshness: null,
  onStale: "placeholder",
  staleUnit: "round",
  citations: "store",
  danglingCalls: "synthesize",
  sameMakers: [["api.anthropic.com", "gateway.example.com"]],
  changes: "at_cuts",
};
const reducers: Reducer[] = [
  { type: "message_count", count: 5, keepTools: false, systems: "first" },
  { type: "token_budget", tokens: 1000, count: (texts) => texts.map((text) => text.length) },
  { type: "token_budget", tokens: 1000, count: async (texts) => texts.map((text) => text.length) },
  { type: "sliding_turns", turns: 3 },
  { type: "tool_results", keepNewestTurns: 1, maxBytes: 1000 },
  { type: "summarize", target: 10, threshold: 5, summarize: async (body) => `${body.byteLength}` },
  { type: "custom", reduce: (messages) => messages.filter((message) => message.role !== "system") },
];
const reduced: ReplayPolicy = { reducers };
const opening: OpenOptions = {
  store: "indexeddb",
  name: "chats",
  durability: "strict",
  replay,
  channels: { mail: { freshness: null } },
  titleSession: async ({ session, channel, input, answer }) =>
    session === "s" && channel !== null ? `${input} ${answer}` : null,
  now: () => Date.now(),
  newId: () => crypto.randomUUID(),
  onWarning: (warning: Finding) => console.warn(warning.code),
};

export async function client(): Promise<void> {
  await init();
  await init(new URL("https://example.com/rethread.wasm"));
  await slim.init(new Uint8Array());
  await open();
  await using rethread: Rethread = await open(opening);
  const page: Page<SessionSummary> = await rethread.sessions({ channel: "mail", archived: "all", limit: 10 });
  for (const one of page.items) {
    same<typeof one.title, string | null>(true);
    console.log(
      one.id,
      one.channel,
      one.createdAt,
      one.updatedAt,
      one.revision,
      one.messageCount,
      one.unread,
      one.pendingRuns,
      one.pendingApprovals,
      one.archived,
      one.metadata,
    );
  }
  const preview = page.items[0]?.preview ?? null;
  if (preview) same<typeof preview.role, "user" | "assistant">(true);
  console.log(preview?.text);
  if (page.cursor !== null) await rethread.sessions({ cursor: page.cursor });
  const rotation = await rethread.rotateKeys();
  void [rotation.rotated, rotation.failed[0]?.session];
  const pruned = await rethread.prune({ olderThan: 86_400_000, keepNewestTurns: 5, channel: "mail", dryRun: true });
  void [pruned.removed, pruned.sessions[0]?.left, pruned.failed[0]?.code];
  const found: Page<SearchHit> = await rethread.search("paris", { archived: "all", channel: "mail", limit: 5 });
  for (const { session, title, messages } of found.items) {
    const marked: string[] = title?.ranges.map(([start, end]) => title.text.slice(start, end)) ?? [];
    const first: { messageId: string; role: "user" | "assistant" } | undefined = messages[0];
    void [session.id, marked, first];
  }
  const end: () => void = rethread.subscribe(({ session, revision, deleted }) =>
    console.log(session, revision, deleted === true),
  );
  end();
  const status: StoreStatus = await rethread.status();
  same<typeof status.persisted, boolean | null>(true);
  same<typeof status.state, "ready" | "degraded" | "evicted" | "read_only">(true);
  console.log(status.store, status.usageBytes, status.quotaBytes, status.findings);
  const kept: boolean = await rethread.persist();
  console.log(kept, (await rethread.pendingRuns({ session: "s" })).map(pending));
  const query: InvocationQuery = {
    session: "s",
    messageId: "m",
    tool: "t",
    status: "ok",
    channel: "mail",
    since: 0,
    until: 1,
    payload: true,
    limit: 5,
    cursor: "c",
  };
  (await rethread.invocations(query)).items.forEach(row);
  const lines: string = await rethread.exportSession("s");
  const imported: Session = await rethread.importSession(lines, { id: "t" });
  const bytes: Uint8Array = await imported.serialize();
  await (await rethread.restore(bytes, { id: "u" })).clear();
  const copied: Session = await rethread.copy("s", { until: "m", id: "v" });
  await rethread.copy(copied.id);
  await rethread.deleteSession("s");
  await rethread.close();
}

function row(call: ToolInvocation): void {
  same<typeof call.status, "pending" | "ok" | "error" | "rejected" | "interrupted" | "aborted">(true);
  same<typeof call.startedAt, number | null>(true);
  console.log(
    call.id,
    call.sessionId,
    call.messageId,
    call.turn,
    call.callId,
    call.name,
    call.roundIndex,
    call.sequenceIndex,
    call.finishedAt,
    call.redacted,
    call.channel,
  );
  console.log(call.arguments, call.argumentsText?.length, call.result?.content, call.result?.isError);
}

function pending(run: PendingRun): string[] {
  same<typeof run.state, "live" | "interrupted" | "waiting_approval" | "failed" | "queued">(true);
  console.log(
    run.id,
    run.session,
    run.startedAt,
    run.turn,
    run.provider.url,
    run.input.map(message),
    run.text,
    run.error?.code,
  );
  return run.openCalls.map(({ callId, name, arguments: given, state }) => `${callId} ${name} ${given} ${state}`);
}

// ---- stores

const changes: ChangeFeed = {
  subscribe(listener) {
    same<Parameters<typeof listener>, [notice: string | null]>(true);
    return async () => listener(null);
  },
  publish: async (notice) => console.log(notice.length),
};
const values = new Map<string, Uint8Array>();
/** What a store must have: one writer a session is expected. */
const writeOnce: KvStore = {
  get: (key) => ({ value: values.get(key) ?? new Uint8Array() }),
  list: (prefix, cursor, limit) => ({
    keys: [...values.keys()].filter((key) => key.startsWith(prefix) && key > (cursor ?? "")).slice(0, limit),
    cursor: null,
  }),
  put: (key, value) => void values.set(key, value),
  delete: (key) => void values.delete(key),
};
/** And what it may have. */
const withCommit: KvStore = {
  ...writeOnce,
  name: "deno-kv",
  limits: { maxValueBytes: 65_536, minRewriteMs: 1000, readYourWrites: true },
  changes,
  async get(key): Promise<KvEntry | null> {
    const value = values.get(key);
    return value === undefined ? null : { value, version: "1" };
  },
  getMany: async (keys) => keys.map((key) => values.get(key) ?? null),
  async commit(checks, writes, notice) {
    same<typeof notice, string | undefined>(true);
    if (checks.some(({ key, version }) => (version === null) === values.has(key))) return false;
    for (const { key, value } of writes)
      if (value === null) values.delete(key);
      else values.set(key, value);
    return true;
  },
  close: async () => values.clear(),
};
const sql: SqlDriver = {
  dialect: "postgres",
  limits: { maxValueBytes: 1024, maxParams: 100 },
  changes,
  setDurability(durability) {
    same<typeof durability, "relaxed" | "strict">(true);
  },
  transaction: (statements) =>
    statements.map(({ sql: text, params }): SqlRow[] => [{ length: text.length + params.length }]),
};

export async function stores(): Promise<void> {
  for (const store of [writeOnce, withCommit, sql]) await (await open({ store, durability: "relaxed" })).close();
  // @ts-expect-error a key-value store lists its keys
  const noList: KvStore = { get: writeOnce.get, put: writeOnce.put, delete: writeOnce.delete };
  // @ts-expect-error a value has its bytes
  const noBytes: KvStore = { ...writeOnce, get: () => ({ value: "text" }) };
  // @ts-expect-error a commit says whether it was applied
  const noOutcome: KvStore = { ...withCommit, commit: async () => {} };
  // @ts-expect-error no such limit
  const noLimit: KvStore = { ...writeOnce, limits: { maxKeys: 5 } };
  // @ts-expect-error a feed ends when its function is called
  const noEnd: ChangeFeed = { subscribe: () => 5 };
  console.log(noList, noBytes, noOutcome, noLimit, noEnd);
}

/** The sides of a session that two writers wrote at once, where nobody could exclude one of them. */
export async function conflicts(session: Session): Promise<string[]> {
  const [main, ...others]: Branch[] = await session.branches();
  same<Branch["kind"], "main" | "fork" | "conflict">(true);
  same<Branch["parent"], string | null>(true);
  console.log(main?.branch === session.branch, main?.createdAt, main?.messageCount);
  return others
    .filter(({ kind }) => kind === "conflict")
    .map(({ branch, forkedAfter }) => `${branch} after ${forkedAfter ?? "nothing"}`);
}

// ---- sessions

const own: SessionOptions = {
  channel: "mail",
  title: "T",
  owner: { kind: "session" },
  persistence: "run",
  onStop: "keep",
  replay,
  metadata: { any: [1] },
};

export async function conversation(rethread: Rethread): Promise<void> {
  using session: Session = await rethread.session("s", own);
  const owner: StateOwner = session.owner;
  if (owner.kind === "conversation" && !owner.auto) console.log(owner.conversationId.length);
  // @ts-expect-error a conversation that the session begins has no id before its first answer
  if (owner.kind === "conversation") console.log(owner.conversationId.length);
  const persistence: Persistence = "run";
  console.log(session.id, session.revision + 1, owner.kind, session.branch, session.title?.length, persistence);
  await session.update({ title: null, channel: "chat", metadata: 5 });
  await session.markRead();
  const bag: StateBag = session.state;
  bag.set("key", { any: 1 });
  console.log(bag.get("key"), bag.keys().join());
  await session.save();
  const source: MessageSource = { type: "context", id: "rag" };
  const answering: AnswerOptions = { tools, expectedRevision: 0 };
  await session.answer("c", { type: "tool_result", content: 1 }, answering);
  const appending: AppendOptions = { expectedRevision: 0, source, at: Date.now(), freshness: Infinity };
  const { revision, messageIds } = await session.append({ messages: [] }, "openai-chat", appending);
  await session.append("{}", "anthropic");
  const fresh: NewMessage = {
    id: "m",
    role: "assistant",
    createdAt: 1,
    parts: [
      { type: "text", text: "x" },
      { type: "image", data: new Uint8Array() },
      { type: "data", name: "d", value: 1 },
      { type: "tool", name: "t", arguments: {}, result: 1, finishedAt: 2 },
      { type: "step-start" },
    ],
  };
  const late: NewToolMessage = {
    role: "tool",
    createdAt: 1,
    parts: [{ type: "tool_result", callId: "c", result: null, isError: true, finishedAt: 2 }],
  };
  await session.append([fresh, late], { at: 1, freshness: null });
  same<Awaited<ReturnType<Session["answer"]>>, { revision: number }>(true);
  await session.answer(
    "c",
    { type: "tool_result", content: 1, isError: false, finishedAt: 2 },
    { at: 1, expectedRevision: 5 },
  );
  console.log(revision, messageIds.join());
  const page: Page<Message> = await session.messages({ limit: 5, cursor: "5" });
  page.items.map(message);
  await session.append(await session.messages());
  await session.append((await session.messages()).items);
  await session.append(session.view().getSnapshot().messages);
  (await session.invocations({ payload: true })).items.forEach(row);
  const compacted = await session.compact({
    mode: "auto",
    force: true,
    summarize: async (body: Uint8Array, mode: "input" | "previous_response_id") => String(body.length) + mode,
    dialect: "anthropic",
    params: { max_tokens: 5 },
  });
  await session.compact({ tokens: 100_000, summarize: async () => "" });
  const why: CompactReason = compacted.compacted ? "threshold" : compacted.reason;
  console.log(why);
  const stop = session.subscribe(() => {});
  stop();
  watch(session.view());
  const { revision: now } = await session.refresh();
  const rendering: RenderRequest = {
    dialect: "gemini",
    params: { model: "m" },
    input: "hi",
    instructions: "Be brief.",
    tools,
    replay,
  };
  const rendered: Rendered = await session.render(rendering);
  const body: Bytes = rendered.body;
  const { json } = await session.render({ dialect: "gemini", input: "hi" });
  const contents: unknown[] = json.contents;
  // @ts-expect-error: gemini has no `messages` that are a list
  const messages: unknown[] = json.messages;
  const named = await session.render<{ model: string }>(rendering);
  const model: string = named.json.model;
  console.log(contents, messages, model);
  await fetch("https://example.com", { method: "POST", body });
  const cut: PrefixCut | null = rendered.prefix.cut;
  console.log(now, cut, rendered.report, rendered.maxSourceNumber, rendered.sources[1], rendered.stablePrefix);
  for (const one of await session.pendingRuns()) {
    if (one.state === "failed") await session.discard(one.id, { keep: true });
    else await drive(await session.resume(one.id, { provider: one.provider, tools })).result;
  }
}

function message(one: Message): (string | number | undefined)[] {
  same<typeof one.role, "system" | "developer" | "user" | "assistant">(true);
  same<typeof one.status, "streaming" | "complete" | "stopped" | "truncated" | "failed">(true);
  console.log(
    one.id,
    one.seq,
    one.turn,
    one.createdAt,
    one.source.type,
    one.runId,
    one.parentId,
    one.siblings.ids[one.siblings.index],
    one.metadata,
    one.model,
    one.usage?.inputTokens,
    one.finishReason,
    one.durationMs,
  );
  return one.parts.map(part);
}

function part(one: Part): string | number | undefined {
  switch (one.type) {
    case "text":
    case "reasoning":
    case "refusal":
      return one.text;
    case "image":
      return one.url ?? one.data ?? one.mediaType;
    case "file":
      return one.name ?? one.url ?? one.data ?? one.fileId ?? one.mediaType;
    case "data":
      return one.name;
    case "tool_call":
      return `${one.invocation} ${one.round} ${one.place}`;
    case "opaque":
      return one.dialect;
    default:
      return never(one);
  }
}

function watch({ getSnapshot, subscribe, older }: SessionView): void {
  const end = subscribe(() => {
    const snapshot: SessionSnapshot = getSnapshot();
    console.log(
      snapshot.loading,
      snapshot.revision,
      snapshot.branch,
      snapshot.hasOlder,
      snapshot.queued[0]?.saved,
      snapshot.run?.id,
      snapshot.run?.status,
      snapshot.run?.retryAt,
      snapshot.run?.error?.code,
    );
    void snapshot.run?.cancel?.();
    same<ViewMessage["status"], "streaming" | "complete" | "stopped" | "truncated" | "failed">(true);
    snapshot.messages.forEach((one: ViewMessage) => {
      for (const each of one.parts) if (each.type === "tool") row(each.call);
      console.log(one.saved, one.role);
    });
    // @ts-expect-error a snapshot is read only
    snapshot.messages.push(snapshot.messages[0]!);
  });
  void older().then((more: boolean) => more && end());
}

// ---- runs

const tools: Tools = {
  get_weather: {
    description: "Weather of a city.",
    parameters: { type: "object" },
    endsRun: true,
    onInterrupted: "rerun",
    freshness: null,
    async execute(args, { callId, invocationId, attempt, argumentsText, signal }) {
      same<typeof args, unknown>(true);
      signal.throwIfAborted();
      return { callId, invocationId, attempt: attempt + 1, argumentsText };
    },
  },
  form: {},
  login: {
    persist({ name, arguments: own }, result) {
      same<typeof own, unknown>(true);
      return result === undefined ? null : { arguments: { name }, result: "(gone)" };
    },
  },
};
const provider: ProviderRequest = {
  dialect: "openai-chat",
  url: "https://example.com",
  params: { model: "m" },
  stream: true,
  headers: { "anthropic-version": "2023-06-01", "x-team": "blue" },
  allowHeaders: ["x-team"],
  compat: { reasoningField: "drop", streamUsage: false, systemRole: "developer" },
};
const input: InputPart[] = [
  { type: "text", text: "hi" },
  { type: "image", data: new Uint8Array(), mediaType: "image/png" },
  { type: "file", data: new Blob([]), name: "a.pdf" },
  { type: "image", url: "https://example.com/a.png" },
];
const request: RunRequest = {
  input,
  inputId: "mine",
  whenBusy: "queue",
  onStop: "discard",
  instructions: "Be brief.",
  provider,
  tools,
  maxTurns: 5,
  replay,
  persistence: "run",
  retry: { attempts: 2, backoffMs: 100 },
};
const driving: DriveOptions = {
  fetch,
  headers: ({ url, dialect, model }) => ({ authorization: `Bearer ${url}${dialect}${model ?? ""}` }),
  signal: AbortSignal.timeout(1000),
  idleTimeoutMs: 1,
  longestPauseMs: 4,
  toolConcurrency: 2,
  toolTimeoutMs: 3,
};

export async function run(session: Session): Promise<RunResult> {
  using one: Run = await session.run(request);
  const driven = drive(one, driving);
  for await (const event of driven) readEvent(event);
  same<ReturnType<typeof one.isErrorResponse>, boolean>(true);
  same<ReturnType<typeof one.takeEffects>, { opened: Effect[]; closed: string[] }>(true);
  console.log(one.maxResponseBytes + 1);
  same<ReturnType<typeof one.approvals>, { callId: string; invocationId: string; name: string; arguments: unknown }[]>(
    true,
  );
  for (const { callId, name } of one.approvals())
    await (name === "pay" ? one.reject(callId, "no") : one.approve(callId));
  drive(one, { onApproval: ({ name }) => (name === "pay" ? { reject: "no" } : true) });
  same<ReturnType<typeof one.snapshot>, Uint8Array<ArrayBuffer>>(true);
  await session.resume(one.snapshot(), request);
  await one.handoff({
    name: "billing",
    instructions: "You are billing.",
    tools,
    inputFilter: (messages: Message[]) => messages.filter((message) => message.role === "user"),
    nestHistory: true,
  });
  const handoff: Handoff = {
    name: "support",
    inputFilter: (messages) => [...messages, { role: "user", parts: [{ type: "text", text: "Be quick." }] }],
  };
  await session.resume(one.id, { ...request, handoffs: [handoff] });
  await one.cancel();
  await one.save();
  console.log(one.id, one.status === "running", one.tools?.["form"]?.description);
  const result = await driven.result;
  same<typeof result.status, "finished" | "failed" | "cancelled" | "waiting_approval">(true);
  console.log(
    result.error?.code,
    result.text,
    result.turns,
    result.usage && total(result.usage),
    result.report,
    result.revision,
    result.branch,
    result.saved,
    result.messageIds,
    result.responseId,
  );
  const next: WireBody | null = result.replay;
  console.log(next?.messages);
  return one.result();
}

export async function byHand(one: Run): Promise<void> {
  while (one.status === "running") {
    const changed = one.changed();
    for (const effect of one.effects()) await one.answer(effect.id, await answer(one, effect));
    one.events().forEach(readEvent);
    await changed;
  }
}

async function answer(one: Run, effect: Effect): Promise<EffectAnswer> {
  switch (effect.type) {
    case "wait":
      return effect.ms > 0 ? { type: "waited" } : { type: "failed", error: { message: "no time" } };
    case "run_tool":
      await one.answer(effect.id, { type: "started" });
      console.log(effect.callId, effect.invocationId, effect.attempt, effect.arguments, effect.argumentsText);
      return { type: "tool_result", content: effect.name, isError: false };
    case "call_model": {
      const { method, url, headers, body } = effect.request;
      const response = await fetch(url, { method, headers, body });
      console.log(effect.dialect);
      if (!effect.stream)
        return { type: "response", status: response.status, headers: {}, body: await response.text() };
      await one.answer(effect.id, { type: "response_started", status: response.status, headers: {} });
      await one.feed(effect.id, new Uint8Array(await response.arrayBuffer()));
      return { type: "response_end" };
    }
    default:
      return never(effect);
  }
}

function readEvent(event: RunEvent): unknown {
  switch (event.type) {
    case "model_called":
      return [event.turn, event.report];
    case "message_started":
      return [event.messageId, event.turn, event.round];
    case "tool_started":
      return [event.callId, event.name];
    case "tool_finished":
      return [event.callId, event.isError, event.result, event.durationMs];
    case "approval_needed":
      return [event.callId, event.name, event.arguments];
    case "tool_pending":
      return [event.callId, event.invocationId, event.name];
    case "saved":
      return event.revision;
    case "save_failed":
      return event.error.code;
    case "retrying":
      return [event.attempt, event.at, event.error.message];
    case "warning":
      return event.finding.code;
    case "finished":
      return event.result.status;
    default:
      return [event.messageId, readStream(event)];
  }
}

// ---- errors

try {
  validate({}, "anthropic");
} catch (error) {
  if (error instanceof RethreadError) console.log(error.code, error.details["status"], error.cause, error.message);
}

// ---- what is refused

const wire: WireBody = { messages: [] };
export async function refused(rethread: Rethread, session: Session): Promise<void> {
  // @ts-expect-error no such dialect
  validate(wire, "morse");
  // @ts-expect-error a body is an object, text or bytes
  validate(5, "mistral");
  // @ts-expect-error no such store
  await open({ store: "sqlite" });
  // @ts-expect-error encryption needs a key
  await open({ encryption: {} });
  // @ts-expect-error a key is no text
  await open({ encryption: { key: "secret" } });
  // @ts-expect-error a window is a number
  await open({ replay: { freshness: "5 minutes" } });
  // @ts-expect-error a list of lists
  await open({ replay: { sameMakers: ["gateway.example.com"] } });
  // @ts-expect-error no such reducer
  await open({ replay: { reducers: [{ type: "magic" }] } });
  // @ts-expect-error a session has an id
  await rethread.session();
  await rethread.session("s", { persistence: "call", trimTrailingResults: true });
  // @ts-expect-error no such mode
  await rethread.session("s", { persistence: "turn" });
  await rethread.session("s", { owner: { kind: "response", auto: true, onLost: "fail" } });
  await rethread.session("s", { owner: { kind: "response", previousResponseId: "msg_1", onLost: "fail" } });
  await rethread.session("s", { owner: { kind: "conversation", auto: true, onLost: "fail" } });
  // @ts-expect-error A conversation that other code began is not begun again.
  await rethread.session("s", { owner: { kind: "conversation", conversationId: "conv_1", auto: true } });
  // @ts-expect-error the session lacks what came before
  await rethread.session("s", { owner: { kind: "response", previousResponseId: "msg_1", onLost: "restart" } });
  // @ts-expect-error only a chain is lost
  await rethread.session("s", { owner: { kind: "session", onLost: "fail" } });
  await rethread.session("s", {
    compaction: {
      mode: "provider",
      tokens: 100_000,
      summarize: async (body, mode) => `${body.length} ${mode}`,
      fallback: [{ type: "token_budget", tokens: 90_000 }],
    },
  });
  // @ts-expect-error from how many tokens on
  await rethread.session("s", { compaction: { summarize: async () => "" } });
  await rethread.session("s", { owner: { kind: "caller" } });
  // @ts-expect-error a second owner
  await rethread.session("s", { owner: { kind: "caller", conversationId: "conv_1" } });
  // @ts-expect-error bytes come from `serialize`, lines from `exportSession`
  await rethread.restore("lines");
  // @ts-expect-error a dialect says what the body is
  await session.append(wire);
  // @ts-expect-error a stored call gets its result, nothing else
  await session.answer("c", { type: "started" });
  // @ts-expect-error read only
  session.revision = 5;
  const { branch }: { branch: string } = await session.fork(null);
  await session.switchTo(branch);
  const receipt: ErasureReceipt = await session.deleteMessages(["m1"] as const);
  const erased: [string[], number, number] = [receipt.messages, receipt.invocations, receipt.bytes];
  for (const { table, count } of receipt.records) void [table satisfies string, count satisfies number, erased];
  for (const { what, why } of receipt.unreached) void [what satisfies string, why satisfies string];
  // @ts-expect-error ids are a list
  await session.deleteMessages("m1");
  // @ts-expect-error before all is null
  await session.fork();
  await session.run({ provider, replace: "m", branch });
  await session.append([{ role: "user", parts: [] }], { branch, expectedRevision: session.revision });
  const ofBranch: Rendered = await session.render({ dialect: "anthropic", branch });
  const annotated: Promise<void> = session.annotate("m", { thumb: "up", labels: [ofBranch.stablePrefix] });
  await Promise.all([annotated, session.annotate("m", undefined), session.annotate("m", null)]);
  // @ts-expect-error an answer is stored in the branch that is shown
  await session.answer("c", { type: "tool_result", content: 1 }, { branch });
  // @ts-expect-error metadata is given, or removed by null
  await session.annotate("m");
  // @ts-expect-error a run goes on in its branch
  await session.resume("r", { provider, replace: 7 });
  // @ts-expect-error a provider is needed
  await session.run({ input: "hi" });
  // @ts-expect-error `url` is needed
  await session.run({ provider: { dialect: "anthropic", params: {} } });
  await session.run({ provider, inputFilter: (body: WireBody) => body });
  await session.run({ provider, inputFilter: async ({ input, ...body }) => ({ ...body, input }) });
  // @ts-expect-error a filter returns the body
  await session.run({ provider, inputFilter: () => {} });
  // @ts-expect-error tools are named, not listed
  await session.run({ provider, tools: [{ description: "x" }] });
  const withApproval: Tool = { needsApproval: async (args) => args !== null, onInterrupted: "ask" };
  // @ts-expect-error a flag or a function
  const withWrongApproval: Tool = { needsApproval: "always" };
  // @ts-expect-error a decision is true, false or a reason
  drive(await session.run({ provider, tools: { withWrongApproval } }), { onApproval: () => "yes" });
  // @ts-expect-error input is not given again
  await session.resume("id", { provider, input: "hi", tools: { withApproval } });
  // @ts-expect-error no such status
  await session.invocations({ status: "fine" });
}
export { asBytes, asText, converted, reduced };
