// The model and the tools of runs that are killed: two calls, one call, text. Runs in Node and in workerd.
//
// `note` takes a line for each model call, each tool that runs and each decision, and keeps it where no kill reaches
// it.
//
// A `plan` is a mode, or a mode with decisions, such as "call-approvals": then `look` asks, and a person approves its
// first call and rejects its second one. While the first call waits, `find` runs.

const ROUNDS = [
  [
    ['a', 'look'],
    ['b', 'find'],
  ],
  [['c', 'look']],
];

export const MODES = ['run', 'call', 'result'];
export const APPROVALS = '-approvals';
export const modeOf = (plan) => plan.replace(APPROVALS, '');
export const hasApprovals = (plan) => plan.endsWith(APPROVALS);
const REJECTED = 'c';

/** The request of a run: its answer depends on the body alone, so it goes on after any kill. `isNew`: a resumed run
 *  keeps its mode. */
export function runRequest(note, plan, isNew) {
  const execute = async (_, { invocationId }) => {
    await note(`tool ${invocationId}`);
    return 'found';
  };
  const schema = { type: 'object', properties: {} };
  return {
    provider: { dialect: 'openai-chat', url: 'https://model.example/v1', params: { model: 'm' } },
    tools: {
      look: { parameters: schema, execute, needsApproval: hasApprovals(plan) },
      find: { parameters: schema, execute },
    },
    ...(isNew && { persistence: modeOf(plan) }),
  };
}

/** Answers as a provider of chat completions. */
export const fetchFor =
  (note) =>
  async (_, { body }) => {
    const { messages } = JSON.parse(new TextDecoder().decode(body));
    const rounds = messages
      .slice(messages.findLastIndex(({ role }) => role === 'user'))
      .filter(({ role }) => role === 'assistant').length;
    await note(`model ${rounds}`);
    const calls = ROUNDS[rounds];
    const message = calls
      ? {
          role: 'assistant',
          content: null,
          tool_calls: calls.map(([id, name]) => ({ id, type: 'function', function: { name, arguments: '{}' } })),
        }
      : { role: 'assistant', content: 'Done.' };
    return Response.json({
      id: 'r',
      object: 'chat.completion',
      model: 'm',
      choices: [{ index: 0, message, finish_reason: calls ? 'tool_calls' : 'stop' }],
    });
  };

/** The driver, which calls `visit(operation, "before" | "after")` around each operation while `counter.isCounting`. */
export function watchedDriver(driver, counter, visit) {
  for (const name of ['transaction', 'commit', 'put']) {
    if (!driver[name]) continue;
    const perform = driver[name].bind(driver);
    driver[name] = async (...args) => {
      if (!counter.isCounting) return perform(...args);
      counter.operations += 1;
      const { operations } = counter;
      await visit(operations, 'before');
      const result = await perform(...args);
      await visit(operations, 'after');
      return result;
    };
  }
  return driver;
}

/** Drives a run to its end, with a person who decides whenever nothing else is left to do. */
export async function driveToEnd(drive, run, note) {
  for (;;) {
    const result = await drive(run, { fetch: fetchFor(note) }).result;
    if (result.status !== 'waiting_approval') return result;
    for (const { callId, invocationId } of run.approvals()) {
      await note(`deciding ${callId}`);
      if (callId === REJECTED) await run.reject(invocationId, 'not this one');
      else await run.approve(invocationId);
      await note(`decided ${callId}`);
    }
  }
}

const ended = ({ status, error }) => ({ status, error });

/** Goes on with what a killed process left. Returns what was there before, and what there is now. */
export async function goOn({ validate, drive }, client, id, note, plan) {
  const session = await client.session(id);
  const { body } = await session.render({ dialect: 'openai-chat', input: 'And?' });
  const errors = validate(body, 'openai-chat').filter(({ severity }) => severity === 'error');
  const stored = (await session.messages()).items;
  let [pending] = await session.pendingRuns();
  // Where leases show who is alive, the killed owner counts as alive until its lease has expired.
  for (; pending?.state === 'live'; [pending] = await session.pendingRuns())
    await new Promise((resolve) => setTimeout(resolve, 20));
  let outcome = null;
  if (pending) outcome = ended(await driveToEnd(drive, await session.resume(pending.id, runRequest(note, plan)), note));
  else if (stored.length === 0)
    outcome = ended(await driveToEnd(drive, await session.run({ input: 'Go', ...runRequest(note, plan, true) }), note));
  const messages = (await session.messages()).items;
  const calls = (await session.invocations({ payload: true })).items;
  return {
    errors,
    stored,
    isPending: Boolean(pending),
    outcome,
    messages,
    calls,
    left: (await session.pendingRuns()).length,
  };
}
