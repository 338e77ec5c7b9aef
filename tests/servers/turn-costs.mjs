// What a turn costs a store: the calls between the engine and its driver. Runs in Node, in workerd and in a page.

/** The size of bytes and texts in a value; a number counts as 8. */
function bytesOf(value) {
  if (value === null || value === undefined) return 0;
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) return value.byteLength;
  if (typeof value === 'string') return value.length;
  if (typeof value === 'object') return sum(Object.values(value).map(bytesOf));
  return 8;
}
const sum = (numbers) => numbers.reduce((all, number) => all + number, 0);

/**
 * Counts since the last `take`. `requests` are waited for: transactions, or calls of a key-value driver. `operations`
 * are statements, keys, or requests within a transaction of IndexedDB. `sent` and `received` are bytes.
 */
function counter() {
  const empty = () => ({ requests: 0, operations: 0, sent: 0, received: 0 });
  let costs = empty();
  return {
    add(more) {
      for (const [name, number] of Object.entries(more)) costs[name] += number;
    },
    take() {
      const taken = costs;
      costs = empty();
      return taken;
    },
  };
}

/** A SQL driver, counted. */
function countedSql(driver) {
  const { add, take } = counter();
  const transaction = async (statements) => {
    const results = await driver.transaction(statements);
    add({
      requests: 1,
      operations: statements.length,
      sent: bytesOf(statements.map(({ params }) => params)),
      received: bytesOf(results),
    });
    return results;
  };
  return { options: { store: { ...driver, transaction } }, take };
}

/** A key-value driver, counted. */
function countedKv(driver) {
  const { add, take } = counter();
  /** `operations` counts the keys of a call. */
  const counted = (name, operations, sent = () => 0) =>
    driver[name] && {
      async [name](...args) {
        const result = await driver[name](...args);
        add({ requests: 1, operations: operations(...args), sent: sent(...args), received: bytesOf(result) });
        return result;
      },
    };
  const store = {
    ...driver,
    ...counted('get', () => 1),
    ...counted('getMany', (keys) => keys.length),
    ...counted('list', () => 1),
    ...counted(
      'put',
      () => 1,
      (key, value) => bytesOf(value),
    ),
    ...counted('delete', () => 1),
    ...counted(
      'commit',
      (checks, writes) => checks.length + writes.length,
      (checks, writes) => bytesOf(writes.map(({ value }) => value)),
    ),
  };
  return { options: { store }, take };
}

export const counted = (driver) => (driver.transaction ? countedSql(driver) : countedKv(driver));

/** All IndexedDB databases of a page, counted. */
export function countedIndexedDb(name) {
  const { add, take } = counter();
  const patch = (Class, methods, count) => {
    for (const method of methods) {
      const original = Class.prototype[method];
      if (original)
        Class.prototype[method] = function replaced(...args) {
          return count(original.apply(this, args), args);
        };
    }
  };
  patch(IDBDatabase, ['transaction'], (transaction) => {
    add({ requests: 1 });
    return transaction;
  });
  const received = (request) => {
    request.addEventListener('success', () => {
      if (!(request.result instanceof IDBCursor)) add({ received: bytesOf(request.result) });
    });
    return request;
  };
  patch(IDBObjectStore, ['add', 'put'], (request, [value]) => {
    add({ operations: 1, sent: bytesOf(value) });
    return request;
  });
  for (const Class of [IDBObjectStore, IDBIndex]) {
    patch(
      Class,
      [
        'get',
        'getKey',
        'getAll',
        'getAllKeys',
        'getAllRecords',
        'openCursor',
        'openKeyCursor',
        'count',
        'delete',
        'clear',
      ],
      (request) => {
        add({ operations: 1 });
        return received(request);
      },
    );
  }
  return { options: { store: 'indexeddb', name }, take };
}

const MESSAGES_OF_A_TURN = 3;
/** A turn: a question, two calls with their results, an answer; three messages, two rows of the audit table, 600 bytes
 *  of text. */
const turn = (number) => [
  { role: 'user', parts: [{ type: 'text', text: `Question ${number}: what is on it? `.padEnd(100, '.') }] },
  {
    role: 'assistant',
    parts: [
      { type: 'tool', callId: `call-${number}-1`, name: 'look', arguments: { at: number }, result: 'x'.repeat(150) },
      { type: 'tool', callId: `call-${number}-2`, name: 'read', arguments: { at: number }, result: 'y'.repeat(150) },
      { type: 'text', text: 'z'.repeat(200) },
    ],
  },
];

/** So many turns before those that are measured are appended one at a time: stores remember the latest appends. */
const SINGLE = 20;
/** How many turns are measured at a length. The cheapest one counts: others do what is due once a second. */
const MEASURED = 3;

/** The costs of one more turn at each of these lengths, in messages. The turns before it are appended `turnsAtOnce`. */
export async function turnCosts(open, { options, take }, lengths, turnsAtOnce = 1) {
  const rows = [];
  const store = await open(options);
  const session = await store.session('turn costs');
  let turns = 0;
  const append = async (count) => {
    await session.append(Array.from({ length: count }, (_, at) => turn(turns + at)).flat());
    turns += count;
  };
  for (const messages of lengths) {
    for (let missing; (missing = Math.ceil(messages / MESSAGES_OF_A_TURN) - turns) > 0; )
      await append(missing > SINGLE ? Math.min(missing - SINGLE, turnsAtOnce) : 1);
    const measured = [];
    while (measured.length < MEASURED) {
      take();
      await append(1);
      measured.push(take());
    }
    const [cheapest] = measured.sort(
      (one, other) => one.requests - other.requests || one.operations - other.operations || one.sent - other.sent,
    );
    rows.push({ messages, ...cheapest });
  }
  await store.deleteSession('turn costs');
  await store.close();
  return rows;
}
