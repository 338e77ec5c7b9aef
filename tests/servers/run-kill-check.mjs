// What must hold of a run that was killed and went on: nothing is lost, doubled, stuck or invalid.

import assert from 'node:assert/strict';
import { hasApprovals, modeOf } from './run-kill-model.mjs';

/** `facts`: what `goOn` returned. `lines`: what the run noted, before and after the kill. */
export function checkRun({ errors, stored, outcome, messages, calls, left }, lines, plan) {
  assert.deepEqual(errors, [], 'what the kill left makes an invalid request');
  if (modeOf(plan) === 'run') assert.ok([0, 4].includes(stored.length), 'half a turn');
  if (outcome) assert.equal(outcome.status, 'finished', JSON.stringify(outcome.error));
  assert.deepEqual(
    messages.slice(0, stored.length).map((message) => message.id),
    stored.map((message) => message.id),
  );
  assert.deepEqual(
    messages.map(({ role }) => role),
    ['user', 'assistant', 'assistant', 'assistant'],
  );
  assert.deepEqual(calls.map(({ callId }) => callId).sort(), ['a', 'b', 'c']);
  const ends = (callId) => (hasApprovals(plan) && callId === 'c' ? ['rejected'] : ['ok', 'interrupted']);
  assert.ok(
    calls.every(({ callId, status, result }) => ends(callId).includes(status) && result),
    JSON.stringify(calls),
  );
  const ran = lines.filter((line) => line.startsWith('tool'));
  assert.equal(new Set(ran).size, ran.length, 'a tool ran twice');
  for (const call of calls.filter(({ status }) => status === 'ok'))
    assert.ok(ran.includes(`tool ${call.id}`), `${call.name} has a result and never ran`);
  if (hasApprovals(plan)) checkDecisions(lines, calls);
  const asked = lines.filter((line) => line.startsWith('model'));
  assert.deepEqual([...new Set(asked)], ['model 0', 'model 1', 'model 2'], 'an answer was asked for out of its order');
  assert.ok(asked.length <= 4, `the model was asked ${asked.length} times`);
  assert.equal(left, 0);
}

/** A decision that was acknowledged is asked for once, and a tool runs after its approval only. */
function checkDecisions(lines, calls) {
  for (const { callId, id, status } of calls.filter(({ name }) => name === 'look')) {
    const decided = lines.indexOf(`decided ${callId}`);
    assert.ok(
      decided < 0 || !lines.slice(decided).includes(`deciding ${callId}`),
      `a person was asked about ${callId} again`,
    );
    const ran = lines.indexOf(`tool ${id}`);
    if (ran >= 0)
      assert.ok(callId === 'a' && lines.slice(0, ran).includes('deciding a'), `${callId} ran without an approval`);
    if (status !== 'interrupted')
      assert.ok(lines.includes(`deciding ${callId}`), `${callId} has a result and nobody was asked`);
  }
}
