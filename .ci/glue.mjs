// Short names between the wasm and its glue, and the glue without what only people read. The names that wasm-bindgen makes end in
// random letters, stand in both files and cannot be compressed; nobody but the two files uses them.

import { minify } from 'terser';

/** The glue with the names that wasm-opt gave to imports and exports. `names` is what it printed. */
export async function shortened(glue, names) {
  const modules = new Set(names.imports.map(([module]) => module));
  let text = glue;
  const replace = (from, to) => {
    const next = text.replaceAll(from, to);
    if (next === text) throw new Error(`the glue has no ${from}: wasm-bindgen writes it in another way now`);
    text = next;
  };
  for (const [, name, short] of names.imports) {
    replace(new RegExp(`^(\\s+)${name}:`, 'gm'), (_, space) => `${space}${short}:`);
  }
  if (modules.size !== 1) throw new Error(`the wasm imports from ${[...modules].join(' and ')}`);
  replace(`"${[...modules][0]}": import0`, 'a: import0'); // what wasm-opt calls the first module
  for (const [name, short] of names.exports) {
    // One that the glue has no use for is still an export.
    text = text.replaceAll(new RegExp(`\\bwasm\\.${name}\\b`, 'g'), () => `wasm.${short}`);
  }
  const left = [...text.matchAll(/\bwasm\.([\w$]+)/g)].map(([, name]) => name).filter((name) => !names.exports.some(([, short]) => short === name));
  if (left.length) throw new Error(`the glue asks the wasm for what it does not have: ${left.join(', ')}`);
  const { code } = await minify(text, { module: true, ecma: 2022, toplevel: true, compress: { passes: 2 } });
  return code;
}
