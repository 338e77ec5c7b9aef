// Reads Rust sources for checks. Comments, strings and test code are replaced by spaces, so that line numbers are
// unchanged.

import path from 'node:path';
import { files, read } from './shell.mjs';

const blank = (text) => text.replace(/[^\n]/g, ' ');

const TOKEN = new RegExp(
  [
    String.raw`\/\/[^\n]*`,
    String.raw`b?r(#*)"[\s\S]*?"\1`, // raw strings end at a quote with as many hashes
    String.raw`[bc]?"(?:\\[\s\S]|[^"\\])*"`,
    String.raw`b?'(?:\\(?:x[0-9a-fA-F]{2}|u\{[^}]*\}|.)|[^'\\\n])'`, // a char; a lifetime has no closing quote
    String.raw`\/\*`,
  ].join('|'),
  'g',
);

/** The source with every comment, string and char replaced by spaces. */
export function code(source) {
  let out = '';
  let at = 0;
  TOKEN.lastIndex = 0;
  for (let m; (m = TOKEN.exec(source)); ) {
    let end = TOKEN.lastIndex;
    // Block comments nest.
    if (m[0] === '/*') {
      let depth = 1;
      while (depth && end < source.length) {
        const step = source.startsWith('/*', end) ? 1 : source.startsWith('*/', end) ? -1 : 0;
        depth += step;
        end += step ? 2 : 1;
      }
    }
    out += source.slice(at, m.index) + blank(source.slice(m.index, end));
    at = end;
    TOKEN.lastIndex = end;
  }
  return out + source.slice(at);
}

const TEST_ITEM = /#\[(?:cfg\((?:test|all\(test\b[^\]]*)\)|test|wasm_bindgen_test)\]/g;

/** Blanks items under #[cfg(test)] and #[test]. `ranges` are their positions, `mods` the modules whose files are test
 *  code. */
export function withoutTests(text) {
  const mods = [];
  const ranges = [];
  let out = text;
  TEST_ITEM.lastIndex = 0;
  for (let m; (m = TEST_ITEM.exec(out)); ) {
    let end = TEST_ITEM.lastIndex;
    let depth = 0;
    for (; end < out.length; end += 1) {
      const c = out[end];
      if (c === '{' || c === '(' || c === '[') depth += 1;
      else if (c === '}' || c === ')' || c === ']') {
        depth -= 1;
        if (depth === 0 && c === '}') break;
      } else if (c === ';' && depth === 0) break;
    }
    const item = out.slice(m.index, end + 1);
    const mod = /\bmod\s+(\w+)\s*;$/.exec(item);
    if (mod) mods.push(mod[1]);
    ranges.push([m.index, end]);
    out = out.slice(0, m.index) + blank(item) + out.slice(end + 1);
  }
  return { text: out, mods, ranges };
}

/** src/a/b.rs -> [a, b]; src/a/mod.rs -> [a]; src/lib.rs -> []. */
export const modulePath = (file) =>
  path
    .relative('src', file)
    .replace(/\.rs$/, '')
    .split(path.sep)
    .filter((part, i, all) => !(i === all.length - 1 && (part === 'mod' || part === 'lib')));

/** Every file below src that is not test code: {file, module, source, lines, code, tests}. `lines` are unchanged,
 *  `tests` are positions of test code. */
export function sources() {
  const all = files('src', '.rs').map((file) => {
    const source = read(file);
    const { text, mods, ranges } = withoutTests(code(source));
    return { file, module: modulePath(file), source, lines: source.split('\n'), code: text, mods, tests: ranges };
  });
  const tests = all.flatMap((one) => one.mods.map((mod) => [...one.module, mod].join('/')));
  const isTest = (one) => tests.some((test) => `${one.module.join('/')}/`.startsWith(`${test}/`));
  return all.filter((one) => !isTest(one));
}

/** The string literals of a source outside of comments and test code, as {text, line}. */
export function strings({ source, tests }) {
  const isTest = (at) => tests.some(([start, end]) => start <= at && at <= end);
  return [...source.matchAll(TOKEN)]
    .filter((m) => /^[bcr]*#*"/.test(m[0]) && !isTest(m.index))
    .map((m) => ({ text: m[0], line: source.slice(0, m.index).split('\n').length }));
}

/** Lines of a source that match, as {file, line, text}; a trailing `// proof: ...` allows one. */
export function matches(one, pattern) {
  return one.code.split('\n').flatMap((text, i) => {
    const hit = pattern.exec(text);
    if (!hit || /\/\/ proof: \S/.test(one.lines[i])) return [];
    return [`${one.file}:${i + 1}: ${hit[0].trim()}: ${one.lines[i].trim()}`];
  });
}
