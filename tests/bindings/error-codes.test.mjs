// The codes of failures have one source, in Rust; the types repeat them.

import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { test } from 'node:test';

const read = (file) => readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8');
const strings = (text) => [...text.matchAll(/"([a-z_]+)"/g)].map(([, code]) => code).toSorted();
const between = (text, start, end) => text.slice(text.indexOf(start)).split(end)[0];

test('`ErrorCode` lists the codes of Rust', () => {
  const rust = strings(between(read('src/error.rs'), 'pub fn as_str(self)', '\n    }\n'));
  const types = strings(between(read('js/types/error.d.ts'), 'export type ErrorCode =', ';'));
  assert.ok(rust.length >= 21, `${rust.length} codes are read`);
  assert.deepEqual(types, rust);
});

test('the types of error details match what Rust writes', () => {
  const types = between(read('js/types/error.d.ts'), 'interface ModelErrorDetails', '\n}\nexport ');
  const named = new Set(
    [...types.matchAll(/^\s+(?:\w+: \{ )?(\w+)\?:|; (\w+)\?:/gm)].map(([, first, next]) => first ?? next),
  );
  assert.ok(named.size >= 11, [...named].join());
  const rust =
    read('src/error.rs') +
    ['src/run', 'src/store', 'src/web']
      .flatMap((folder) =>
        readdirSync(new URL(`../../${folder}`, import.meta.url), { recursive: true })
          .filter((file) => file.endsWith('.rs'))
          .map((file) => read(`${folder}/${file}`)),
      )
      .join('\n');
  for (const fact of named) assert.ok(rust.includes(`"${fact}"`), `nothing writes \`details.${fact}\``);
});
