// The glue of wasm-bindgen holds its only instance in module variables. This script turns it into a function that returns the glue of
// one instance, so that there can be several, and a stopped one can be replaced.

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

/** Rewrites glue generated for \`--target web\`. Throws if it has an unexpected form. */
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
