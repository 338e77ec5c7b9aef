// Tables of the measurements and their targets.

import { GROWTH_MOST, PEER_LEAST, SIZES } from './service-deltas.js';
import { cell, ms, ratio, ratioCell, table, verdict } from './table.mjs';

const KB = 1024;
const CELLS = 'cells: median / min';

export function reportSizes(rows) {
  const kb = (bytes) => (bytes / KB).toFixed(1);
  table(
    'Size (KB)',
    ['file', 'raw', 'gzip -9', 'brotli 11'],
    rows.map(({ file, raw, gzip, brotli }) => [file, kb(raw), kb(gzip), kb(brotli)]),
  );
}

const W1_MOST = { 1000: 0.3, 10000: 0.15 };
const REQUEST_MOST = 0.2;

export function reportW1(where, { empty, rows }, sizeOf) {
  console.log(
    '\nF0: the finished body copied. F1: JSON.stringify of the ready array, encoded. F2: plain JavaScript, every message encoded once, joined.',
  );
  for (const dialect of [...new Set(rows.map((row) => row.dialect))]) {
    const own = rows.filter((row) => row.dialect === dialect);
    table(
      `W1, ${where}, ${dialect}: the next body (ms, ${CELLS})`,
      [
        'messages',
        'body bytes',
        'F0 copy',
        'F1 stringify',
        'F2 plain JS',
        'render',
        'after a turn',
        'F1 after it',
        'cold render',
        'append all',
      ],
      own.map(({ messages, bodyBytes, times: t }) => [
        messages,
        bodyBytes,
        cell(t.F0),
        cell(t.F1),
        cell(t.F2),
        cell(t.render),
        cell(t.afterTurn),
        cell(t.F1AfterTurn),
        cell(t.cold),
        cell(t.append),
      ]),
    );
    table(
      `  as ratios (${CELLS})`,
      [
        'messages',
        'render : F1',
        'target',
        'after a turn : F1',
        'target',
        'render : F2',
        'render : copy',
        'cold : F1',
        ...(own[0].times.requestF1 ? ['Request of render : of F1', 'target'] : []),
      ],
      own.map((row) => {
        const { times: t } = row;
        const most = W1_MOST[sizeOf(row)];
        const [warm, after, handed] = [
          ratio(t.render, t.F1),
          ratio(t.afterTurn, t.F1AfterTurn),
          ratio(t.requestRender, t.requestF1),
        ];
        return [
          row.messages,
          ratioCell(warm),
          verdict(warm, most),
          ratioCell(after),
          verdict(after, most),
          ratioCell(ratio(t.render, t.F2)),
          ratioCell(ratio(t.render, t.F0)),
          ratioCell(ratio(t.cold, t.F1)),
          ...(handed ? [ratioCell(handed), verdict(handed, REQUEST_MOST)] : []),
        ];
      }),
    );
  }
  console.log(`\n${where}: a render of an empty session (the way into the wasm and back): ${cell(empty)} ms`);
}

const APPEND_MOST = 1.2;
const FLAT_MOST = 1.15;
const BYTES_MOST = 1.5;

export function reportW2({ relaxed, strict, whole, runs, stored }, sizes) {
  for (const [durability, t] of Object.entries({ relaxed, strict })) {
    table(
      `W2, Chromium, IndexedDB ${durability}: one turn of 5 messages appended (ms, ${CELLS})`,
      [
        'messages',
        'rethread',
        'raw 6 byte records',
        'raw 1 record + head',
        'raw, our own shape',
        ...(durability === 'relaxed' ? ['whole rewritten', 'Dexie', 'TanStack'] : []),
      ],
      sizes.map((size) => [
        size,
        ...['rethread', 'six', 'one', 'same'].map((name) => cell(t[`${name} ${size}`])),
        ...(durability === 'relaxed'
          ? ['whole', 'Dexie', 'TanStack'].map((name) => cell(whole[`${name} ${size}`]))
          : []),
      ]),
    );
    table(
      `  as ratios (${CELLS})`,
      [
        'messages',
        'rethread : 6 records',
        'target',
        'rethread : 1 + head',
        'rethread : our own shape',
        ...(durability === 'relaxed' ? ['whole : rethread'] : []),
      ],
      sizes.map((size) => {
        const own = t[`rethread ${size}`];
        const floor = ratio(own, t[`six ${size}`]);
        return [
          size,
          ratioCell(floor),
          verdict(floor, APPEND_MOST),
          ratioCell(ratio(own, t[`one ${size}`])),
          ratioCell(ratio(own, t[`same ${size}`])),
          ...(durability === 'relaxed' ? [ratioCell(ratio(whole[`whole ${size}`], own))] : []),
        ];
      }),
    );
    const flat = ratio(t[`rethread ${sizes.at(-1)}`], t[`rethread ${sizes[0]}`]);
    console.log(
      `flat, ${sizes.at(-1)} : ${sizes[0]} messages: ${ratioCell(flat)}, ${verdict(flat, FLAT_MOST)}; the floor's own: ${ratioCell(ratio(t[`six ${sizes.at(-1)}`], t[`six ${sizes[0]}`]))}`,
    );
  }
  const sum = stored.log + stored.audit + stored.head;
  const bytes = { median: sum / stored.wire, min: sum / stored.wire };
  console.log(
    `\nbytes of one append: log ${stored.log} + audit ${stored.audit} + head ${stored.head} = ${sum}, of ${stored.wire} on the wire: ${ratioCell(bytes)}, ${verdict(bytes, BYTES_MOST)}`,
  );
  table(
    `A whole run of one turn, every effect answered on the spot (ms, ${CELLS})`,
    ['messages', 'run, IndexedDB', 'append, IndexedDB', 'run : append', 'run, memory', 'append, memory'],
    sizes.map((size) => {
      const [run, append] = [runs[`run indexeddb ${size}`], runs[`append indexeddb ${size}`]];
      return [
        size,
        cell(run),
        cell(append),
        ratioCell(ratio(run, append)),
        cell(runs[`run memory ${size}`]),
        cell(runs[`append memory ${size}`]),
      ];
    }),
  );
}

const BLOB_MOST = { 10000: 2.5 };
const DEXIE_MOST = 1;
const NEWEST_MOST = 15;

export function reportW3(rows) {
  table(
    `W3, Chromium: cold open and first body, one way in a fresh page, with the load of the wasm (ms, ${CELLS})`,
    [
      'messages',
      'rethread',
      'of it wasm',
      'of it store',
      'of it session',
      'of it render',
      'newest 50',
      'all in one record',
      'raw objects + JSON',
      'raw byte rows',
      'raw turn rows',
      'raw blob',
      'Dexie',
      'TanStack',
    ],
    rows.map(({ size, times: t }) => [
      size,
      ...[
        'rethread',
        'rethread init',
        'rethread store',
        'rethread session',
        'rethread render',
        'newest',
        'oneRecord',
        'objects',
        'rows',
        'turns',
        'blob',
        'Dexie',
        'TanStack',
      ].map((name) => cell(t[name])),
    ]),
  );
  table(
    `  as ratios (${CELLS})`,
    [
      'messages',
      'rethread : blob',
      'target',
      'rethread : Dexie',
      'target',
      'rethread : TanStack',
      'newest 50',
      'target (ms)',
      'rethread : objects',
      'rethread : turn rows',
      'one record : blob',
    ],
    rows.map(({ size, times: t }) => {
      const [blob, dexie, tanstack] = [
        ratio(t.rethread, t.blob),
        ratio(t.rethread, t.Dexie),
        ratio(t.rethread, t.TanStack),
      ];
      return [
        size,
        ratioCell(blob),
        verdict(blob, BLOB_MOST[size]),
        dexie ? ratioCell(dexie) : '',
        dexie && size >= 1000 ? verdict(dexie, DEXIE_MOST) : '',
        tanstack ? ratioCell(tanstack) : '',
        cell(t.newest),
        verdict(t.newest, NEWEST_MOST),
        ratioCell(ratio(t.rethread, t.objects)),
        ratioCell(ratio(t.rethread, t.turns)),
        ratioCell(ratio(t.oneRecord, t.blob)),
      ];
    }),
  );
}

export function reportW4(where, rows) {
  const speed = (bytes, one) => `${(bytes / 1e3 / one.median).toFixed(0)} / ${(bytes / 1e3 / one.min).toFixed(0)}`;
  table(
    `W4, ${where}: a whole body, bytes to bytes (MB/s, median / best)`,
    ['dialect', 'messages', 'MB', 'validate', 'repair, valid', 'repair, broken', 'convert', 'JSON.parse + stringify'],
    rows.map(({ dialect, count, bytes, badBytes, times: t }) => [
      dialect,
      count,
      (bytes / 1e6).toFixed(2),
      speed(bytes, t.validate),
      speed(bytes, t.repairGood),
      speed(badBytes, t.repairBad),
      speed(bytes, t.convert),
      speed(bytes, t.json),
    ]),
  );
}

/** Prints one case as soon as it is done: all cases take minutes. */
export function reportGrowth({ name, size, one, two, ratio: grown, most, met }) {
  console.log(
    `${met ? 'met    ' : 'NOT MET'}  ${grown.toFixed(2).padStart(5)} (<= ${most})  ${name}: ${ms(one)} ms of ${size}, ${ms(two)} ms of ${size * 2}`,
  );
}

export function reportBodies({ name, reference, took, times, grown, met }) {
  const factor = `${times.toFixed(1).padStart(6)} times JSON, ${grown.toFixed(1)} a doubling`;
  console.log(
    `${met ? 'met    ' : 'NOT MET'}  ${factor}  ${name}: ${took.map(ms).join(', ')} ms; JSON ${reference.map(ms).join(', ')} ms`,
  );
}

/** Prints the deltas of R32. The peer's work is divided by rethread's of the same number of turns. */
export function reportR32(rows) {
  const [small, large] = SIZES;
  const own = (name) =>
    rows.find(
      (row) =>
        row.name ===
        (/resumed/.test(name)
          ? 'rethread: opened again, the next request'
          : 'rethread: the next request after each turn'),
    );
  table(
    'R32, Node: deltas of a conversation that a service keeps (ms in all, the shortest run)',
    ['', `${small} turns`, `${large} turns`, 'ratio', 'target', `peer : rethread, ${small}`, `${large}`, 'target'],
    rows.map(({ name, times }) => {
      const grown = times[large] / times[small];
      const isPeer = name.startsWith('peer');
      const gains = SIZES.map((size) => times[size] / own(name).times[size]);
      return [
        name,
        ms(times[small]),
        ms(times[large]),
        grown.toFixed(2),
        isPeer ? '' : `<= ${GROWTH_MOST}: ${grown <= GROWTH_MOST ? 'met' : 'not met'}`,
        ...(isPeer
          ? [
              ...gains.map((gain) => gain.toFixed(2)),
              `>= ${PEER_LEAST}: ${Math.min(...gains) >= PEER_LEAST ? 'met' : 'not met'}`,
            ]
          : []),
      ];
    }),
  );
  if (rows.length < 6) console.log('a peer is not installed (npm ci in benches/, PEER_PYTHON): its rows are missing');
}

/** What the list and a search may take, in milliseconds. */
const SEARCH_MOST = 50;
const LIST_MOST = 10;

/** The floor of the table: the heads read by one request of IndexedDB. */
const HEADS_FLOOR = 'floor: getAll of the heads';

export function reportSearch(rows) {
  for (const { count, times, found, bytes } of rows) {
    const floor = times[HEADS_FLOOR];
    const hits = Object.entries(found).map(([label, number]) => `${label} ${number}`);
    table(
      `Search, Chromium, IndexedDB: ${count} sessions, heads of ${(bytes / KB).toFixed(0)} KB; hits: ${hits.join(', ')} (ms, ${CELLS})`,
      ['', 'time', 'as a ratio to the floor', 'target'],
      Object.entries(times).map(([label, t]) => [
        label,
        cell(t),
        ratioCell(ratio(t, floor)),
        label === HEADS_FLOOR ? '' : `${label.startsWith('list') ? LIST_MOST : SEARCH_MOST} ms`,
      ]),
    );
  }
}
