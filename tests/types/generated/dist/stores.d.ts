// The generated glue, which exists after a build only.
export declare function createGlue(guard: (exports: WebAssembly.Exports) => object): { imports: WebAssembly.Imports; start(instance: WebAssembly.Instance): any };
