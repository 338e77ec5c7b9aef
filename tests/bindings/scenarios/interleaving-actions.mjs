// Actions of an interleaving beside turns: compaction, handoffs, another process, another store. The same file runs in
// a page and in Node.

import { wordsOfService } from './service-words.mjs';

/** Compacts the session, or has the service shorten its chain. The words that the summary stands for are noted, so that
 *  they can be compared. */
export async function compact(play) {
  const { session, numbers } = play;
  const { kind } = session.owner;
  const mode = kind === 'response' && numbers.chance(0.3) ? 'previous_response_id' : 'auto';
  let hasExpired = false;
  // Not for one that is deferred.
  let isJoined = numbers.chance(0.3);
  const summarize = async (body) => {
    const text = `Summary ${(play.count += 1)}.`;
    const { input, previous_response_id: previous } = JSON.parse(new TextDecoder().decode(body));
    // The last item asks for the summary.
    const items = input ? input.slice(0, -1) : (await play.service()).responses[previous];
    hasExpired = !items;
    play.summaries.set(text, wordsOfService(items, play.summaries));
    play.log(`${text} ${JSON.stringify(play.summaries.get(text))}`);
    if (isJoined) await play.appendElsewhere();
    return input
      ? text
      : JSON.stringify({
          object: 'response.compaction',
          output: [{ type: 'compaction', id: `cmp_${play.count}`, encrypted_content: text }],
        });
  };
  const compacting = session.compact({
    summarize,
    mode,
    force: numbers.chance(0.7),
    dialect: 'openai-responses',
    params: { model: 'm' },
  });
  const outcome = await play.race(compacting).catch((error) => ({ code: error.code, message: error.message }));
  isJoined = false;
  play.log(`compact ${JSON.stringify(outcome)}`);
  if (outcome.crashed) return;
  const expected = { conversation: 'state_owner_conflict', [hasExpired && 'response']: 'callback_failed' }[kind];
  if (outcome.code !== expected) play.problems.push(`compact (${kind}, ${mode}): ${JSON.stringify(outcome)}`);
  if (outcome.compacted) play.counts.compactions += 1;
}

/** Goes on in an empty store, with a copy of the session. */
export async function move(play) {
  const { client, session, numbers } = play;
  if (session.revision === 0) return;
  const isBytes = numbers.chance(0.5);
  const copy = isBytes ? await session.serialize() : await client.exportSession('s');
  play.log(isBytes ? 'restore' : 'import');
  play.counts.moves += 1;
  await play.closeOther();
  play.store = new play.store.constructor();
  const mover = await play.open({ store: play.store, now: () => play.clock });
  await (isBytes ? mover.restore(copy, { id: 's' }) : mover.importSession(copy, { id: 's' }));
  await mover.close();
  await play.restart();
}

/** Another process asks something and gets an answer. One at a time: the requests of two would take each other's
 *  steps. */
export function askElsewhere(play, isRunning = false) {
  play.asking ??= askOnce(play, isRunning).finally(() => {
    play.asking = null;
  });
  return play.asking;
}

async function askOnce(play, isRunning) {
  play.isReordered = true;
  play.counts.others += 1;
  const client = await play.open({
    store: play.store,
    now: () => play.clock,
    newId: () => `other${(play.ids += 1)}`,
    replay: { freshness: Infinity },
  });
  const session = await play.sessionOf(client);
  const [question, answer] = [`Question ${(play.count += 1)}.`, `Answer ${(play.count += 1)}.`];
  const send = async (url, init) => {
    const { conversation, previous_response_id: previous } = JSON.parse(new TextDecoder().decode(init.body));
    play.log(`request elsewhere ${conversation ?? previous ?? 'of all'}`);
    await play.setStep({ text: answer });
    const response = await fetch(url, init);
    if (response.ok) {
      play.held = [];
      if (conversation) play.newestAnswer = answer;
    } else await play.setStep(null);
    return response;
  };
  const provider = { dialect: 'openai-responses', url: `${play.base}/v1/responses`, params: { model: 'm' } };
  const run = await session.run({ input: question, provider }).catch((error) => {
    // In a conversation one run at a time sends.
    if (!(isRunning && error.code === 'busy' && session.owner.kind === 'conversation')) throw error;
  });
  if (!run) {
    play.log('busy elsewhere');
    return client.close();
  }
  if (isRunning && session.owner.kind === 'conversation') play.problems.push('two runs in one conversation');
  const { status, error } = await play.drive(run, { fetch: send }).result;
  play.log(`answer elsewhere ${status}`);
  if (status !== 'finished') play.problems.push(`another process: ${JSON.stringify(error)}`);
  await client.close();
}

/** Hands the run off, in a tool. A filter is rejected if a service has the conversation. */
export async function handOff(play, life) {
  const { numbers, run } = play;
  const isKept = play.session.owner.kind !== 'session';
  const filters = numbers.chance(0.3);
  const agent = {
    name: `agent${(play.count += 1)}`,
    nestHistory: numbers.chance(0.3),
    ...(filters && {
      inputFilter: (messages) =>
        messages.filter(
          (message) => message === messages.findLast(({ role }) => role === 'user') || numbers.chance(0.7),
        ),
    }),
  };
  play.agents.set(agent.name, agent);
  const outcome = await run.handoff(play.handoffOf(agent.name, life)).catch((error) => error);
  if (life.isOver) return null;
  play.log(`handoff ${JSON.stringify({ ...agent, filters })} ${outcome?.code ?? ''}`);
  if (filters && isKept) {
    if (outcome?.code !== 'handoff_filter_not_supported') play.problems.push(`a handoff with a filter: ${outcome}`);
  } else if (!outcome) {
    play.setAgents([...play.handoffs, agent.name]);
    play.counts.handoffs += 1;
  } else if (outcome.code !== 'wrong_state') play.problems.push(`a handoff: ${outcome}`);
  return outcome;
}

/** How a run ended that is driven, or that its process died. */
export async function outcomeOf(play, result) {
  const outcome = await Promise.race([
    result.then(
      (value) => ({ result: value }),
      (error) => ({ error }),
    ),
    play.life.dead,
  ]);
  play.log(`outcome ${JSON.stringify([outcome.result?.status, outcome.result?.error, outcome.error?.code])}`);
  return play.life.isOver ? { crashed: true } : outcome;
}
