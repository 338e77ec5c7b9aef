// The glue that wasm-bindgen writes holds one instance in module variables, so a program has one instance for good. This makes it
// a function of its instance: several can live beside each other, and one that stopped is replaced.

const HEAD = `// Written by wasm-bindgen; made a function of its instance by .ci/glue.mjs.

/**
 * The glue of one instance. Instantiate the module with \`imports\`, then call \`start\`.
 *
 * @param {(exports: WebAssembly.Exports) => any} guard gives the exports that the glue calls instead of the instance's own
 */
export function createGlue(guard) {
let wasm;
`;

const tail = (names) => `
return {
    imports: __wbg_get_imports(),
    start(instance) {
        wasm = guard(instance.exports);
        wasm.__wbindgen_start();
        return { ${names.join(', ')} };
    },
};
}
`;

/** Rewrites the text of a glue for \`--target web\`. Throws where it is not written as expected. */
export function asFactory(text) {
  const loader = text.indexOf('\nlet wasmModule, wasmInstance, wasm;');
  const exported = [...text.matchAll(/^export (?:class|function) (\w+)/gm)].map((found) => found[1]);
  const body = text.slice(0, loader).replace(/^export (?=class |function )/gm, '');
  const foreign = /^(?:import|export)\b.*/m.exec(body);
  if (loader < 0 || !exported.length || foreign || !body.includes('function __wbg_get_imports()')) {
    throw new Error(`the glue of wasm-bindgen is not written as .ci/glue.mjs expects it${foreign ? `: ${foreign[0]}` : ''}`);
  }
  return HEAD + body + tail(exported);
}
