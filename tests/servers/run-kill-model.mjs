// The model and the tools of runs that are killed: two calls, one call, text. Runs in Node and in workerd.
//
// `note` takes a line for each model call and each tool that runs, and keeps it where no kill reaches it.

const ROUNDS = [[['a', 'look'], ['b', 'find']], [['c', 'look']]];

/** The request of a run: its answer depends on the body alone, so it goes on after any kill. */
export function runRequest(note, persistence) {
  const execute = async (_, { invocationId }) => {
    await note(`tool ${invocationId}`);
    return 'found';
  };
  const schema = { type: 'object', properties: {} };
  return {
    provider: { dialect: 'openai-chat', url: 'https://model.example/v1', params: { model: 'm' } },
    tools: { look: { parameters: schema, execute }, find: { parameters: schema, execute } },
    ...(persistence && { persistence }),
  };
}

/** Answers as a provider of chat completions. */
export const fetchFor = (note) => async (_, { body }) => {
  const { messages } = JSON.parse(new TextDecoder().decode(body));
  const rounds = messages.slice(messages.findLastIndex(({ role }) => role === 'user')).filter(({ role }) => role === 'assistant').length;
  await note(`model ${rounds}`);
  const calls = ROUNDS[rounds];
  const message = calls
    ? { role: 'assistant', content: null, tool_calls: calls.map(([id, name]) => ({ id, type: 'function', function: { name, arguments: '{}' } })) }
    : { role: 'assistant', content: 'Done.' };
  return Response.json({ id: 'r', object: 'chat.completion', model: 'm', choices: [{ index: 0, message, finish_reason: calls ? 'tool_calls' : 'stop' }] });
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

const ended = ({ status, error }) => ({ status, error });

/** Goes on with what a killed process left. Returns what was there before, and what there is now. */
export async function goOn({ validate, drive }, client, id, note, persistence) {
  const session = await client.session(id);
  const { body } = await session.render({ dialect: 'openai-chat', input: 'And?' });
  const errors = validate(body, 'openai-chat').filter(({ severity }) => severity === 'error');
  const stored = (await session.messages()).items;
  let [pending] = await session.pendingRuns();
  // Where leases show who is alive, the killed owner counts as alive until its lease has expired.
  for (; pending?.state === 'live'; [pending] = await session.pendingRuns()) await new Promise((resolve) => setTimeout(resolve, 20));
  let outcome = null;
  if (pending) outcome = ended(await drive(await session.resume(pending.id, runRequest(note)), { fetch: fetchFor(note) }).result);
  else if (stored.length === 0) outcome = ended(await drive(await session.run({ input: 'Go', ...runRequest(note, persistence) }), { fetch: fetchFor(note) }).result);
  const messages = (await session.messages()).items;
  const calls = (await session.invocations({ payload: true })).items;
  return { errors, stored, isPending: Boolean(pending), outcome, messages, calls, left: (await session.pendingRuns()).length };
}
