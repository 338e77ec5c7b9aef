// A store for the component's effects: sessions in memory, and a file with every write, one line each. A write is a
// line that is whole and on the disk; the file is read when it is opened, and half a line at its end is cut off.
//
// The contract of the operations is in docs/stores.md.

import { closeSync, existsSync, fsyncSync, openSync, readFileSync, truncateSync, writeSync } from 'node:fs';

/** Appends whose names a session remembers, so that one that is repeated is not written twice. */
const REMEMBERED = 16;

const asText = (value) =>
  JSON.stringify(value, (_, part) => {
    if (typeof part === 'bigint') return { big: String(part) };
    return part instanceof Uint8Array ? { bytes: Buffer.from(part).toString('base64') } : part;
  });

const asValue = (text) =>
  JSON.parse(text, (_, part) => {
    if (typeof part?.big === 'string') return BigInt(part.big);
    return typeof part?.bytes === 'string' ? new Uint8Array(Buffer.from(part.bytes, 'base64')) : part;
  });

const inOrder = (one, other) => (one.key < other.key ? -1 : 1);

export class FileStore {
  #sessions = new Map();
  #file;

  constructor(path) {
    const text = existsSync(path) ? readFileSync(path, 'utf8') : '';
    const whole = text.slice(0, text.lastIndexOf('\n') + 1);
    if (whole.length < text.length) truncateSync(path, Buffer.byteLength(whole));
    for (const line of whole.split('\n').filter(Boolean)) this.#apply(asValue(line));
    this.#file = openSync(path, 'a');
  }

  close() {
    closeSync(this.#file);
  }

  /** The values that are stored now. The file also has those that were overwritten. */
  values() {
    const stored = [...this.#sessions.values()];
    return stored.flatMap(({ head, rows }) => [
      ...(head ? [head.value] : []),
      ...[...rows.values()].map((row) => row.value),
    ]);
  }

  /** Performs an operation and returns the reply to it. */
  perform({ tag, val }) {
    switch (tag) {
      case 'head':
        return { tag: 'head', val: this.#session(val).head };
      case 'append':
        return this.#append(val);
      case 'read':
        return { tag: 'rows', val: this.#read(val) };
      case 'sessions':
        return { tag: 'sessions', val: this.#list(val) };
      case 'invocations':
        return { tag: 'invocations', val: this.#audit(val) };
      case 'delete-session':
        if (this.#session(val).head) this.#write({ deleted: val });
        return { tag: 'deleted' };
    }
  }

  #session(id) {
    return this.#sessions.get(id) ?? { revision: 0n, head: undefined, rows: new Map(), operations: [] };
  }

  #append(batch) {
    const session = this.#session(batch.session);
    const known = session.operations.find(({ operation }) => operation === batch.operation);
    if (known) return { tag: 'appended', val: known.revision };
    if (session.revision !== batch.expected) return { tag: 'conflict', val: session.revision };
    const removed = new Set(batch.remove.map((row) => row.join(':')));
    const isTaken = ({ table, key }) => session.rows.has(`${table}:${key}`) && !removed.has(`${table},${key}`);
    if (batch.put.some(isTaken)) return { tag: 'occupied' };
    const next = batch.expected + 1n;
    const revision = next > batch.atLeast ? next : batch.atLeast;
    this.#write({ batch, revision });
    return { tag: 'appended', val: revision };
  }

  /** A write is done when the disk has it. */
  #write(change) {
    writeSync(this.#file, `${asText(change)}\n`);
    fsyncSync(this.#file);
    this.#apply(change);
  }

  #apply({ batch, revision, deleted }) {
    if (deleted !== undefined) {
      const { revision: last } = this.#session(deleted);
      this.#sessions.set(deleted, { revision: last + 1n, head: undefined, rows: new Map(), operations: [] });
      return;
    }
    const session = this.#session(batch.session);
    this.#sessions.set(batch.session, session);
    for (const [table, key] of batch.remove) session.rows.delete(`${table}:${key}`);
    for (const row of [...batch.put, ...batch.replace]) session.rows.set(`${row.table}:${row.key}`, row);
    Object.assign(session, { revision, channel: batch.channel, head: { revision, value: batch.head } });
    session.operations = [...session.operations, { operation: batch.operation, revision }].slice(-REMEMBERED);
  }

  #read({ session, table, from, to, reverse, limitBytes }) {
    const overlaps = (row) => row.table === table && row.key <= to && (row.lastKey ?? row.key) >= from;
    const rows = [...this.#session(session).rows.values()].filter(overlaps).sort(inOrder);
    if (reverse) rows.reverse();
    let bytes = 0n;
    const isBefore = ({ value }) => {
      const isWanted = bytes < limitBytes;
      bytes += BigInt(value.length);
      return isWanted;
    };
    const end = rows.findIndex((row) => !isBefore(row));
    return end < 0 ? rows : rows.slice(0, Math.max(end, 1));
  }

  #list({ cursor, limit, channel }) {
    const all = [...this.#sessions].filter(([, { head }]) => head).sort(([one], [other]) => (one < other ? -1 : 1));
    const items = all
      .filter(([id, of]) => (cursor === undefined || id > cursor) && (channel === undefined || of.channel === channel))
      .map(([session, { head }]) => ({ session, head }));
    return { items: items.slice(0, limit), cursor: items.length > limit ? items[limit - 1].session : undefined };
  }

  #audit({ session, tool, status, channel, since, until, cursor, limit }) {
    const after = cursor === undefined ? [] : JSON.parse(cursor);
    const isAfter = (id, key) => !after.length || id > after[0] || (id === after[0] && key > BigInt(after[1]));
    const is = (wanted, actual) => wanted === undefined || wanted === actual;
    const isWanted = (id, { table, key, index }) =>
      table === 'tool-invocations' &&
      isAfter(id, key) &&
      is(session, id) &&
      is(tool, index.tool) &&
      is(status, index.status) &&
      is(channel, index.channel) &&
      (since === undefined || index.at >= since) &&
      (until === undefined || index.at <= until);
    const ids = [...this.#sessions.keys()].sort();
    const rowsOf = (id) => [...this.#session(id).rows.values()].filter((row) => isWanted(id, row)).sort(inOrder);
    const items = ids.flatMap((id) => rowsOf(id).map((row) => ({ session: id, row })));
    const last = items[limit - 1];
    return {
      items: items.slice(0, limit),
      cursor: items.length > limit ? JSON.stringify([last.session, String(last.row.key)]) : undefined,
    };
  }
}
