// r46: rethread/testing, the conformance suite, on a store of JavaScript, and on ones with a bug each.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { conformance } from 'rethread/testing';
import { MemoryLogStore } from '../packaging/projects/store/memory-log-store.js';

describe('r46 a store in JavaScript conforms', () => {
  const store = new MemoryLogStore();
  const cases = conformance(() => Promise.resolve(store));
  assert.ok(cases.length >= 24, `only ${cases.length} cases`);
  for (const { name, run } of cases) test(name, run);
});

const original = MemoryLogStore.prototype;

/** Methods with one bug each, by what is wrong. */
const BUGS = {
  'the expected revision is not compared': {
    append(id, expected, ...rest) {
      return original.append.call(this, id, this.stored.get(id)?.revision ?? 0, ...rest);
    },
  },
  'a record is written before the revision is compared': {
    append(id, expected, batch, operation) {
      const { records } = this.stored.get(id) ?? {};
      if (records)
        for (const record of batch.put) if (!record.replace) records.set(`${record.table}/${record.key}`, record);
      return original.append.call(
        this,
        id,
        expected,
        { ...batch, put: batch.put.map((record) => ({ ...record, replace: true })) },
        operation,
      );
    },
  },
  'operations are not remembered': {
    append(id, expected, batch) {
      return original.append.call(this, id, expected, batch, `${Math.random()}`);
    },
  },
  'a record is overwritten': {
    append(id, expected, batch, operation) {
      return original.append.call(
        this,
        id,
        expected,
        { ...batch, put: batch.put.map((record) => ({ ...record, replace: true })) },
        operation,
      );
    },
  },
  'removed records stay': {
    append(id, expected, batch, operation) {
      return original.append.call(this, id, expected, { ...batch, remove: [] }, operation);
    },
  },
  '`atLeast` is ignored': {
    append(id, expected, batch, operation) {
      return original.append.call(this, id, expected, { ...batch, atLeast: 0 }, operation);
    },
  },
  'a deletion leaves no tombstone': {
    deleteSession(id) {
      this.stored.delete(id);
    },
  },
  'a deletion leaves the records': {
    deleteSession(id) {
      const session = this.stored.get(id);
      if (session?.head) Object.assign(session, { head: null, revision: session.revision + 1 });
    },
  },
  'segments are found by their first key only': {
    read(id, query) {
      return original.read.call(this, id, query).filter(({ key }) => key >= query.from);
    },
  },
  'the size of a page is ignored': {
    read(id, query) {
      return original.read.call(this, id, { ...query, limitBytes: Infinity });
    },
  },
  'the order is never reversed': {
    read(id, query) {
      return original.read.call(this, id, { ...query, reverse: false });
    },
  },
  'ids are compared without case': Object.fromEntries(
    ['head', 'append', 'read', 'deleteSession'].map((name) => [
      name,
      function (id, ...rest) {
        return original[name].call(this, id.toLowerCase(), ...rest);
      },
    ]),
  ),
  'the channel of the list is ignored': {
    sessions({ channel, ...query }) {
      return original.sessions.call(this, query);
    },
  },
  'the list has one page only': {
    sessions(query) {
      return { ...original.sessions.call(this, query), cursor: null };
    },
  },
  'rows are found by times that are exclusive': {
    invocations({ until = Infinity, ...query }) {
      return original.invocations.call(this, { ...query, until: until - 1 });
    },
  },
  'a page of rows begins again': {
    invocations({ cursor, ...query }) {
      return original.invocations.call(this, query);
    },
  },
  'a revision is text': {
    head(id) {
      const head = original.head.call(this, id);
      return head && { ...head, revision: `${head.revision}` };
    },
  },
  'bytes lose their first bit': {
    read(id, query) {
      return original.read
        .call(this, id, query)
        .map((record) => ({ ...record, value: record.value.map((byte) => byte & 127) }));
    },
  },
};

/** The sentences of the cases that fail. */
async function failures(openStore) {
  const sentences = [];
  for (const { name, run } of conformance(openStore)) {
    await run().catch((error) => {
      assert.equal(error.name, 'RethreadError', `${name}: ${error.stack}`);
      sentences.push(`${name}: ${error.message}`);
    });
  }
  return sentences;
}

describe('the suite detects', () => {
  for (const [bug, methods] of Object.entries(BUGS)) {
    test(bug, async (context) => {
      const store = Object.assign(new MemoryLogStore(), methods);
      const sentences = await failures(() => store);
      assert.notEqual(sentences.length, 0, 'no case failed');
      context.diagnostic(`${sentences.length} cases, the first: ${sentences[0].slice(0, 200)}`);
    });
  }

  test('a durable store whose handles do not share their data', async () => {
    const isolated = () =>
      Object.assign(new MemoryLogStore(), { capabilities: () => ({ ...original.capabilities(), durable: true }) });
    assert.notEqual((await failures(isolated)).length, 0);
  });

  test('a store that cannot be opened', async () => {
    const [first, ...others] = conformance(() => {
      throw new Error('no such server');
    });
    await assert.rejects(first.run(), { code: 'store_error', message: /no such server/ });
    assert.ok(others.length);
    for (const wrong of [undefined, 7, new MemoryLogStore()])
      assert.throws(() => conformance(wrong), { code: 'config_invalid' });
  });
});
