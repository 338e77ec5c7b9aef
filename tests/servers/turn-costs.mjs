// What a turn costs on each SQL store: transactions, statements and bytes, at 100 and at 10,000 messages.
//
//   node tests/servers/turn-costs.mjs [messages …]     a table; POSTGRES_BIN names the programs of PostgreSQL

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { open } from 'rethread';

const bytesOf = (value) => {
  if (value instanceof Uint8Array || value instanceof ArrayBuffer) return value.byteLength;
  return typeof value === 'string' ? value.length : 8;
};
const sum = (numbers) => numbers.reduce((all, number) => all + number, 0);

/** A driver that counts what passes through it, until `take` is called. */
function counted(driver) {
  let costs;
  const take = () => {
    const taken = costs;
    costs = { transactions: 0, statements: 0, sent: 0, received: 0 };
    return taken;
  };
  take();
  const transaction = async (statements) => {
    const results = await driver.transaction(statements);
    costs.transactions += 1;
    costs.statements += statements.length;
    costs.sent += sum(statements.map(({ params }) => sum(params.map(bytesOf))));
    costs.received += sum(results.flat().map((row) => sum(Object.values(row).map(bytesOf))));
    return results;
  };
  return { driver: { ...driver, transaction }, take };
}

/** A turn: a question, two calls with their results, an answer; three messages, two rows of the audit table, 1 KB of text. */
const turn = (number) => [
  { role: 'user', parts: [{ type: 'text', text: `Question ${number}: what is on it? `.padEnd(200, '.') }] },
  { role: 'assistant', parts: [
    { type: 'tool', callId: `call-${number}-1`, name: 'look', arguments: { at: number }, result: 'x'.repeat(300) },
    { type: 'tool', callId: `call-${number}-2`, name: 'read', arguments: { at: number }, result: 'y'.repeat(300) },
    { type: 'text', text: 'z'.repeat(200) },
  ] },
];

/** The costs of one more turn, and of opening the session, at each of these lengths. */
export async function turnCosts(driver, lengths) {
  const { driver: counting, take } = counted(driver);
  const rows = [];
  const store = await open({ store: counting });
  const session = await store.session('s');
  let turns = 0;
  for (const length of lengths) {
    for (; turns * 3 < length; turns += 1) await session.append(turn(turns));
    take();
    await session.append(turn(turns));
    turns += 1;
    const append = take();
    const second = await open({ store: counting });
    take();
    await second.session('s');
    rows.push({ messages: turns * 3, append, load: take() });
  }
  await store.close();
  return rows;
}

async function main(lengths) {
  const [{ openDriver }, { startPostgres }] = await Promise.all([import('./drivers.mjs'), import('./postgres-server.mjs')]);
  const folder = mkdtempSync(path.join(tmpdir(), 'rethread-costs-'));
  const server = await startPostgres();
  const kb = (bytes) => `${(bytes / 1024).toFixed(1)} KB`;
  console.log('| store | messages | a turn: transactions | statements | sent | received | opening: transactions | received |\n|---|---|---|---|---|---|---|---|');
  for (const store of ['node:sqlite', '@libsql/client', 'pg Pool']) {
    const place = store === 'pg Pool' ? JSON.stringify(server.place) : path.join(folder, `${store.replace(/\W/g, '-')}.sqlite`);
    const { driver, end } = await openDriver(store, place);
    for (const { messages, append, load } of await turnCosts(driver, lengths)) {
      console.log(`| ${[store, messages, append.transactions, append.statements, kb(append.sent), kb(append.received), load.transactions, kb(load.received)].join(' | ')} |`);
    }
    await end();
  }
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main(process.argv.length > 2 ? process.argv.slice(2).map(Number) : [100, 10_000]);
