// Runs over each of the five dialects: two turns of parallel calls over several rounds, with reasoning where the
// dialect has it.

import { city, finish, plainTools } from './kit.mjs';

/** By dialect: the path of the stand-in, and the parameters that make it reason. */
const ENDPOINTS = {
  'openai-chat': { path: () => 'v1/chat/completions', params: { model: 'm' } },
  'openai-responses': {
    path: () => 'v1/responses',
    params: { model: 'm', store: false, reasoning: { effort: 'low' }, include: ['reasoning.encrypted_content'] },
  },
  anthropic: {
    path: () => 'v1/messages',
    params: { model: 'm', max_tokens: 2000, thinking: { type: 'enabled', budget_tokens: 1000 } },
  },
  gemini: {
    path: (stream) =>
      `v1beta/models/gemini-3-pro-preview:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
    params: { generationConfig: { thinkingConfig: { includeThoughts: true } } },
  },
  mistral: { path: () => 'mistral/v1/chat/completions', params: { model: 'm', prompt_mode: 'reasoning' } },
};
export const ALL_DIALECTS = Object.keys(ENDPOINTS);
export const QUESTIONS = ['Weather in Oslo and Rome?', 'And in Lima, please?'];

export const providerAt = (base, dialect, stream) => ({
  dialect,
  url: `${base}/${ENDPOINTS[dialect].path(stream)}`,
  params: ENDPOINTS[dialect].params,
  stream,
});

/** Three tools: the stand-in calls the first two at once, then the third one. */
const threeTools = () => ({
  ...plainTools(),
  book_table: {
    description: 'Books a table.',
    parameters: city,
    execute: async ({ city: of }) => ({ booked: of, seats: [2, 3] }),
  },
});

/** A stored message without ids and times. */
function plain({ role, status, parts }, rows) {
  const shown = parts.map((part) => {
    if (part.type !== 'tool_call') return { type: part.type, text: part.text };
    const { name, arguments: args, status: outcome, result } = rows.get(part.invocation);
    return { type: 'call', name, args, outcome, result, round: part.round, place: part.place };
  });
  return { role, status, parts: shown };
}

/** Both questions in a new session. `env` has the store, the database's name and the address of a lane. */
export async function twoTurns({ rethread, drive }, env, { dialect, stream, persistence }) {
  const client = await rethread.open({ store: env.store, name: env.name });
  const session = await client.session('s', { persistence });
  const results = [];
  for (const input of QUESTIONS) {
    const run = await session.run({ input, provider: providerAt(env.base, dialect, stream), tools: threeTools() });
    const { result, events } = await finish(drive, run);
    const { status, error, text, turns, saved } = result;
    results.push({
      status,
      error,
      text,
      turns,
      saved,
      tools: events.filter(({ type }) => type === 'tool_finished').length,
    });
  }
  const rows = new Map((await session.invocations({ payload: true, limit: 1000 })).items.map((row) => [row.id, row]));
  const messages = (await session.messages({ limit: 1000 })).items.map((message) => plain(message, rows));
  const pending = await session.pendingRuns();
  const { revision } = session;
  await client.close();
  return { results, messages, revision, pending: pending.length };
}

/** One session, a turn in each dialect, there and back. */
export async function switching({ rethread, drive }, env, { stream, persistence }) {
  const client = await rethread.open({ store: env.store, name: env.name });
  const session = await client.session('s', { persistence });
  const ends = [];
  for (const [at, dialect] of [...ALL_DIALECTS, ...ALL_DIALECTS.toReversed()].entries()) {
    const run = await session.run({
      input: `Question ${at}: what about Oslo?`,
      provider: providerAt(env.base, dialect, stream),
      tools: threeTools(),
    });
    const { result } = await finish(drive, run);
    ends.push({ dialect, status: result.status, error: result.error, turns: result.turns });
  }
  const messages = (await session.messages({ limit: 1000 })).items.length;
  await client.close();
  return { ends, messages };
}

/** A run whose host removes the last item of the second request, which is a result: the provider must reject it. */
export async function withoutLastResult({ rethread, drive }, env, dialect) {
  const client = await rethread.open({ store: env.store, name: env.name });
  const session = await client.session('s');
  const statuses = [];
  const spoilt = async (url, init) => {
    const body = JSON.parse(new TextDecoder().decode(init.body));
    if (statuses.length) (body.messages ?? body.input ?? body.contents).pop();
    const response = await fetch(url, { ...init, body: JSON.stringify(body) });
    statuses.push(response.status);
    return response;
  };
  const run = await session.run({
    input: QUESTIONS[0],
    provider: providerAt(env.base, dialect, true),
    tools: threeTools(),
  });
  const { result } = await finish(drive, run, { fetch: spoilt });
  await client.close();
  return { result, statuses };
}
