// Short names between the wasm and its glue, and the glue without what only people read. The names that wasm-bindgen makes end in
// random letters, stand in both files and cannot be compressed; nobody but the two files uses them.
//
// Short names are given by order, so those of two builds fit each other and mean other things. That is why the module that the wasm
// imports from is named after the build: a wasm and a glue of two builds, out of a stale cache, do not link.

import { createHash } from 'node:crypto';
import { minify } from 'terser';

/** What wasm-opt calls the first module. */
const FIRST = 'a';
const IMPORTS = 2;

/** An unsigned LEB128 number at a place, and the place behind it. */
function number(bytes, at) {
  for (let value = 0, shift = 0; ; shift += 7, at += 1) {
    value |= (bytes[at] & 0x7f) << shift;
    if (bytes[at] < 0x80) return [value >>> 0, at + 1];
  }
}

function leb(value) {
  const out = [];
  for (; value > 0x7f; value >>>= 7) out.push((value & 0x7f) | 0x80);
  return Buffer.from([...out, value]);
}

/** The import section, with another name of the module. All imports are functions. */
function renamed(section, name) {
  let [left, at] = number(section, 0);
  const out = [section.subarray(0, at)];
  for (; left; left -= 1) {
    const [length, start] = number(section, at);
    if (section.toString('latin1', start, start + length) !== FIRST) throw new Error('the wasm imports from more than its glue');
    const [size, field] = number(section, start + length);
    const kind = field + size;
    if (section[kind] !== 0) throw new Error('the wasm imports something else than functions');
    [, at] = number(section, kind + 1);
    out.push(leb(name.length), Buffer.from(name, 'latin1'), section.subarray(start + length, at));
  }
  return Buffer.concat(out);
}

/** The wasm, importing from a module that is named after its own bytes. */
export function named(wasm) {
  const name = createHash('sha256').update(wasm).digest('base64url').slice(0, 8);
  const out = [wasm.subarray(0, 8)];
  for (let at = 8; at < wasm.length; ) {
    const [size, start] = number(wasm, at + 1);
    const end = start + size;
    if (wasm[at] === IMPORTS) {
      const section = renamed(wasm.subarray(start, end), name);
      out.push(wasm.subarray(at, at + 1), leb(section.length), section);
    } else {
      out.push(wasm.subarray(at, end));
    }
    at = end;
  }
  return { name, wasm: Buffer.concat(out) };
}

/** The glue with the names that wasm-opt gave to imports and exports. `names` is what it printed, `module` whence the wasm imports. */
export async function shortened(glue, names, module) {
  const modules = new Set(names.imports.map(([from]) => from));
  if (modules.size !== 1) throw new Error(`the wasm imports from ${[...modules].join(' and ')}`);
  let text = glue;
  const replace = (from, to) => {
    const next = text.replaceAll(from, to);
    if (next === text) throw new Error(`the glue has no ${from}: wasm-bindgen writes it in another way now`);
    text = next;
  };
  for (const [, name, short] of names.imports) replace(new RegExp(`^(\\s+)${name}:`, 'gm'), (_, space) => `${space}${short}:`);
  replace(`"${[...modules][0]}": import0`, () => `"${module}": import0`);
  const exports = new Map(names.exports);
  text = text.replaceAll(/\bwasm\.([\w$]+)/g, (_, name) => {
    if (!exports.has(name)) throw new Error(`the glue asks the wasm for ${name}, which it does not have`);
    return `wasm.${exports.get(name)}`;
  });
  const { code } = await minify(text, { module: true, ecma: 2022, toplevel: true, compress: { passes: 2 } });
  return code;
}
