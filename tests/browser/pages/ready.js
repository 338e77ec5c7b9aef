// Before any module: whoever waits for the page finds something to wait for.

globalThis.ready = new Promise((resolve) => {
  globalThis.settle = resolve;
});
