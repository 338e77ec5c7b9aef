// What the chat costs: stored bytes by table, the largest records, and the size of the last requests.

import { bytes, clip, counted, el, failure, throttled } from './dom.js';
import { readRecords } from './stored-records.js';

const TABLES = {
  head: 'Head',
  log: 'History',
  tool_invocations: 'Audit table',
  runs: 'Journals',
  payloads: 'Payloads',
};
const LARGEST = 5;

/** Rows of a table as bars of one length scale. */
function bars(rows, caption) {
  const most = Math.max(1, ...rows.map(({ bytes: size }) => size));
  return el(
    'table.bars',
    {},
    el('caption', {}, caption),
    el(
      'tbody',
      {},
      ...rows.map(({ name, note, bytes: size }) => {
        const bar = el('i');
        bar.style.width = `${(100 * size) / most}%`;
        return el(
          'tr',
          {},
          el('th', { scope: 'row' }, name, note ? el('span.soft', {}, ` ${note}`) : ''),
          el('td.bar', { 'aria-hidden': 'true' }, bar),
          el('td.number', {}, bytes(size)),
        );
      }),
    ),
  );
}

/** What a record is about, for a person. */
function describe({ table, line }) {
  if (table === 'log') {
    const [first] = line.messages ?? [];
    const text = first?.parts?.map((part) => part.text ?? '').join(' ');
    return `${counted(line.messages?.length ?? 0, 'message')}${text ? `: ${clip(text, 50)}` : ''}`;
  }
  if (table === 'tool_invocations') return `call of ${line.index?.tool ?? 'a tool'}`;
  if (table === 'runs') return `step ${line.entry?.type ?? ''}`;
  return 'title, owner, counters';
}

export class Sizes {
  #root = el('div');
  #actions;
  #read = throttled(
    (chat) => this.#readAll(chat),
    400,
    (error) => this.#root.replaceChildren(failure(error)),
  );

  constructor(root, actions) {
    this.#actions = actions;
    root.append(this.#root);
  }

  clear() {
    this.#root.replaceChildren();
  }

  paint(chat) {
    this.#read(chat);
  }

  async #readAll(chat) {
    const [records, { usageBytes, store }, branches] = [
      await readRecords(chat),
      await this.#actions.status(),
      await chat.branches(),
    ];
    const tables = new Map();
    for (const { table, bytes: size } of records) {
      const sum = tables.get(table) ?? { count: 0, bytes: 0 };
      tables.set(table, { count: sum.count + 1, bytes: sum.bytes + size });
    }
    const total = records.reduce((sum, record) => sum + record.bytes, 0);
    const largest = [...records].sort((a, b) => b.bytes - a.bytes).slice(0, LARGEST);
    const requests = chat.requests.slice(-8);
    this.#root.replaceChildren(
      el(
        'p.soft',
        {},
        records.length
          ? `This chat: ${bytes(total)} in ${counted(records.length, 'record')}, ${counted(branches.length, 'version')}. `
          : 'Nothing of this chat is stored yet. ',
        usageBytes === null ? '' : `All of this origin in ${store}: ${bytes(usageBytes)}.`,
      ),
      ...(records.length
        ? [
            bars(
              [...tables].map(([table, { count, bytes: size }]) => ({
                name: TABLES[table] ?? table,
                note: counted(count, 'record'),
                bytes: size,
              })),
              'Stored bytes by table',
            ),
            bars(
              largest.map((record) => ({
                name: TABLES[record.table] ?? record.table,
                note: describe(record),
                bytes: record.bytes,
              })),
              'The largest records',
            ),
          ]
        : []),
      ...(requests.length
        ? [
            bars(
              requests.map(({ dialect, text, prefix }) => ({
                name: dialect,
                note: prefix?.reusedBytes ? `${bytes(prefix.reusedBytes)} repeated` : '',
                bytes: new TextEncoder().encode(text).length,
              })),
              'The last requests of this page',
            ),
          ]
        : []),
    );
  }
}
