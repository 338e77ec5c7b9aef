// What a writer acknowledged, and whether a store has it: every turn once, whole, in its writer's order.

import assert from 'node:assert/strict';

/** The turn of a writer's number: a question and its answer, every third with a call and its result. */
export function turn(writer, number) {
  const token = `${writer}:${number}`;
  const answer = [{ type: 'text', text: `answer to ${token}` }];
  if (number % 3 === 0)
    answer.unshift({
      type: 'tool',
      callId: token,
      name: 'look',
      arguments: { number },
      result: { found: 'x'.repeat(200) },
    });
  return [
    { role: 'user', parts: [{ type: 'text', text: token }] },
    { role: 'assistant', parts: answer },
  ];
}

/** All pages of a list, each after the others or, of messages, before them. */
async function pages(read, add = (items, page) => [...items, ...page]) {
  let items = [];
  let cursor;
  do {
    const page = await read({ limit: 500, ...(cursor ? { cursor } : {}) });
    items = add(items, page.items);
    cursor = page.cursor;
  } while (cursor);
  return items;
}

/** Insists that a session has every acknowledged turn, and no other than those and `doubtful` ones. Returns the number
 *  found. */
export async function checkFound(client, id, acknowledged, doubtful = []) {
  const { state, findings } = await client.status();
  assert.equal(state, 'ready', JSON.stringify(findings));
  const session = await client.session(id);
  const messages = await pages(
    (query) => session.messages(query),
    (items, earlier) => [...earlier, ...items],
  );
  const found = [];
  for (const message of messages) {
    const text = message.parts.find(({ type }) => type === 'text')?.text;
    if (message.role === 'user') found.push(text);
    else if (text) assert.equal(text, `answer to ${found.at(-1)}`, 'a turn is not whole');
  }
  assert.equal(new Set(found).size, found.length, 'a turn is there twice');
  const present = new Set(found);
  const missing = acknowledged.filter((token) => !present.has(token));
  assert.deepEqual(missing, [], `${missing.length} of ${acknowledged.length} acknowledged turns are gone`);
  const allowed = new Set([...acknowledged, ...doubtful]);
  assert.deepEqual(
    found.filter((token) => !allowed.has(token)),
    [],
    'turns that nobody appended',
  );
  const last = new Map();
  for (const token of found) {
    const [writer, number] = token.split(':');
    assert.ok(Number(number) > (last.get(writer) ?? -1), `${token} is out of order`);
    last.set(writer, Number(number));
  }
  const calls = found.filter((token) => Number(token.split(':')[1]) % 3 === 0);
  const rows = await pages((query) => client.invocations({ session: id, ...query }));
  assert.deepEqual(rows.map(({ callId }) => callId).sort(), calls.sort(), 'the audit table and the log differ');
  const { report } = await session.render({ dialect: 'openai-chat', params: { model: 'm' } });
  assert.deepEqual(
    (report ?? []).filter(({ severity }) => severity === 'error'),
    [],
  );
  return found.length;
}
