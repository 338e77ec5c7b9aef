// What must hold of a run that was killed and went on: nothing is lost, doubled, stuck or invalid.

import assert from 'node:assert/strict';

/** `facts`: what `goOn` returned. `lines`: what the run noted, before and after the kill. */
export function checkRun({ errors, stored, outcome, messages, calls, left }, lines, persistence) {
  assert.deepEqual(errors, [], 'what the kill left makes an invalid request');
  if (persistence === 'run') assert.ok([0, 4].includes(stored.length), 'half a turn');
  if (outcome) assert.equal(outcome.status, 'finished', JSON.stringify(outcome.error));
  assert.deepEqual(messages.slice(0, stored.length).map((message) => message.id), stored.map((message) => message.id));
  assert.deepEqual(messages.map(({ role }) => role), ['user', 'assistant', 'assistant', 'assistant']);
  assert.deepEqual(calls.map(({ callId }) => callId).sort(), ['a', 'b', 'c']);
  assert.ok(calls.every(({ status, result }) => ['ok', 'interrupted'].includes(status) && result), JSON.stringify(calls));
  const ran = lines.filter((line) => line.startsWith('tool'));
  assert.equal(new Set(ran).size, ran.length, 'a tool ran twice');
  for (const call of calls.filter(({ status }) => status === 'ok')) assert.ok(ran.includes(`tool ${call.id}`), `${call.name} has a result and never ran`);
  const asked = lines.filter((line) => line.startsWith('model'));
  assert.deepEqual([...new Set(asked)], ['model 0', 'model 1', 'model 2'], 'an answer was asked for out of its order');
  assert.ok(asked.length <= 4, `the model was asked ${asked.length} times`);
  assert.equal(left, 0);
}
