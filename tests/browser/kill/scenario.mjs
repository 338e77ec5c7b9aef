// One kill: a run up to a point, SIGKILL, and what the next browser on the same profile makes of it.

import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { EARLIER, STEPS } from './points.mjs';

const TOOLS = ['alpha', 'beta', 'gamma'];
const ROUND = { alpha: 0, beta: 0, gamma: 1 };
const list = (value) => (Array.isArray(value) ? value : [value]);

export async function until(what, test, ms = 90_000) {
  const end = Date.now() + ms;
  for (;;) {
    const found = await test();
    if (found) return found;
    if (Date.now() > end) throw new Error(`waited ${ms} ms for ${what}`);
    await sleep(2);
  }
}

export const hangs = (lane, where) =>
  lane
    .listWaiting()
    .some((waiting) =>
      where.gate
        ? waiting.kind === 'gate'
        : waiting.phase === where.phase &&
          (where.name ?? waiting.name) === waiting.name &&
          (where.ordinal ?? waiting.ordinal) === waiting.ordinal,
    );

/** The run up to its point. Gives the history before it. */
export async function approach({ world, browser, given, point }) {
  const lane = world.lane(given.lane);
  lane.options.delayMs = 0;
  lane.then = 'error';
  lane.script = EARLIER.map((one) => ({ ...one }));
  const before = await browser.page.evaluate((given) => window.kill.before(given), given);
  lane.script = STEPS.map((one, i) =>
    point.stream?.[0] === i + 1 ? { ...one, gate: 'point', atPiece: point.stream[1] } : { ...one },
  );
  const holds = [...point.at, ...(point.stay ?? [])].filter((where) => !where.gate);
  for (const where of holds) lane.hold(where);
  await browser.page.evaluate((given) => window.kill.begin(given), given);
  await until(`the point "${point.name}"`, () => point.at.every((where) => hangs(lane, where))).catch(async (error) => {
    const over = await browser.page.evaluate((id) => window.kill.seen(id).over, given.session);
    throw new Error(
      `${error.message}; there hangs ${JSON.stringify(lane.listWaiting())}, the run is ${JSON.stringify(over ?? 'under way')}`,
    );
  });
  // What the stand-in has sent is in the page too.
  if (point.stream?.[1] > 0) await browser.page.waitForFunction((id) => window.kill.seen(id).bytes > 0, given.session);
  return before;
}

/** SIGKILL for all that runs in that browser. A write that is to be hit was let go `delay` ms before. */
export async function strike({ world, browser, scenes, delay }) {
  const lanes = scenes.map(({ given }) => world.lane(given.lane));
  const races = scenes.flatMap(({ point }, i) => (point.race ? [[lanes[i], point.at[0]]] : []));
  for (const [lane, where] of races) lane.release(where);
  const end = performance.now() + delay;
  while (races.length && performance.now() < end) await sleep(0);
  await browser.kill();
  await until('its requests to end', () => lanes.every((lane) => lane.listWaiting().length === 0));
  return lanes.map((lane) => ({ tools: lane.tools.map((entry) => ({ ...entry })), requests: lane.requests.length }));
}

/** Which round a request asks for: how many answers of this turn are in it. */
export function roundOf({ body }) {
  const said = (message) =>
    message.role === 'user' &&
    (typeof message.content === 'string' || message.content.some((part) => part.type === 'text'));
  const last = body.messages.findLastIndex(said);
  return body.messages.slice(last + 1).filter((message) => message.role === 'assistant').length;
}

/** Takes the run over and checks all that must hold. Gives the counts. */
export async function recover({ world, browser, given, point, before, killed }) {
  const lane = world.lane(given.lane);
  lane.release();
  const marks = new Set(killed.tools.filter(({ phase }) => phase === 'point').map(({ name }) => name));
  const acknowledged = (what) => marks.has(`after ${what}`);
  const story = await browser.page.evaluate((id) => window.kill.story(id), given.session);
  const pending = await browser.page.evaluate((id) => window.kill.pending(id), given.session);
  const counts = { kills: 1, landed: 0, resumed: 0, reported: 0, reran: 0, ran: 0, repeated: 0, refused: 0 };

  assert.deepEqual(pending.here, pending.everywhere, 'the list of all has it too');
  assert.ok(pending.here.length <= 1, 'one unfinished run at the most');
  const [run] = pending.here;
  if (!run) {
    const saved = acknowledged('answer 3') || (point.saved && story.messages.length > before.messages.length);
    if (point.begun === 'maybe' && !acknowledged('run')) {
      assert.deepEqual(story, before, 'a run that was never begun left nothing');
    } else {
      assert.ok(
        saved,
        `the run is gone: of ${before.messages.length} earlier messages ${story.messages.length} are there`,
      );
      counts.landed = 1;
      checkTurn({ given, story, before, states: {}, killed, lane });
      assert.equal(lane.requests.length, killed.requests);
    }
    await furtherTurn({ browser, given, lane, counts, story });
    return counts;
  }

  // The run is offered as far as it came.
  assert.ok(!acknowledged('answer 3') && point.saved !== 'yes', 'an acknowledged save is there');
  assert.equal(run.state, 'interrupted');
  assert.equal(run.session, given.session);
  assert.deepEqual(
    run.input.map(({ role, parts }) => [role, parts]),
    [['user', [{ type: 'text', text: 'Do all three.' }]]],
  );
  assert.ok(list(point.turn).includes(run.turn), `${run.turn} answers are journalled, ${point.turn} expected`);
  for (const n of [1, 2]) assert.ok(!acknowledged(`answer ${n}`) || run.turn >= n, `answer ${n} was acknowledged`);
  const open = run.turn === 0 ? [] : run.turn === 1 ? ['alpha', 'beta'] : ['gamma'];
  assert.deepEqual(
    run.openCalls.map(({ name }) => name),
    open,
  );
  const states = Object.fromEntries(
    TOOLS.map((name) => [name, ROUND[name] < run.turn - 1 ? 'answered' : 'not_started']),
  );
  for (const call of run.openCalls) {
    states[call.name] = call.state;
    assert.ok(
      list(point.calls[call.name]).includes(call.state),
      `${call.name} is ${call.state}, ${point.calls[call.name]} expected`,
    );
    if (acknowledged(`result ${call.name}`)) assert.equal(call.state, 'answered', call.name);
    else if (acknowledged(`start ${call.name}`)) assert.notEqual(call.state, 'not_started', call.name);
  }
  checkHistory({ given, story, before, turn: run.turn, states });
  for (const { name } of killed.tools.filter(({ phase, name }) => phase === 'start' && name !== 'earlier'))
    assert.notEqual(states[name], 'not_started', `${name} ran before its start was journalled`);
  if (point.race) {
    const latest = Object.entries(point.calls).every(
      ([name, wanted]) => !open.includes(name) || states[name] === list(wanted).at(-1),
    );
    counts.landed = Number(run.turn === list(point.turn).at(-1) && latest && !point.saved && point.begun !== 'maybe');
    if (point.begun === 'maybe') counts.landed = 1;
  }

  // It goes on from there.
  lane.script = STEPS.slice(run.turn).map((one) => ({ ...one }));
  const { code, result } = await browser.page.evaluate(
    ([given, options]) => window.kill.resume(given, options),
    [given, { id: run.id, answered: run.turn }],
  );
  assert.equal(code, 'ok');
  assert.deepEqual(
    [result.status, result.saved, result.error, result.turns, result.text],
    ['finished', true, null, 3, STEPS[2].text],
  );
  counts.resumed = 1;

  const asked = lane.requests
    .map((request, i) => ({ request, round: roundOf(request), old: i < killed.requests }))
    .slice(EARLIER.length);
  assert.deepEqual(
    asked.filter(({ old }) => !old).map(({ round }) => round),
    [0, 1, 2].slice(run.turn),
    'what was answered is not asked again',
  );
  for (const round of [0, 1, 2]) {
    const own = asked.filter((one) => one.round === round);
    const again = round === run.turn && own.some(({ old }) => old);
    assert.equal(own.length, again ? 2 : 1, `round ${round} was asked ${own.length} times`);
    if (!again) continue;
    counts.repeated += 1;
    assert.equal(own[0].old, true);
    assert.equal(own[1].request.bodyText, own[0].request.bodyText, 'the same request, byte for byte');
  }
  const now = await browser.page.evaluate((id) => window.kill.story(id), given.session);
  assert.deepEqual(
    withoutResults(now.messages.slice(0, story.messages.length)),
    withoutResults(story.messages),
    'what was stored before the kill stays',
  );
  checkTurn({ given, story: now, before, states, killed, lane, counts });
  const stored = await browser.page.evaluate((id) => window.kill.stored(id), given.session);
  assert.deepEqual(stored, { ...now, pending: [] }, 'the disk says the same');
  assert.deepEqual(await browser.page.evaluate((id) => window.kill.pending(id), given.session), {
    here: [],
    everywhere: [],
  });
  assert.deepEqual(
    await browser.page.evaluate(([given, options]) => window.kill.resume(given, options), [given, { id: run.id }]),
    { code: 'not_found' },
  );
  await furtherTurn({ browser, given, lane, counts, story: now });
  return counts;
}

/** What history has of an interrupted run, by its mode: nothing, or each answer, or each answer and each result. */
function checkHistory({ given, story, before, turn, states }) {
  const { persistence = 'run' } = given;
  if (persistence === 'run' || turn === 0) return assert.deepEqual(story, before, 'history is as before the run');
  const base = before.messages.length;
  assert.deepEqual(story.messages.slice(0, base), before.messages, 'what was there stays');
  assert.deepEqual(
    story.messages.slice(base).map(({ role }) => role),
    ['user', ...Array(turn).fill('assistant')],
  );
  const calls = story.invocations.slice(before.invocations.length);
  const isStored = (name) => (persistence === 'result' ? states[name] === 'answered' : ROUND[name] < turn - 1);
  const expected = TOOLS.filter((name) => ROUND[name] < turn).map((name) => [name, isStored(name) ? 'ok' : 'pending']);
  assert.deepEqual(
    calls.map(({ name, status }) => [name, status]),
    expected,
    `mode ${persistence}`,
  );
}

/** The whole turn is in history once, with each call in its place. */
function checkTurn({ given, story, before, states, killed, lane, counts }) {
  const base = before.messages.length;
  assert.deepEqual(story.messages.slice(0, base), before.messages, 'what was there stays');
  const turn = story.messages.slice(base);
  assert.deepEqual(
    turn.map(({ role }) => role),
    ['user', 'assistant', 'assistant', 'assistant'],
  );
  assert.equal(new Set(turn.map(({ runId }) => runId)).size, 1);
  assert.deepEqual(new Set(turn.map(({ status }) => status)), new Set(['complete']));
  assert.deepEqual(new Set(turn.map(({ turn }) => turn)), new Set([before.messages.at(-1).turn + 1]));
  assert.deepEqual(
    story.messages.map(({ seq }) => seq),
    story.messages.map((_, i) => story.messages[0].seq + i),
  );
  const calls = story.invocations.filter(({ messageId }) => turn.some(({ id }) => id === messageId));
  assert.equal(story.invocations.length, before.invocations.length + 3);
  const byId = new Map(calls.map((call) => [call.id, call]));
  const shown = turn.map(({ parts }) =>
    parts.map((part) => (part.type === 'text' ? part.text : [byId.get(part.invocation)?.name, part.round, part.place])),
  );
  assert.deepEqual(shown, [
    ['Do all three.'],
    [STEPS[0].text, ['alpha', 0, 0], ['beta', 0, 1]],
    [STEPS[1].text, ['gamma', 1, 0]],
    [STEPS[2].text],
  ]);
  assert.deepEqual(
    calls.map(({ name, roundIndex, sequenceIndex }) => [name, roundIndex, sequenceIndex]),
    [
      ['alpha', 0, 0],
      ['beta', 0, 1],
      ['gamma', 1, 0],
    ],
  );
  assert.equal(new Set(calls.map(({ callId }) => callId)).size, 3);
  for (const call of calls) checkCall({ given, call, state: states[call.name] ?? 'answered', killed, lane, counts });
}

function checkCall({ given, call, state, killed, lane, counts = {} }) {
  const starts = (entries) => entries.filter(({ name, phase }) => name === call.name && phase === 'start');
  const [old, all] = [starts(killed.tools), starts(lane.tools)];
  const fresh = all.slice(old.length);
  const attempts = fresh.map((entry) => entry.arguments.attempt);
  assert.equal(
    new Set(all.map(({ invocationId }) => invocationId)).size,
    all.length ? 1 : 0,
    `${call.name} has one idempotency key`,
  );
  for (const entry of all) assert.deepEqual([entry.invocationId, entry.callId], [call.id, call.callId]);
  assert.ok(old.length <= 1);
  const rerun = given.onInterrupted === 'rerun';
  if (state === 'started' && !rerun) {
    assert.deepEqual(attempts, [], `${call.name} may have run, and ran again`);
    assert.equal(call.status, 'interrupted');
    assert.equal(call.result.isError, true);
    assert.match(JSON.stringify(call.result.content), /Interrupted.*may or may not have run/);
    // The model is told.
    assert.match(lane.requests.at(-1).bodyText, /may or may not have run/);
    counts.reported += 1;
    return;
  }
  assert.equal(call.status, 'ok');
  assert.deepEqual(call.result, { content: { tool: call.name, city: call.arguments.city }, isError: false });
  if (state === 'answered') {
    assert.deepEqual([old.length, attempts], [1, []], `${call.name} was answered, and ran again`);
  } else if (state === 'started') {
    assert.deepEqual(attempts, [2], `${call.name} runs again, as its second try`);
    counts.reran += 1;
  } else {
    assert.deepEqual([old.length, attempts], [0, [1]], `${call.name} runs once`);
    counts.ran += 1;
  }
}

/** The chat goes on, and the stand-in had nothing to refuse. */
async function furtherTurn({ browser, given, lane, counts, story }) {
  lane.script = [{ text: 'Now this.' }];
  const result = await browser.page.evaluate((given) => window.kill.after(given), given);
  assert.deepEqual([result.status, result.text, result.error], ['finished', 'Now this.', null]);
  const { messages } = await browser.page.evaluate((id) => window.kill.story(id), given.session);
  assert.deepEqual(messages.slice(0, story.messages.length), story.messages);
  assert.equal(messages.length, story.messages.length + 2);
  assert.deepEqual(lane.script, []);
  checkRefused(lane, counts);
}

/** Every request was accepted; those that a kill ended may have no status yet. */
export function checkRefused(lane, counts = {}) {
  const refused = lane.requests.filter(
    ({ status, ended }) => ended === 'refused' || (status !== 200 && !(status === null && ended === 'client-closed')),
  );
  counts.refused = refused.length;
  assert.deepEqual(
    refused.map(({ status, error }) => [status, error]),
    [],
  );
}

/** Messages with their calls as the model wrote them: what became of a call can come after the kill. */
function withoutResults(messages) {
  const asWritten = ({ type, invocation, round, place, callId, name, argumentsText }) => ({
    type,
    invocation,
    round,
    place,
    callId,
    name,
    argumentsText,
  });
  return messages.map((message) => ({
    ...message,
    parts: message.parts.map((part) => (part.type === 'tool_call' ? asWritten(part) : part)),
  }));
}
