// Without a wasm: for libraries, and for pages that serve the file elsewhere. `init(source)` must be called first, on
// every platform, and given `stores` for SQL and key-value stores.

export * from '../api.js';
