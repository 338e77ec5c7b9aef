// The generated part of docs/yardstick.md.

import { readFileSync, writeFileSync } from 'node:fs';
import { DIALECTS } from './pages.mjs';
import { OUTCOMES } from './judge.mjs';

const page = new URL('../../docs/yardstick.md', import.meta.url);
const BEGIN = '<!-- begin: npm run yardstick -->';
const END = '<!-- end: npm run yardstick -->';
const SHOWN = { right: 'right', drops: '_drops_', throws: '_throws_', 'passes broken': '**broken**', 'n/a': '–' };

const row = (cells) => `| ${cells.join(' | ')} |`;
const table = (head, rows) => [row(head), row(head.map(() => '---')), ...rows.map(row)].join('\n');

const count = (results, wanted) => results.filter(({ outcome }) => outcome === wanted).length;

function summary(columns) {
  const rows = columns.map(({ peer, results }) => {
    const all = [...results.values()];
    return [`\`${peer.name}\``, ...[...OUTCOMES, 'n/a'].map((outcome) => String(count(all, outcome)))];
  });
  return table(['', 'right', 'drops', 'throws', 'passes broken', 'n/a'], rows);
}

/** The packages of a library, and how it is used. */
function libraries(columns) {
  const rows = columns.map(({ peer, results }) => {
    const packages = Object.entries(peer.npm ?? peer.pip ?? {}).map(
      ([name, version]) => `${name}${version ? ` ${version}` : ''}`,
    );
    const ran = [...results.values()].filter(({ tools }) => tools).length;
    const again = ran ? ` In ${ran} of the vectors it ran the tool of an open call of the history.` : '';
    return [`\`${peer.name}\``, packages.join(', ') || 'this working tree', `${peer.how.join(' ')}${again}`];
  });
  return table(['', 'packages', 'how it is used'], rows);
}

const reasonOf = ({ detail }) => detail.replace(/^(only a body can say it).*/, '$1');

function notExpressed(columns) {
  const rows = columns.flatMap(({ peer, results }) => {
    const reasons = new Map();
    for (const result of results.values())
      if (result.outcome === 'n/a') reasons.set(reasonOf(result), (reasons.get(reasonOf(result)) ?? 0) + 1);
    return [...reasons].map(([reason, times]) => [`\`${peer.name}\``, String(times), reason]);
  });
  return table(['', 'vectors', 'why it is n/a'], rows);
}

/** How many vectors of a row each library does right where this one does, and which it does better. */
function comparison(columns) {
  const own = columns.find(({ peer }) => peer.name === 'rethread').results;
  const better = [];
  const rows = columns
    .filter(({ results }) => results !== own)
    .map(({ peer, results }) => {
      const measured = [...results].filter(([, { outcome }]) => outcome !== 'n/a');
      const equal = measured.filter(([id, { outcome }]) => outcome === 'right' && own.get(id).outcome === 'right');
      for (const [id, { outcome }] of measured)
        if (outcome === 'right' && own.get(id).outcome !== 'right')
          better.push(`- \`${peer.name}\`: \`${id}\`, where rethread ${own.get(id).outcome}`);
      return [`\`${peer.name}\``, String(measured.length), String(equal.length)];
    });
  const list = better.length ? better.join('\n') : 'In no vector is another library right and rethread not.';
  return `${table(['', 'vectors that it can express', 'right, as rethread is'], rows)}\n\n${list}`;
}

const shownAs = ({ outcome, tools }) => `${SHOWN[outcome]}${tools && outcome === 'right' ? ' †' : ''}`;

function dialectTable(dialect, vectors, columns) {
  const shown = vectors.filter((vector) => vector.dialect === dialect && !isOwnAlone(vector, columns));
  const rows = shown.map(({ id, provider }) => [
    `\`${id.slice(dialect.length + 1)}\`${provider.unconfirmed ? ' ‡' : ''}`,
    ...columns.map(({ results }) => shownAs(results.get(id))),
  ]);
  return `### ${dialect}\n\n${table(['vector', ...columns.map(({ peer }) => `\`${peer.name}\``)], rows)}`;
}

/** True for vectors that no other library can express. */
const isOwnAlone = ({ id }, columns) =>
  columns.every(({ peer, results }) => peer.name === 'rethread' || results.get(id).outcome === 'n/a');

function bodiesAlone(vectors, columns) {
  const own = columns.find(({ peer }) => peer.name === 'rethread').results;
  const alone = vectors.filter((vector) => isOwnAlone(vector, columns));
  const right = alone.filter(({ id }) => own.get(id).outcome === 'right').length;
  const unjudged = alone.filter(({ id }) => own.get(id).outcome === 'n/a').map(({ id }) => `\`${id}\``);
  const judged = `${alone.length} more vectors are in no table: no other library has types for them, or the judge has no rule. rethread does ${right} of them right.`;
  return unjudged.length ? `${judged}\nNot judged: ${unjudged.join(', ')}.` : judged;
}

/** Replaces the generated part of the page. */
export function writeTable(vectors, columns, date) {
  const text = readFileSync(page, 'utf8');
  const [before, rest] = text.split(BEGIN);
  const after = rest.split(END)[1];
  const parts = [
    `Measured on ${date}, ${vectors.length} vectors, by \`npm run yardstick\`.`,
    summary(columns),
    '### Where others are right as well, or better',
    comparison(columns),
    '### How each library was used',
    libraries(columns),
    '### What could not be expressed',
    notExpressed(columns),
    ...Object.keys(DIALECTS).map((dialect) => dialectTable(dialect, vectors, columns)),
    '### Bodies alone',
    bodiesAlone(vectors, columns),
  ];
  writeFileSync(page, `${before}${BEGIN}\n\n${parts.join('\n\n')}\n\n${END}${after}`);
}
