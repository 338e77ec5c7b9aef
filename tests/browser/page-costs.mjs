// What a turn costs the stores of a browser.

/** The rows of `turnCosts` in a page. */
export async function pageCosts(page, store, lengths, turnsAtOnce) {
  return page.evaluate(
    async ([name, messages, atOnce]) => {
      const { counted, countedIndexedDb, turnCosts } = await import('/servers/turn-costs.mjs');
      const { localStorageDriver } = await import('/js/stores/local-storage.js');
      const costs = name === 'indexeddb' ? countedIndexedDb('turn-costs') : counted(localStorageDriver('turn-costs'));
      return turnCosts(rethread.open, costs, messages, atOnce);
    },
    [store, lengths, turnsAtOnce],
  );
}
