// gzip of the wasm as base64, which exists after a build only.
declare const wasm: string;
export default wasm;
