// No wasm of its own: for libraries, and for who serves the file elsewhere. `init(source)` first, everywhere.

export * from '../api.js';
