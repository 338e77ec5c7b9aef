const emptySession = () => ({ revision: 0, head: null, channel: null, records: new Map(), operations: new Map() });
const place = ({ table, key }) => `${table}/${key}`;

export class MemoryLogStore {
  stored = new Map();

  capabilities() {
    return { compareAndAppend: true, atomicBatch: true, readYourWrites: true, maxValueBytes: Infinity, durable: false };
  }

  head(id) {
    const session = this.stored.get(id);
    return session?.head ? { revision: session.revision, value: session.head } : null;
  }

  append(id, expectedRevision, batch, operation) {
    const session = this.stored.get(id) ?? emptySession();
    if (session.operations.has(operation)) return { revision: session.operations.get(operation) };
    if (session.revision !== expectedRevision) return { conflict: session.revision };
    const removed = new Set(batch.remove.map(place));
    const isTaken = (record) => !record.replace && session.records.has(place(record)) && !removed.has(place(record));
    if (batch.put.some(isTaken)) return { occupied: true };

    for (const removedPlace of removed) session.records.delete(removedPlace);
    for (const record of batch.put) session.records.set(place(record), record);
    session.head = batch.head;
    session.channel = batch.channel;
    session.revision = Math.max(expectedRevision + 1, batch.atLeast);
    session.operations.set(operation, session.revision);
    if (session.operations.size > 16) session.operations.delete(session.operations.keys().next().value);
    this.stored.set(id, session);
    return { revision: session.revision };
  }

  read(id, { table, from, to, reverse, limitBytes }) {
    const records = this.rows(id, table).filter(({ key, lastKey = key }) => key <= to && lastKey >= from);
    if (reverse) records.reverse();
    let bytes = 0;
    const last = records.findIndex(({ value }) => (bytes += value.length) >= limitBytes);
    return last < 0 ? records : records.slice(0, last + 1);
  }

  sessions({ cursor, limit, channel }) {
    const isListed = (id) => {
      const session = this.stored.get(id);
      return session.head && (cursor === null || id > cursor) && (channel === undefined || channel === session.channel);
    };
    const ids = [...this.stored.keys()].filter(isListed).sort();
    const items = ids
      .slice(0, limit)
      .map((id) => ({ id, revision: this.stored.get(id).revision, head: this.stored.get(id).head }));
    return { items, cursor: ids.length > limit ? ids[limit - 1] : null };
  }

  invocations({ cursor, limit, session, since = 0, until = Infinity, ...names }) {
    const [afterSession, afterKey] = cursor === undefined ? ['', -1] : JSON.parse(cursor);
    const isFound = ({ session: id, key, index }) =>
      index &&
      (session === undefined || session === id) &&
      index.at >= since &&
      index.at <= until &&
      ['tool', 'status', 'channel'].every((name) => names[name] === undefined || names[name] === index[name]) &&
      (id > afterSession || (id === afterSession && key > afterKey));
    const rows = [...this.stored.keys()]
      .sort()
      .flatMap((id) => this.rows(id, 'tool_invocations').map((record) => ({ ...record, session: id })))
      .filter(isFound);
    const items = rows.slice(0, limit);
    return { items, cursor: rows.length > limit ? JSON.stringify([items.at(-1).session, items.at(-1).key]) : null };
  }

  deleteSession(id) {
    const session = this.stored.get(id);
    if (!session?.head) return;
    this.stored.set(id, { ...emptySession(), revision: session.revision + 1, operations: session.operations });
  }

  /** The records of a table, in the order of their keys. */
  rows(id, table) {
    const records = [...(this.stored.get(id)?.records.values() ?? [])];
    return records.filter((record) => record.table === table).sort((one, other) => one.key - other.key);
  }
}
