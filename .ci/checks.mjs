// Checks of the source that no compiler does. Each returns its complaints.
//
//   node .ci/checks.mjs             all except those that need a build (imports, componentImports)
//   node .ci/checks.mjs arrows ...  only these

import { readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { WORLDS } from './build.mjs';
import { cycles } from './cycles.mjs';
import { links } from './links.mjs';
import { files, output, present, read, root } from './shell.mjs';
import { matches, sources, strings } from './rust-source.mjs';
import { sentences } from './sentences.mjs';

const MAX_LINES = 600;
const MAX_COLUMNS = 120;

/** The levels of modules, lowest first. A module may use those of its own and of lower levels, except those in
 *  APART. */
const LEVELS = [
  [
    'json',
    'message',
    'tool',
    'branch_path',
    'term_filter',
    'session_head',
    'id',
    'clock',
    'error',
    'finding',
    'encoding',
    'synthetic_result',
  ],
  ['history'],
  ['replay', 'provider', 'owner', 'store'],
  ['render'],
  ['run'],
  ['session'],
  ['options'],
  ['web', 'component'],
];

const APART = {
  replay: ['store'],
  provider: ['store'],
  store: ['replay', 'provider', 'owner'],
  web: ['component'],
  component: ['web'],
};

const inModule =
  (...modules) =>
  (one) =>
    modules.includes(one.module[0]);
const not = (test) => (one) => !test(one);

/** The core must be usable without JavaScript: it depends on no JavaScript binding. */
export function dependencies() {
  const tree = output('cargo', ['tree', '--no-default-features', '-e', 'normal', '--prefix', 'none', '--locked']);
  if (tree === null) return ['cargo tree failed'];
  const names = tree.split('\n').map((line) => line.split(' ')[0]);
  return ['wasm-bindgen', 'wasm-bindgen-futures', 'js-sys', 'web-sys', 'serde-wasm-bindgen', 'wit-bindgen', 'getrandom']
    .filter((name) => names.includes(name))
    .map((name) => `the core depends on ${name}`);
}

/** JavaScript types are used in `web` alone, so that the component and native builds share the core. */
export function noJavaScript() {
  const pattern = /\b(JsValue|JsCast|wasm_bindgen\w*|js_sys|web_sys|serde_wasm_bindgen)\b/;
  return sources()
    .filter(not(inModule('web')))
    .flatMap((one) => matches(one, pattern));
}

/** The same input gives the same output: time, random numbers and hash seeds are passed in. */
export function noAmbience() {
  const adapters = (one) => inModule('web')(one) && /^(clock|id)$/.test(one.module.at(-1));
  const ambient =
    /\bSystemTime\b|\bInstant::now\b|\bgetrandom\b|\brand::|\bRandomState\b|\bDate::now\b|\bMath::random\b/;
  const seeded = /\bHash(?:Map|Set)\b/;
  return [
    ...sources()
      .filter(not(adapters))
      .flatMap((one) => matches(one, ambient)),
    // src/id.rs defines the map with a seed that the others use.
    ...sources()
      .filter(not(inModule('web', 'id')))
      .flatMap((one) => matches(one, seeded)),
  ];
}

/** The top-level modules that a source names, as {top, line}: crate::name, use crate::{name, ..} and super:: up to the
 *  root. */
function uses(one, modules, reexports) {
  const found = [];
  const add = (name, at) => {
    const top = modules.has(name) ? name : reexports.get(name);
    if (top) found.push({ top, line: one.code.slice(0, at).split('\n').length });
  };
  const heads = (tail, at) => {
    if (!tail.startsWith('{')) return add(/^\w*/.exec(tail)[0], at);
    // The first name of each member of the group.
    let depth = 0;
    let fresh = true;
    for (let i = 0; i < tail.length; i += 1) {
      const c = tail[i];
      if (c === '{') depth += 1;
      else if (c === '}') depth -= 1;
      if (depth === 0) break;
      if (c === ',' || (c === '{' && depth === 1)) fresh = depth === 1 || fresh;
      else if (fresh && depth === 1 && /\w/.test(c)) {
        add(/^\w+/.exec(tail.slice(i))[0], at);
        fresh = false;
      }
    }
  };
  for (const m of one.code.matchAll(/\bcrate::\s*/g)) heads(one.code.slice(m.index + m[0].length), m.index);
  for (const m of one.code.matchAll(/\b((?:super::\s*)+)/g)) {
    const up = m[1].match(/super/g).length;
    if (up === one.module.length) heads(one.code.slice(m.index + m[0].length), m.index);
  }
  return found;
}

/** Dependencies between top-level modules point one way, so that each can be read, tested and replaced without those
 *  above it. */
export function arrows() {
  const level = new Map(LEVELS.flatMap((names, i) => names.map((name) => [name, i])));
  const all = sources();
  const modules = new Set([...level.keys(), ...all.flatMap((one) => one.module.slice(0, 1))]);
  const complaints = [...modules]
    .filter((top) => !level.has(top))
    .map((top) => `src/${top}: add this module to LEVELS in .ci/checks.mjs`);

  const reexports = new Map();
  const lib = all.find((one) => one.module.length === 0);
  for (const m of lib?.code.matchAll(/pub use (?:crate::)?(\w+)::([^;]+);/g) ?? []) {
    for (const name of m[2].match(/\w+/g)) reexports.set(name, m[1]);
  }
  for (const one of all) {
    const [top] = one.module;
    if (!top || !level.has(top)) continue;
    for (const { top: other, line } of uses(one, modules, reexports)) {
      if (other === top || !level.has(other)) continue;
      const upward = level.get(other) > level.get(top);
      if (upward || APART[top]?.includes(other)) complaints.push(`${one.file}:${line}: ${top} must not use ${other}`);
    }
  }
  return [...complaints, ...arrowsOfWeb(all)];
}

/** In `web` as well: conversions know no host, and neither knows the classes. What lies beside these folders, and
 *  `store`, knows neither the host nor the classes. */
function arrowsOfWeb(all) {
  const above = { host: ['classes'], classes: [] };
  return all
    .filter(({ module }) => module[0] === 'web')
    .flatMap((one) => {
      const forbidden = above[one.module[1]] ?? ['host', 'classes'];
      return forbidden.flatMap((folder) => matches(one, new RegExp(`\\bweb::${folder}\\b`)));
    });
}

/** No input may end a chat: a panic in wasm ends every session of its instance. */
export function noPanic() {
  const pattern = /\.(unwrap|expect|unwrap_err|expect_err)\s*\(|\b(panic|todo|unimplemented)!/;
  return sources()
    .filter((one) => one.file !== path.join('src', 'store', 'conformance.rs'))
    .flatMap((one) => matches(one, pattern));
}

/** No comment is wider than MAX_COLUMNS; the formatters see to code. A table, an address or a type stays in a line. */
export function narrowComments() {
  return ['.ci', 'benches', 'js', 'src', 'tests', 'www']
    .flatMap((folder) => files(folder))
    .filter((file) => /\.(rs|m?js|ts)$/.test(file) && !/(^|\/)dist\//.test(file))
    .flatMap((file) =>
      read(file)
        .split('\n')
        .map((text, at) => ({ text, line: at + 1 }))
        .filter(({ text }) => text.length > MAX_COLUMNS && /^\s*(\/\/[/!]? |\*|\/\*\* )[^|`{]*$/.test(text))
        .filter(({ text }) => !/https?:/.test(text))
        .map(({ line }) => `${file}:${line}: a comment of over ${MAX_COLUMNS} columns`),
    );
}

/** No file has over MAX_LINES lines. */
export function shortFiles() {
  return [...files('src', '.rs'), ...files('js'), ...files('www'), ...files('examples')]
    .filter((file) => /\.(rs|m?js|d\.ts|ts|css|html)$/.test(file))
    .map((file) => ({ file, count: read(file).trimEnd().split('\n').length }))
    .filter(({ count }) => count > MAX_LINES)
    .map(({ file, count }) => `${file}: ${count} lines, ${MAX_LINES} at most`);
}

/** Only stores, open sessions and the bindings are asynchronous: everything else can be stepped in a test. */
export function synchronous() {
  const pattern = /\basync\s+(?:fn|move|\{)|\.await\b/;
  return sources()
    .filter(not(inModule('store', 'session', 'web', 'component')))
    .flatMap((one) => matches(one, pattern));
}

/** The wasm imports nothing but the functions of its glue. */
export function imports() {
  return ['rethread', 'stores', 'formats'].flatMap((program) => {
    const file = `dist/${program}_bg.wasm`;
    if (!present(file)) return [`${file} is missing: npm run build`];
    const list = WebAssembly.Module.imports(new WebAssembly.Module(readFileSync(path.join(root, file))));
    for (const { name, kind } of list) console.log(`  ${kind} ${name}`);
    console.log(`${file}: ${list.length} imports`);
    return list
      .filter(({ module }) => module !== `./${program}_bg.js`)
      .map(({ module, name }) => `${file} imports ${name} from ${module}`);
  });
}

/** What the components of the worlds may import, as the beginning of its name. A component that imports nothing, not
 *  even WASI, runs on every host of components. */
const MAY_IMPORT = { formats: [], engine: [], stored: ['wasi:keyvalue/'], conformance: ['wasi:keyvalue/'] };

/** The names of the imports of a component. It is a sequence of sections, each an id, a length and its content.
 *  Sections with id 10 are the imports of the component; imports of the modules inside are provided inside. */
function importsOf(bytes) {
  const names = [];
  for (let at = 8; at < bytes.length; ) {
    const id = bytes[at];
    let size = 0;
    at += 1;
    for (let shift = 0; ; shift += 7, at += 1) {
      size |= (bytes[at] & 0x7f) << shift;
      if (bytes[at] < 0x80) break;
    }
    at += 1;
    if (id === 10) names.push(...(bytes.toString('latin1', at, at + size).match(/[\w:/@.-]{4,}/g) ?? ['?']));
    at += size;
  }
  return names;
}

/** Each component imports only what its world does. */
export function componentImports() {
  return Object.entries(WORLDS).flatMap(([world, { file }]) => {
    if (!present(file)) return [`${file} is missing: npm run build`];
    const bytes = readFileSync(path.join(root, file));
    if (bytes.readUInt32LE(0) !== 0x6d736100 || bytes.readUInt16LE(6) !== 1) return [`${file} is not a component`];
    return importsOf(bytes)
      .filter((name) => !MAY_IMPORT[world].some((start) => name.startsWith(start)))
      .map((name) => `${file} imports ${name}`);
  });
}

/** The folders in src/provider that are not a dialect's. */
const SHARED_BY_DIALECTS = ['healing', 'neutral', 'request', 'rules', 'spec', 'stream'];

/** Returns a test for sources in a dialect's folder. */
function inDialects(all) {
  const folders = new Set(
    all.filter(({ module }) => module[0] === 'provider' && module.length > 2).map(({ module }) => module[1]),
  );
  return ({ module }) => module[0] === 'provider' && folders.has(module[1]) && !SHARED_BY_DIALECTS.includes(module[1]);
}

/**
 * R65: one place per dialect. A variant of `Dialect` is named where it is declared, in the registry and in the
 * dialects' own folders. What dialects share is given their `DialectSpec`: it and they know no list of dialects.
 */
export function dialects() {
  const declared = [...read('src/message/dialect.rs').matchAll(/^ {12}\d+ => (\w+) = "[\w-]+" in \w+,/gm)].map(
    (match) => match[1],
  );
  if (declared.length < 5) return ['src/message/dialect.rs: the declaration of Dialect was not found'];
  const all = sources();
  const inDialect = inDialects(all);
  const declares = (one) => ['provider/registry', 'message/dialect'].includes(one.module.join('/'));
  const variant = new RegExp(`\\bDialect::(?:${declared.join('|')})\\b`);
  const isShared = ({ module }) => module[0] === 'provider' && SHARED_BY_DIALECTS.includes(module[1]);
  return [
    ...all.filter((one) => !inDialect(one) && !declares(one)).flatMap((one) => matches(one, variant)),
    ...all
      .filter((one) => isShared(one) || inDialect(one))
      .flatMap((one) => matches(one, /\b(?:registry|by_dialect)\b|\bprovider::spec\(/)),
  ];
}

/** Names in snake case or camel case in quotes: members and values of JSON. */
const namesIn = (text) =>
  [...text.matchAll(/"([A-Za-z]\w*)\\?"/g)].map(([, name]) => name).filter((name) => /_|[a-z][A-Z]/.test(name));

/**
 * R65: no provider's vocabulary outside of the dialects' folders. A name in snake case or camel case that a dialect's
 * code quotes is quoted nowhere else, unless it is a word of the public types. `foreign_format.rs` names members of
 * SDKs; `tool_choice` is also a name of this package.
 */
export function vocabulary() {
  const all = sources();
  const inDialect = inDialects(all);
  const types = files('js')
    .filter((file) => file.endsWith('.d.ts'))
    .map(read)
    .join('\n')
    .replace(/\/\*[\s\S]*?\*\/|\/\/.*/g, '');
  const ours = new Set(['tool_choice', ...types.match(/\w+/g)]);
  const words = new Set(
    all
      .filter(inDialect)
      .flatMap(strings)
      .flatMap(({ text }) => namesIn(text)),
  );
  if (words.size < 150) return [`only ${words.size} names were found in the dialects' folders`];
  return all
    .filter((one) => !inDialect(one) && one.module.at(-1) !== 'foreign_format')
    .flatMap((one) =>
      strings(one).flatMap(({ text, line }) =>
        namesIn(text)
          .filter((name) => words.has(name) && !ours.has(name))
          .map((name) => `${one.file}:${line}: "${name}" is a dialect's word; ask its spec`),
      ),
    );
}

/** The names of Rust tests, and the titles of JavaScript tests and suites as they are written in the source. */
function testTitles() {
  const names = [...files('tests', '.rs'), ...files('src', '.rs')].flatMap((file) => [
    ...read(file).matchAll(/\bfn (\w+)/g),
  ]);
  const titles = files('tests', '.mjs').flatMap((file) => [
    ...read(file).matchAll(/\b(?:test|describe|withTimers)(?:\.\w+)?\(\s*(['"`])((?:\\.|(?!\1).)*)\1/g),
  ]);
  return {
    names: new Set(names.map(([, name]) => name)),
    titles: titles.map(([, , title]) => title.replace(/\\'/g, "'")),
  };
}

/** The rows of the contract are R1 to this one. */
const LAST_ROW = 81;

/**
 * docs/requirements.md has each row of the contract once, with a status that it explains. Every test named there
 * exists, and one of each row has the row's number in its name. `check NAME` is a check of this file. A title of
 * JavaScript may be cited in part: the rest of it may depend on the case.
 */
export function requirements() {
  const file = 'docs/requirements.md';
  const { names, titles } = testTitles();
  const exists = (test) =>
    test.startsWith('check ')
      ? Object.hasOwn(checks, test.slice('check '.length))
      : names.has(test) || titles.some((title) => title.includes(test));
  const rows = read(file)
    .split('\n')
    .map((line) => line.split('|').map((cell) => cell.trim()))
    .filter(([, row]) => /^R\d/.test(row ?? ''));
  const found = rows.map(([, row]) => row);
  const expected = Array.from({ length: LAST_ROW }, (_, at) => `R${at + 1}`);
  const missing = expected.filter((row) => found.indexOf(row) < 0 || found.indexOf(row) !== found.lastIndexOf(row));
  const complaints = missing.map((row) => `${file}: ${row} must be there once`);
  return complaints.concat(
    rows.flatMap(([, row, , status, named]) => {
      if (!/^(holds\b|partly: |not built$)/.test(status))
        return [`${file}: ${row}: its status is not holds, "partly: …" or not built`];
      const tests = [...(named ?? '').matchAll(/`([^`]+)`/g)].map((match) => match[1]);
      if (!tests.length) return status === 'not built' ? [] : [`${file}: ${row} names no test`];
      const number = new RegExp(`\\br0?${row.slice(1)}(?!\\d)`);
      const isProved = tests.some((test) => test.startsWith('check ') || number.test(test.replaceAll('_', ' ')));
      return [
        ...tests
          .filter((test) => !exists(test))
          .map((test) => `${file}: ${row} names the test ${test}, which does not exist`),
        ...(isProved ? [] : [`${file}: ${row}: no test named there has the number ${row} in its name`]),
      ];
    }),
  );
}

export const checks = {
  dependencies,
  noJavaScript,
  noAmbience,
  arrows,
  noPanic,
  narrowComments,
  shortFiles,
  synchronous,
  dialects,
  vocabulary,
  requirements,
  links,
  sentences,
  cycles,
};

/** Prints each check with its complaints; returns their number. */
export function report(chosen) {
  let count = 0;
  for (const [name, check] of Object.entries(chosen)) {
    const complaints = check();
    console.log(`${complaints.length ? 'FAIL' : 'ok'}  ${name}`);
    for (const complaint of complaints) console.log(`      ${complaint}`);
    count += complaints.length;
  }
  return count;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const all = { ...checks, imports, componentImports };
  const names = process.argv.slice(2);
  for (const name of names)
    if (!Object.hasOwn(all, name)) throw new Error(`no check ${name}: one of ${Object.keys(all).join(', ')}`);
  const count = report(names.length ? Object.fromEntries(names.map((name) => [name, all[name]])) : checks);
  process.exit(count ? 1 : 0);
}
